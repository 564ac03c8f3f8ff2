//! The memory of the cluster: a revisioned key-value store as etcd means it, and everything about it that is not I/O.
//!
//! Responsible for: what a store is ([`Store`], [`Watch`], [`Error`]), its law as a deterministic state machine
//! ([`mvcc`]), the window of recent events that watchers read ([`window`]), a store in memory ([`memory`]) and the
//! behaviours that every store must show ([`suite`]). Leaves to `engine` how bytes become durable and how etcd is
//! spoken to, to `registry` what the bytes mean, to the server when to compact and how to reach many watchers.
//!
//! ```text
//!   Txn ──► mvcc::Keyspace ──► Reply
//!                 │ events of one revision
//!                 ▼
//!          window::Window ◄── Cursor of every watcher ──► Batch, or Compacted
//! ```
//!
//! Invariants: one revision counts all keys and never goes down inside an incarnation; the events of one revision are
//! told together or not at all; a watcher is told everything of its span or that it fell behind; a write whose fate
//! is not known is [`Error::Unknown`] and never a failure.
//!
//! The failures it exists for: an answer lost on the way that is taken for "nothing happened"; a store restored from
//! a backup that answers old revision numbers with new contents; a watcher that misses events and does not know.
//!
//! # Send
//!
//! The methods are native `async fn`, so a generic caller cannot ask for `Send` futures, and the store in memory has
//! none. Generic code (the suite, the simulator) runs on one thread. A body that spreads requests over threads names
//! the type of its store, for instance an enum of the stores it was built with: for a named type the compiler sees
//! through the method and knows whether its future is `Send`.

pub mod digest;
pub mod key;
pub mod memory;
pub mod mvcc;
pub mod suite;
pub mod txn;
pub mod window;

use std::fmt;

use api::Rev;

pub use digest::Digest;
pub use key::{Key, Span, Value};
pub use memory::Memory;
pub use mvcc::{Command, Keyspace};
pub use txn::{Batch, Compare, Entry, Event, Op, Page, Range, Refusal, Reply, Txn};
pub use window::{Cursor, Limits, Window};

/// One life of a store. Restoring a backup begins another: the same revision number then means other contents.
///
/// Made by whoever creates or restores a store, never by the store itself; it has no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Incarnation(pub u64);

/// A revision together with the life of the store in which it was seen. Only such a pair may be handed back to a
/// store: a bare number of another life would be answered, and wrongly.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token {
    /// Where the revision was seen.
    pub incarnation: Incarnation,
    /// The revision.
    pub rev: Rev,
}

/// At which revision to read, or after which to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The newest at the moment at which the store gets to it.
    Head,
    /// This one.
    Exactly(Token),
}

/// Why a store did not answer as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The revision asked for is not known: compacted, fallen out of the window, or of another incarnation. These are
    /// one case because there is one thing to do about them. The revision is the oldest that can be asked for.
    #[error("the revision is no longer known, the oldest that can be asked for is {0}")]
    Compacted(Rev),
    /// The revision asked for has not happened in this incarnation; the head is given. Told at once, never waited
    /// for: a client that waits for a number that is not coming waits for ever.
    #[error("the revision has not happened, the head is {0}")]
    Future(Rev),
    /// No store will ever take the request.
    #[error("the request breaks a limit")]
    Refused(#[source] Refusal),
    /// The store cannot be reached or has no leader. Nothing happened.
    #[error("the store could not be reached, nothing happened")]
    Unavailable,
    /// The request was sent and its answer was lost. It may have happened, and may still happen for a moment.
    #[error("the answer of the store was lost, the request may have happened")]
    Unknown,
}

/// What to do after an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Send the same request again, after a pause.
    Again,
    /// Read what is there now, then decide whether there is anything left to do.
    AfterLook,
    /// Forget the revision: read afresh at the head and go on from there.
    FromHead,
    /// Do not: the same request can only fail again.
    Never,
}

/// A revisioned key-value store.
#[allow(async_fn_in_trait, reason = "the header of the crate says how callers get Send futures")]
pub trait Store {
    /// Its watch.
    type Watch: Watch;

    /// Carries out a transaction whole or not at all. Changes nothing on every error but [`Error::Unknown`].
    async fn txn(&self, txn: Txn) -> Result<Reply, Error>;

    /// Reads a span of keys. A read at the head sees every write that was answered before it was asked.
    async fn range(&self, range: Range) -> Result<Page, Error>;

    /// Watches a span of keys: all events after the given revision, from then on.
    async fn watch(&self, span: Span, after: At) -> Result<Self::Watch, Error>;

    /// The newest revision. Never lower than one that was seen before, in this or another process.
    async fn head(&self) -> Result<Token, Error>;

    /// Forgets what reads at older revisions need. Forgetting what is forgotten already is no error.
    async fn compact(&self, before: Token) -> Result<(), Error>;
}

/// A watcher of a span of keys. Dropping it ends the watch.
#[allow(async_fn_in_trait, reason = "the header of the crate says how callers get Send futures")]
pub trait Watch {
    /// Waits for the next batch. May be dropped while it waits without losing anything.
    ///
    /// A watch that was opened behind the head is answered at once, if with nothing else then with a bookmark:
    /// somebody who comes back must not wait for a write to its own span to learn that all is well.
    /// After [`Error::Compacted`] every further call says the same.
    async fn next(&mut self) -> Result<Batch, Error>;

    /// The revision up to which everything of the span has been told by [`Watch::next`]: at least the head at the
    /// time of the call, unless an event is waiting to be fetched. Writes outside the span move it on.
    async fn progress(&mut self) -> Result<Rev, Error>;
}

// === impl Incarnation ===

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

// === impl Token ===

impl Token {
    /// The same life at another revision.
    #[must_use]
    pub const fn at(self, rev: Rev) -> Self {
        Self { incarnation: self.incarnation, rev }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.rev, self.incarnation)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({self})")
    }
}

// === impl Error ===

impl Error {
    /// What to do about it.
    #[must_use]
    pub const fn retry(self) -> Retry {
        match self {
            Self::Unavailable => Retry::Again,
            Self::Unknown => Retry::AfterLook,
            Self::Compacted(_) | Self::Future(_) => Retry::FromHead,
            Self::Refused(_) => Retry::Never,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
