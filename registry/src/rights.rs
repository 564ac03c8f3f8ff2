//! Who asks, and what they may do.
//!
//! Responsible for: the words of rights ([`User`], [`Attributes`]). RBAC, the Node authorizer and the standard roles
//! stand in the modules below. Leaves to the server: finding out who asks.

use std::collections::BTreeMap;

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// `system:serviceaccount:default:builder`, `jane`.
    pub name: String,
    /// Empty if there is none.
    pub uid: String,
    /// `system:authenticated`, …
    pub groups: Vec<String>,
    /// What else is known, such as the pod of a token.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes<'r> {
    /// `get`, `list`, `create`, …
    pub verb: &'r str,
    /// API group; empty for core, or for a path.
    pub group: &'r str,
    /// API version.
    pub version: &'r str,
    /// Plural; empty for a path that is no resource.
    pub resource: &'r str,
    /// `status`; empty for the object itself.
    pub part: &'r str,
    /// Empty for the cluster, or for all namespaces.
    pub namespace: &'r str,
    /// Empty for a collection.
    pub name: &'r str,
    /// Only for what is no resource: `/healthz`.
    pub path: &'r str,
}
