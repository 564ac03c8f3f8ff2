//! The description of the API, versions 2 and 3.
