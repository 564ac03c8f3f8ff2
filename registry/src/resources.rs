//! Every built-in kind, one entry each.
//!
//! Responsible for: the one list. Leaves the entries to the files of their groups, the rules of a kind to `rules/`.

mod core;

use crate::resource::Resource;

/// Every built-in kind, in the order of discovery.
pub static RESOURCES: &[&[Resource]] = &[core::RESOURCES];

/// All of them, one after the other.
pub fn all() -> impl Iterator<Item = &'static Resource> {
    RESOURCES.iter().copied().flatten()
}
