//! What can be asked of a store, and what it answers.
//!
//! Responsible for: the requests ([`Txn`], [`Range`]), the answers ([`Reply`], [`Page`], [`Batch`]), what passes
//! between ([`Entry`], [`Event`]) and the limits that every request keeps. Leaves to [`crate::mvcc`] what a request
//! does and to `registry` what the bytes mean.
//!
//! Invariants: a request that passed [`Txn::check`] can be carried out whole, so that no transaction stops half way;
//! a key is written at most once per transaction, so that a watcher sees at most one event per key and revision.
//!
//! The failure it exists for: a limit that one store has and another has not. Such a limit is found in production,
//! on the day the store is changed. Hence the limits are here and the suite tries them on every store.

use api::Rev;

use crate::key::{Key, Span, Value};
use crate::{At, Incarnation, Token};

/// Longest key. The longest that Kubernetes names allow is about 650 bytes: group 253, plural 63, namespace 63, name
/// 253 and what stands between. At half, legal custom resources are refused; at double, nothing is gained.
pub const KEY_BYTES_MAX: usize = 1024;

/// Largest value. What etcd takes in one request, hence the largest object that Kubernetes users have ever stored.
/// At half, objects do not move over from a stock cluster; at double, they do not move back.
pub const VALUE_BYTES_MAX: usize = 3 * 512 * 1024;

/// Most compares in a transaction, and most operations in one of its branches. As etcd's own limit: at half, foreign
/// clients of etcd would notice; at double, a default etcd refuses what the embedded store takes.
pub const TXN_OPS_MAX: usize = 128;

/// Most bytes of keys and values in a transaction. Room for the largest value with its guards, plus what etcd's port
/// allows above its request limit. At half, the largest value does not fit; at double, one request delays the group
/// commit of all others noticeably.
pub const TXN_BYTES_MAX: usize = 2 * 1024 * 1024;

const _: () =
    assert!(VALUE_BYTES_MAX + 64 * KEY_BYTES_MAX <= TXN_BYTES_MAX, "the largest value fits with its guards");

/// One key with what it holds at some revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub key: Key,
    /// What it holds.
    pub value: Value,
    /// The revision that created it. A key that was deleted and put again has another.
    pub create_rev: Rev,
    /// The revision that changed it last.
    pub mod_rev: Rev,
    /// How often it was put since it was created; 1 after the creation.
    pub version: u64,
}

/// What a transaction requires before it does its `success` branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compare {
    /// The key does not exist.
    Absent(Key),
    /// The key exists and was changed last by this revision.
    ModRev(Key, Rev),
    /// The key exists and holds exactly this.
    Value(Key, Value),
    /// The store is this incarnation: a `mod_rev` that was read in another may match by chance.
    Incarnation(Incarnation),
}

/// One step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Puts a value under a key; the same value again is a change too, as in etcd.
    Put(Key, Value),
    /// Removes a key; of a key that does not exist it is no change.
    Delete(Key),
    /// Reads a key, as the steps before have left it.
    Get(Key),
}

/// If all of `compare` hold then `success`, else `failure`; as a whole, under one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn {
    /// What must hold.
    pub compare: Vec<Compare>,
    /// What is done if all hold.
    pub success: Vec<Op>,
    /// What is done if one does not hold.
    pub failure: Vec<Op>,
}

/// What came of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The head behind it: its own revision if it changed something, else the one that was there.
    pub head: Token,
    /// Whether all compares held.
    pub succeeded: bool,
    /// For each step of the branch that was done: what the key held before a put or delete, or holds for a get.
    pub results: Vec<Option<Entry>>,
}

/// A read of a span of keys at one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// Which keys.
    pub span: Span,
    /// At which revision.
    pub at: At,
    /// Most entries in the page; absent for all, 0 to count only.
    pub limit: Option<usize>,
}

/// One page of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The revision that was read.
    pub at: Token,
    /// The entries in the order of their keys.
    pub entries: Vec<Entry>,
    /// Whether the span has more of them.
    pub more: bool,
    /// How many the whole span has at that revision, whatever the limit.
    pub count: usize,
}

/// One change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The key holds something new.
    Put {
        /// What it holds now.
        entry: Entry,
        /// What it held before; absent if it was created.
        prev: Option<Entry>,
    },
    /// The key is gone.
    Delete {
        /// The revision that removed it.
        rev: Rev,
        /// What it held before.
        prev: Entry,
    },
}

/// What a watcher is told at once: all events of its span in some revisions, whole revisions only.
///
/// Without events it is a bookmark: nothing of the span changed up to `rev`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Everything of the span up to here has been told; a watch may be opened again after it.
    pub rev: Rev,
    /// The events, oldest first.
    pub events: Vec<Event>,
}

/// Why a request is refused by any store at any time: the caller is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A key without bytes: as a prefix it means all keys, as a name it would mean one.
    #[error("a key is empty")]
    KeyEmpty,
    /// See [`KEY_BYTES_MAX`].
    #[error("a key has {0} bytes and {KEY_BYTES_MAX} are allowed")]
    KeyTooLong(usize),
    /// See [`VALUE_BYTES_MAX`].
    #[error("a value has {0} bytes and {VALUE_BYTES_MAX} are allowed")]
    ValueTooLarge(usize),
    /// See [`TXN_OPS_MAX`].
    #[error("a transaction has {0} compares or operations in a row and {TXN_OPS_MAX} are allowed")]
    TooManyOps(usize),
    /// See [`TXN_BYTES_MAX`].
    #[error("a transaction has {0} bytes and {TXN_BYTES_MAX} are allowed")]
    TxnTooLarge(usize),
    /// One branch writes one key twice: a revision has one value per key.
    #[error("a transaction writes one key twice")]
    KeyTwice,
}

// === impl Txn ===

impl Txn {
    /// A transaction that does nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds something that must hold.
    #[must_use]
    pub fn when(mut self, compare: Compare) -> Self {
        self.compare.push(compare);
        self
    }

    /// Adds a step for the case that everything holds.
    #[must_use]
    pub fn then(mut self, op: Op) -> Self {
        self.success.push(op);
        self
    }

    /// Adds a step for the case that something does not hold.
    #[must_use]
    pub fn otherwise(mut self, op: Op) -> Self {
        self.failure.push(op);
        self
    }

    /// Refuses what breaks a limit, in either branch: whether a request is legal must not depend on the state.
    pub fn check(&self) -> Result<(), Refusal> {
        for steps in [self.compare.len(), self.success.len(), self.failure.len()] {
            if steps > TXN_OPS_MAX {
                return Err(Refusal::TooManyOps(steps));
            }
        }
        let mut bytes = 0;
        for compare in &self.compare {
            bytes += compare.check()?;
        }
        for op in self.success.iter().chain(&self.failure) {
            bytes += op.check()?;
        }
        if bytes > TXN_BYTES_MAX {
            return Err(Refusal::TxnTooLarge(bytes));
        }
        check_written_once(&self.success)?;
        check_written_once(&self.failure)
    }
}

// === impl Compare ===

impl Compare {
    /// The bytes it carries, if they keep the limits.
    fn check(&self) -> Result<usize, Refusal> {
        match self {
            Self::Absent(key) | Self::ModRev(key, _) => check_key(key),
            Self::Value(key, value) => Ok(check_key(key)? + check_value(value)?),
            Self::Incarnation(_) => Ok(0),
        }
    }
}

// === impl Op ===

impl Op {
    /// A put of a value under a key.
    #[must_use]
    pub fn put(key: impl Into<Key>, value: impl Into<Value>) -> Self {
        Self::Put(key.into(), value.into())
    }

    /// A removal of a key.
    #[must_use]
    pub fn delete(key: impl Into<Key>) -> Self {
        Self::Delete(key.into())
    }

    /// A read of a key.
    #[must_use]
    pub fn get(key: impl Into<Key>) -> Self {
        Self::Get(key.into())
    }

    /// The key that it changes, if any.
    fn written(&self) -> Option<&Key> {
        match self {
            Self::Put(key, _) | Self::Delete(key) => Some(key),
            Self::Get(_) => None,
        }
    }

    /// The bytes it carries, if they keep the limits.
    fn check(&self) -> Result<usize, Refusal> {
        match self {
            Self::Put(key, value) => Ok(check_key(key)? + check_value(value)?),
            Self::Delete(key) | Self::Get(key) => check_key(key),
        }
    }
}

fn check_key(key: &Key) -> Result<usize, Refusal> {
    match key.len() {
        0 => Err(Refusal::KeyEmpty),
        length if length > KEY_BYTES_MAX => Err(Refusal::KeyTooLong(length)),
        length => Ok(length),
    }
}

fn check_value(value: &Value) -> Result<usize, Refusal> {
    let length = value.len();
    if length > VALUE_BYTES_MAX { Err(Refusal::ValueTooLarge(length)) } else { Ok(length) }
}

fn check_written_once(ops: &[Op]) -> Result<(), Refusal> {
    // Nearly all branches have one step: they must not pay for a sorted list.
    if ops.len() < 2 {
        return Ok(());
    }
    let mut keys: Vec<&Key> = ops.iter().filter_map(Op::written).collect();
    keys.sort_unstable();
    if keys.windows(2).any(|pair| pair[0] == pair[1]) { Err(Refusal::KeyTwice) } else { Ok(()) }
}

// === impl Range ===

impl Range {
    /// A read of all of `span` at the head.
    #[must_use]
    pub fn of(span: Span) -> Self {
        Self { span, at: At::Head, limit: None }
    }

    /// The same read at a revision.
    #[must_use]
    pub fn at(mut self, token: Token) -> Self {
        self.at = At::Exactly(token);
        self
    }

    /// The same read with at most so many entries.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// The read that goes on behind `page`, at the page's revision; none if the page was the last.
    #[must_use]
    pub fn rest(&self, page: &Page) -> Option<Self> {
        let last = page.entries.last().filter(|_| page.more)?;
        Some(Self { span: self.span.behind(&last.key), at: At::Exactly(page.at), limit: self.limit })
    }
}

// === impl Event ===

impl Event {
    /// The key that changed.
    #[must_use]
    pub fn key(&self) -> &Key {
        match self {
            Self::Put { entry, .. } => &entry.key,
            Self::Delete { prev, .. } => &prev.key,
        }
    }

    /// The revision that changed it.
    #[must_use]
    pub fn rev(&self) -> Rev {
        match self {
            Self::Put { entry, .. } => entry.mod_rev,
            Self::Delete { rev, .. } => *rev,
        }
    }

    /// What the key holds now; none if it is gone.
    #[must_use]
    pub fn entry(&self) -> Option<&Entry> {
        match self {
            Self::Put { entry, .. } => Some(entry),
            Self::Delete { .. } => None,
        }
    }

    /// What the key held before; none if it did not exist.
    #[must_use]
    pub fn prev(&self) -> Option<&Entry> {
        match self {
            Self::Put { prev, .. } => prev.as_ref(),
            Self::Delete { prev, .. } => Some(prev),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key_bytes: usize, value_bytes: usize) -> Op {
        Op::put(vec![b'k'; key_bytes], vec![0; value_bytes])
    }

    #[test]
    fn limits_hold_at_their_edges() {
        let check = |op| Txn::new().then(op).check();
        assert_eq!(check(put(KEY_BYTES_MAX, VALUE_BYTES_MAX)), Ok(()));
        assert_eq!(check(put(0, 1)), Err(Refusal::KeyEmpty));
        assert_eq!(check(put(KEY_BYTES_MAX + 1, 1)), Err(Refusal::KeyTooLong(KEY_BYTES_MAX + 1)));
        assert_eq!(check(put(1, VALUE_BYTES_MAX + 1)), Err(Refusal::ValueTooLarge(VALUE_BYTES_MAX + 1)));
    }

    #[test]
    fn sums_are_limited_too() {
        let gets = |n: usize| Txn { success: vec![Op::get("a"); n], ..Txn::new() };
        assert_eq!(gets(TXN_OPS_MAX).check(), Ok(()));
        assert_eq!(gets(TXN_OPS_MAX + 1).check(), Err(Refusal::TooManyOps(TXN_OPS_MAX + 1)));
        let large = Txn::new().then(put(1, VALUE_BYTES_MAX)).then(put(2, VALUE_BYTES_MAX));
        assert_eq!(large.check(), Err(Refusal::TxnTooLarge(2 * VALUE_BYTES_MAX + 3)));
    }

    #[test]
    fn a_branch_writes_a_key_once() {
        let twice = Txn::new().then(Op::put("a", "1")).then(Op::get("a")).then(Op::delete("a"));
        assert_eq!(twice.check(), Err(Refusal::KeyTwice));
        let one_each = Txn::new().then(Op::put("a", "1")).then(Op::get("a")).otherwise(Op::delete("a"));
        assert_eq!(one_each.check(), Ok(()));
    }
}
