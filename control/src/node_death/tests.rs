//! Decisions of the automatic layer, as text.

mod course;
mod protocol;
