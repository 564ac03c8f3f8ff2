//! A request that writes, from its body to a transaction.
//!
//! Responsible for: the order of a write, on one page: decode strictly, default, prepare, admit (changing), check,
//! admit (checking), ownership of fields, generation, preconditions; and for what a deletion does. Leaves to bodies:
//! who asks and whether they may, carrying the [`Write`] out, and trying again if it lost a race.
//!
//! ```text
//! body: look ─► write(request, look) ─► one transaction ─► answered
//!         ▲                                  │ an expectation no longer holds
//!         └──────────────────────────────────┘
//! ```
//!
//! Invariants: everything that was looked at and matters is expected in the transaction; a refused request changes
//! nothing; all problems are told, not the first.

use api::Rev;
use api::time::Time;
use serde_json::Value;

use crate::law::Law;
use crate::resource::{Part, Resource};
use crate::rights::User;

/// A request that writes.
pub struct Request<'r> {
    /// What kind of object.
    pub resource: &'r Resource,
    /// Which part of it; none for the object itself.
    pub part: Option<Part>,
    /// Namespace of the path; empty for the cluster.
    pub namespace: &'r str,
    /// Name of the path; empty for a collection.
    pub name: &'r str,
    /// What is to be done.
    pub act: Act<'r>,
    /// How.
    pub options: Options,
    /// Who asks.
    pub caller: &'r User,
    /// The server's time.
    pub now: Time,
}

/// What is to be done.
pub enum Act<'r> {
    /// POST to a collection, or to a part such as `binding`.
    Create(Body<'r>),
    /// PUT. Creates nothing, as upstream for all built-in kinds but a few.
    Update(Body<'r>),
    /// PATCH of three kinds.
    Patch(PatchKind, Body<'r>),
    /// PATCH by server-side apply. Creates what is not there.
    Apply(Body<'r>),
    /// DELETE of one object; the body may be empty. Collections are deleted one by one by the server.
    Delete(Body<'r>),
}

/// What a patch is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// `application/json-patch+json`
    Json,
    /// `application/merge-patch+json`
    Merge,
    /// `application/strategic-merge-patch+json`
    Strategic,
}

/// Bytes that a client sent.
#[derive(Clone, Copy)]
pub struct Body<'r> {
    /// The bytes; at most [`BODY_BYTES_MAX`].
    pub bytes: &'r [u8],
    /// What they are written in.
    pub form: Form,
}

/// What bytes are written in. YAML is turned into JSON by the server: the parser is no part of the law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `application/json`; also YAML that the server has turned into JSON.
    Json,
}

/// Upstream's limit of a body.
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Query parameters of a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `dryRun=All`.
    pub dry_run: bool,
    /// `fieldManager`, or what the server makes of the user agent; at most 128 bytes.
    pub manager: String,
    /// `fieldValidation`; upstream's default is `Warn`.
    pub validation: FieldValidation,
    /// `force` of an apply.
    pub force: bool,
    /// DELETE's `gracePeriodSeconds` as a query parameter; the body wins.
    pub grace_secs: Option<i64>,
    /// DELETE's `propagationPolicy` as a query parameter; the body wins.
    pub propagation: Option<String>,
    /// DELETE's `orphanDependents` as a query parameter; old clients only.
    pub orphan: Option<bool>,
}

/// What happens with fields that nobody knows, and with fields that come twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// They go silently.
    Ignore,
    /// They go with a warning.
    #[default]
    Warn,
    /// The request is refused.
    Strict,
}

/// What lies in the store now. Given by the body; reads at the head.
pub trait Look {
    /// The stored tree under a key, with `metadata.resourceVersion`, and its revision.
    fn get(&self, key: &str) -> Option<(Rev, Value)>;
    /// The stored trees whose keys begin with `prefix`, in order of keys; at most `limit`.
    fn list(&self, prefix: &str, limit: usize) -> Vec<Value>;
    /// A random number, for names, uids and addresses.
    fn dice(&self) -> u64;
}

/// How this cluster is set up; the same in every server of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The law of writes.
    pub law: Law,
    /// `10.96.0.0/16`: addresses of Services; one or two (dual stack), the first is the default family.
    pub service_cidrs: Vec<String>,
    /// First and last port of `NodePort` Services.
    pub node_ports: (u16, u16),
    /// Issuer of service-account tokens, which is also their audience by default.
    pub issuer: String,
}

/// What is to be done in the store, all or nothing, and what is answered when it is done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Write {
    /// What must still be so: a key and its revision, or its absence.
    pub expect: Vec<(String, Option<Rev>)>,
    /// What to put, in the form in which it is stored ([`crate::wire`]).
    pub puts: Vec<(String, Vec<u8>)>,
    /// What to remove.
    pub removes: Vec<String>,
    /// What is answered.
    pub answer: Answer,
    /// `Warning` headers.
    pub warnings: Vec<String>,
}

/// What is answered when the transaction has happened.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Answer {
    /// The object put under this key, at the revision of the transaction; `created` is 201 and not 200.
    Put {
        /// Which of the puts.
        key: String,
        /// True if it was not there before.
        created: bool,
    },
    /// This tree as it is: the result of a dry run, a review, a scale, an object that did not change, a `Status`.
    Tree {
        /// HTTP code.
        code: u16,
        /// The tree.
        tree: Value,
    },
    /// Nothing was decided yet.
    #[default]
    None,
}
