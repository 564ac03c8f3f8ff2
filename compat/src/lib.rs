//! Tests with real clients against the built binary.
