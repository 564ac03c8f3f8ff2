//! The core group.

use std::borrow::Cow;

use crate::resource::{NameRule, Resource, Rules, Scope, Verbs};

/// The kinds of the core group.
pub(super) static RESOURCES: &[Resource] = &[Resource {
    group: Cow::Borrowed(""),
    version: Cow::Borrowed("v1"),
    kind: Cow::Borrowed("ConfigMap"),
    plural: Cow::Borrowed("configmaps"),
    singular: Cow::Borrowed("configmap"),
    short: &["cm"],
    categories: &[],
    scope: Scope::Namespaced,
    verbs: Verbs::All,
    parts: &[],
    schema: Cow::Borrowed("io.k8s.api.core.v1.ConfigMap"),
    stored: None,
    columns: &[],
    selectable: &[],
    name: NameRule::Subdomain,
    generation: false,
    rules: Rules::NONE,
}];
