//! What is special about each kind: defaults, preparation, checks.
