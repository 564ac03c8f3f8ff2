//! Pods.
