//! Real clients against a freshly started server.
