//! Objects as tables and as bare metadata.
