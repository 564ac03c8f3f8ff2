//! The watch window: one ring of recent events per server, read by any number of cursors.
//!
//! Responsible for: keeping the newest events within limits, telling each cursor what it has not seen, telling it
//! honestly when that is no longer possible, and moving cursors over what does not concern them. Leaves to the owner
//! of the cursors who waits and who is woken, and when a bookmark is sent to a client.
//!
//! ```text
//!   forgotten    floor                                head
//!   ─────────────┤├─ 41 ─┼─ 42 42 42 ─┼─ 43 ─┼─ 44 ─┤
//!                 ▲             ▲
//!        oldest cursor      a cursor never stands here: revisions are whole
//! ```
//!
//! Invariants: a cursor that is read until it reaches the head has been told every event of its span behind its
//! start, each once, in order, all of one revision together; or it has been told `Compacted`. The newest revision is
//! always in the window, whatever its size. Only an event of its own span can make a cursor fall behind, if
//! [`Window::advance`] is called for it after each revision.
//!
//! The failures it exists for: a slow watcher from whose queue an event was dropped and who works on with a wrong
//! picture for hours; an idle watcher that falls behind, or asks for a revision "too large", only because other kinds
//! are written (case P107).

use std::collections::VecDeque;

use api::Rev;

use crate::Error;
use crate::key::Span;
use crate::txn::{Batch, Entry, Event};

/// How much a window keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most events.
    pub events_max: usize,
    /// Most bytes, as counted by [`weight`].
    pub bytes_max: usize,
}

/// The newest events, oldest first.
#[derive(Clone, Debug)]
pub struct Window {
    limits: Limits,
    events: VecDeque<Event>,
    /// The weight of `events`.
    bytes: usize,
    /// The newest revision.
    head: Rev,
    /// The newest revision of which an event may be missing. A cursor must have seen it.
    floor: Rev,
}

/// How far a watcher has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    span: Span,
    /// Everything of the span up to here has been told.
    after: Rev,
}

// === impl Limits ===

impl Limits {
    /// For a server. The count is some seconds of the highest write rate we promise: at half, a client that reconnects
    /// after a short cut lists everything again; at double, a cursor may have twice as much to skip at once. The bytes
    /// bound what a burst of large objects can cost: at half, less than two seconds of pods at that rate are kept; at
    /// double, the window alone is a fifth of the memory that a large server is promised to need.
    pub const SERVER: Self = Self { events_max: 32_768, bytes_max: 32 * 1024 * 1024 };
}

impl Default for Limits {
    fn default() -> Self {
        Self::SERVER
    }
}

// === impl Cursor ===

impl Cursor {
    /// A cursor that has everything of `span` up to `after`.
    #[must_use]
    pub fn new(span: Span, after: Rev) -> Self {
        Self { span, after }
    }

    /// The keys it reads.
    #[must_use]
    pub fn span(&self) -> &Span {
        &self.span
    }

    /// The revision up to which everything of its span has been told: what a bookmark says.
    #[must_use]
    pub fn progress(&self) -> Rev {
        self.after
    }
}

// === impl Window ===

impl Window {
    /// An empty window of a store whose head is `head`: what was before is not known.
    #[must_use]
    pub fn new(head: Rev, limits: Limits) -> Self {
        Self { limits, events: VecDeque::new(), bytes: 0, head, floor: head }
    }

    /// The newest revision.
    #[must_use]
    pub fn head(&self) -> Rev {
        self.head
    }

    /// The oldest revision after which a cursor can read.
    #[must_use]
    pub fn floor(&self) -> Rev {
        self.floor
    }

    /// How many events are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether none is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Adds all events of the next revision and forgets the oldest revisions that no longer fit.
    pub fn push(&mut self, rev: Rev, events: Vec<Event>) {
        assert!(rev > self.head, "revisions go up");
        assert!(!events.is_empty(), "a revision changes something");
        for event in events {
            assert!(event.rev() == rev, "the events of one revision are pushed together");
            self.bytes += weight(&event);
            self.events.push_back(event);
        }
        self.head = rev;
        while self.events.len() > self.limits.events_max || self.bytes > self.limits.bytes_max {
            let Some(oldest) = self.events.front().map(Event::rev).filter(|oldest| *oldest < rev) else {
                break;
            };
            self.forget(oldest);
        }
    }

    /// Forgets all events up to `rev`. A store in memory does so with every compaction, to be no kinder than etcd.
    pub fn forget(&mut self, rev: Rev) {
        assert!(rev <= self.head, "what has not happened cannot be forgotten");
        while let Some(event) = self.events.pop_front_if(|event| event.rev() <= rev) {
            self.bytes -= weight(&event);
        }
        self.floor = self.floor.max(rev);
    }

    /// Whether `cursor` can go on.
    pub fn check(&self, cursor: &Cursor) -> Result<(), Error> {
        if cursor.after < self.floor {
            Err(Error::Compacted(self.floor))
        } else if cursor.after > self.head {
            Err(Error::Future(self.head))
        } else {
            Ok(())
        }
    }

    /// The next events for `cursor`: whole revisions until there are `max` events or more, at least one if any waits.
    /// No events: a bookmark.
    pub fn read(&self, cursor: &mut Cursor, max: usize) -> Result<Batch, Error> {
        self.check(cursor)?;
        let mut events: Vec<Event> = Vec::new();
        let mut rev = self.head;
        for event in self.wanted(cursor) {
            let begins_revision = events.last().is_none_or(|last| last.rev() != event.rev());
            if begins_revision && !events.is_empty() && events.len() >= max {
                rev = before(event.rev());
                break;
            }
            events.push(event.clone());
        }
        cursor.after = rev;
        Ok(Batch { rev, events })
    }

    /// Moves `cursor` to just before the next event that it wants, or to the head. True if there is such an event.
    ///
    /// Called for every cursor after every revision it lets none fall behind for what others write; the newest
    /// revision is never forgotten at once, so that this comes in time. A cursor that stands before an event it wants
    /// costs one search, one that stands at the last revision costs that revision.
    pub fn advance(&self, cursor: &mut Cursor) -> Result<bool, Error> {
        self.check(cursor)?;
        let next = self.wanted(cursor).next().map(Event::rev);
        cursor.after = next.map_or(self.head, before);
        Ok(next.is_some())
    }

    /// The events that `cursor` has not seen and wants.
    fn wanted(&self, cursor: &Cursor) -> impl Iterator<Item = &Event> {
        let start = self.events.partition_point(|event| event.rev() <= cursor.after);
        self.events.range(start..).filter(|event| cursor.span.contains(event.key()))
    }
}

/// What an event costs: its key, its value and its place in the ring. Not what the key held before: that is most often
/// the value of an earlier event in the window, and counted there.
#[must_use]
pub fn weight(event: &Event) -> usize {
    let bytes = |entry: &Entry| entry.key.len() + entry.value.len();
    size_of::<Event>() + event.entry().or(event.prev()).map_or(0, bytes)
}

/// The revision before one that has happened.
fn before(rev: Rev) -> Rev {
    Rev(rev.0 - 1)
}
