//! The embedded durable store.
