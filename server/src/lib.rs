//! The API server.
