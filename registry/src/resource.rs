//! A kind of object as one entry of data.
//!
//! Responsible for: what the entry of a kind says. Routes, discovery, OpenAPI, tables, storage keys and the verbs of
//! rights are derived from it. Leaves to `resources/` the entries, one file per group of kinds; to `schema` the fields.
//!
//! Custom resources will make the same struct at run time: hence `Cow` and no generic parameter.

use std::borrow::Cow;

use api::time::Time;
use serde_json::Value;

use crate::problem::Problems;

/// A kind of object.
#[derive(Clone, Debug)]
pub struct Resource {
    /// API group; empty for core.
    pub group: Cow<'static, str>,
    /// API version.
    pub version: Cow<'static, str>,
    /// `Deployment`.
    pub kind: Cow<'static, str>,
    /// `deployments`.
    pub plural: Cow<'static, str>,
    /// `deployment`.
    pub singular: Cow<'static, str>,
    /// `deploy`.
    pub short: &'static [&'static str],
    /// `all`.
    pub categories: &'static [&'static str],
    /// Where its objects live.
    pub scope: Scope,
    /// What can be done with its objects.
    pub verbs: Verbs,
    /// Paths below an object.
    pub parts: &'static [Part],
    /// Name of its type in the schema tables, such as `io.k8s.api.apps.v1.Deployment`.
    pub schema: Cow<'static, str>,
    /// Where its objects are stored if not under its own name: another version or group of the same kind, with the
    /// conversions of a stored tree to this version and back.
    pub stored: Option<Stored>,
    /// What a table shows beside the name.
    pub columns: &'static [Column],
    /// What `fieldSelector` may ask for beside `metadata.name` and `metadata.namespace`.
    pub selectable: &'static [Selectable],
    /// What names are allowed.
    pub name: NameRule,
    /// True if `metadata.generation` counts changes of everything but metadata and status.
    pub generation: bool,
    /// What is special about the kind.
    pub rules: Rules,
}

/// Where the objects of a kind live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In the cluster.
    Cluster,
    /// In a namespace.
    Namespaced,
}

/// What can be done with the objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbs {
    /// create, delete, deletecollection, get, list, patch, update, watch.
    All,
    /// As `All`, but no deletecollection: Service, Namespace.
    NoCollection,
    /// create only: reviews, which are answered and not stored.
    Create,
}

/// A path below an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is the path's own word")]
pub enum Part {
    Status,
    /// `Scale` of the autoscaling group: where the wish, the state and the selector stand.
    Scale(&'static ScalePaths),
    Binding,
    Eviction,
    Token,
    EphemeralContainers,
    Resize,
    Finalize,
    Approval,
    Log,
    Exec,
    Attach,
    PortForward,
    Proxy,
}

/// Where a scalable kind keeps its numbers.
#[derive(Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// Path of the wished number.
    pub spec: &'static [&'static str],
    /// Path of the number that is there.
    pub status: &'static [&'static str],
    /// Path of the label selector (an object or, for ReplicationController, a map).
    pub selector: &'static [&'static str],
}

/// How the objects of a kind are stored under another one's name.
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    /// Group of the kind under which they are stored.
    pub group: &'static str,
    /// Version of it.
    pub version: &'static str,
    /// Turns a stored tree into one of this version.
    pub read: fn(&mut Value),
    /// Turns a tree of this version into a stored one.
    pub write: fn(&mut Value),
}

/// A column of `kubectl get`.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Upstream's name.
    pub name: &'static str,
    /// `string`, `integer`, `date`.
    pub kind: &'static str,
    /// 0 is always shown, 1 with `-o wide`.
    pub priority: u8,
    /// The cell. `now` is for ages.
    pub cell: fn(&Value, Time) -> Value,
}

/// A field that a selector may ask for.
#[derive(Clone, Copy, Debug)]
pub struct Selectable {
    /// `spec.nodeName`.
    pub field: &'static str,
    /// Its text in an object; empty if it is not there.
    pub text: fn(&Value) -> Cow<'_, str>,
}

/// What names a kind allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// RFC 1123 subdomain, at most 253 bytes.
    Subdomain,
    /// RFC 1123 label, at most 63 bytes.
    Label,
    /// RFC 1035 label, at most 63 bytes: Service.
    Label1035,
    /// Anything that is one segment of a path: RBAC.
    Segment,
}

/// What is special about a kind. An entry states only that: `Rules { check, ..Rules::NONE }`.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Fills in what the client left out. A second call changes nothing.
    pub default: fn(&mut Value),
    /// Takes away what the client may not set: on create (no old object) the status, on update what is decided once.
    /// Called for the object itself, not for its parts.
    pub prepare: fn(&mut Value, Option<&Value>),
    /// Finds everything that is wrong with the object, or with changing the old one into it. Metadata is checked
    /// for all kinds by the caller.
    pub check: fn(&Value, Option<&Value>, &mut Problems),
    /// Finds what is wrong with a new status of the old object.
    pub check_status: fn(&Value, &Value, &mut Problems),
    /// Sentences for the client about an object that is taken as it is.
    pub warn: fn(&Value, &mut Vec<String>),
}

// === impl Resource ===

impl Resource {
    /// `apps/v1`, `v1`.
    pub fn api_version(&self) -> Cow<'_, str> {
        if self.group.is_empty() {
            Cow::Borrowed(&self.version)
        } else {
            Cow::Owned(format!("{}/{}", self.group, self.version))
        }
    }

    /// `deployments.apps`, `pods`: the resource as sentences name it.
    pub fn qualified(&self) -> Cow<'_, str> {
        with_group(&self.plural, &self.group)
    }

    /// `Deployment.apps`, `Pod`: the kind as sentences name it.
    pub fn qualified_kind(&self) -> Cow<'_, str> {
        with_group(&self.kind, &self.group)
    }

    /// True if its objects have a namespace.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// The beginning of the store keys of the kind: `/registry/apps/deployments/`, without the group in core.
    pub fn prefix(&self) -> String {
        let group = self.stored.map_or(&*self.group, |stored| stored.group);
        if group.is_empty() {
            format!("/registry/{}/", self.plural)
        } else {
            format!("/registry/{group}/{}/", self.plural)
        }
    }

    /// The store key of one object; an empty namespace for objects of the cluster.
    pub fn key(&self, namespace: &str, name: &str) -> String {
        if namespace.is_empty() {
            format!("{}{name}", self.prefix())
        } else {
            format!("{}{namespace}/{name}", self.prefix())
        }
    }

    /// True if the kind has that part.
    pub fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }
}

fn with_group<'r>(word: &'r str, group: &str) -> Cow<'r, str> {
    if group.is_empty() { Cow::Borrowed(word) } else { Cow::Owned(format!("{word}.{group}")) }
}

// === impl Rules ===

impl Rules {
    /// Nothing is special.
    pub const NONE: Self = Self {
        default: |_| {},
        prepare: |_, _| {},
        check: |_, _, _| {},
        check_status: |_, _, _| {},
        warn: |_, _| {},
    };
}
