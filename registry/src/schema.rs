//! The fields of every built-in type: names, types, lists and their keys, as tables.
//!
//! Responsible for: what the tables say ([`Type`], [`Field`]) and finding a type. The tables themselves are made by
//! `cargo xtask codegen` from the public OpenAPI description and committed; its sentences are not in them. Leaves to
//! the modules below: reading bytes strictly, pruning trees, describing the API.
//!
//! Invariant: a table is data; the same walk serves every kind.

/// A named type.
#[derive(Debug)]
pub struct Type {
    /// Such as `io.k8s.api.core.v1.PodSpec`.
    pub name: &'static str,
    /// What it is.
    pub shape: Shape,
}

/// What a type is.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// An object with these fields, sorted by name.
    Struct(&'static [Field]),
    /// Something that has a form of its own, such as a quantity or a time.
    Special(Special),
}

/// Types whose JSON is not made of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// RFC 3339 in whole seconds.
    Time,
    /// RFC 3339 with microseconds.
    MicroTime,
    /// `Quantity`.
    Quantity,
    /// A number or a text.
    IntOrString,
    /// Any object (`RawExtension`, `FieldsV1`).
    Object,
    /// Any JSON at all.
    Json,
}

/// A field of an object.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name in JSON.
    pub name: &'static str,
    /// What it holds.
    pub holds: Holds,
    /// True if the description demands it.
    pub required: bool,
    /// How server-side apply merges it, for lists and maps.
    pub list: ListKind,
    /// `x-kubernetes-list-map-keys`.
    pub keys: &'static [&'static str],
    /// How a strategic merge patch merges it.
    pub patch: PatchStrategy,
    /// `x-kubernetes-patch-merge-key`; empty if there is none.
    pub merge_key: &'static str,
    /// True if it is replaced whole by server-side apply although it is an object or a map.
    pub atomic: bool,
}

/// What a field, an entry of a list or a value of a map holds.
#[derive(Clone, Copy, Debug)]
pub enum Holds {
    /// A text.
    String,
    /// Base64 of bytes.
    Bytes,
    /// 32 bits.
    Int32,
    /// 64 bits.
    Int64,
    /// A number with a fraction.
    Double,
    /// True or false.
    Bool,
    /// An object without further description.
    Object,
    /// Any JSON.
    Any,
    /// A named type.
    Type(&'static Type),
    /// A list of these.
    List(&'static Holds),
    /// A map from texts to these.
    Map(&'static Holds),
}

/// `x-kubernetes-list-type`; atomic where the description says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// Replaced whole; also what is no list.
    Atomic,
    /// Scalars, each at most once.
    Set,
    /// Objects, told apart by `keys`.
    Map,
}

/// `x-kubernetes-patch-strategy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchStrategy {
    /// Lists are replaced, objects merged.
    None,
    /// Lists are merged by the merge key, or as sets.
    Merge,
    /// `retainKeys`: fields that the patch does not name go.
    RetainKeys,
    /// `merge,retainKeys`.
    MergeRetainKeys,
}
