//! A store in memory: the law and the window behind one handle, on one thread.
//!
//! Responsible for: the whole [`Store`] contract without durability, for tests, for the simulator and for a cluster
//! that is meant to forget. Leaves durability to `engine`, and lost answers to the simulator, which wraps it.
//!
//! Every method does its work when it is polled first and never waits; only [`Watching`] waits, and is woken by the
//! write that it waits for.
//!
//! Invariants: the window's head is the keyspace's head; a registered cursor stands at the head, or just before an
//! event that it wants; nothing is borrowed while somebody else's code (a waker) runs.
//!
//! The failure it exists for: a stand-in for the real store that is kinder than the real store. It passes the same
//! suite and is built from the same parts.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use api::Rev;

use crate::key::Span;
use crate::mvcc::{Command, Keyspace};
use crate::txn::{Batch, Event, Page, Range, Reply, Txn};
use crate::window::{Cursor, Limits, Window};
use crate::{At, Error, Incarnation, Store, Token, Watch};

/// Most events of one batch, beyond which a further revision has to wait for the next. Bounds what a watcher that comes
/// back holds twice; at half, catching up takes twice the turns; at double, one watcher delays the others longer.
const BATCH_EVENTS_MAX: usize = 1024;

/// A store in memory. Cloning it gives another handle to the same store.
#[derive(Clone, Debug)]
pub struct Memory(Rc<RefCell<State>>);

/// A watch of a [`Memory`].
#[derive(Debug)]
pub struct Watching {
    store: Memory,
    id: u64,
}

#[derive(Debug)]
struct State {
    keyspace: Keyspace,
    window: Window,
    watchers: BTreeMap<u64, Watcher>,
    /// The id of the next watcher; ids are not used again.
    next_id: u64,
}

#[derive(Debug)]
struct Watcher {
    cursor: Cursor,
    /// Opened behind the head and not answered yet: owed at least a bookmark, even if its cursor was moved since.
    owed: bool,
    /// Who waits in [`Watch::next`]; absent while nobody does.
    waker: Option<Waker>,
}

// === impl Memory ===

impl Memory {
    /// An empty store with the limits of a server.
    #[must_use]
    pub fn new(incarnation: Incarnation) -> Self {
        Self::over(Keyspace::new(incarnation), Limits::default())
    }

    /// A store over what is there already.
    #[must_use]
    pub fn over(keyspace: Keyspace, limits: Limits) -> Self {
        let window = Window::new(keyspace.head().rev, limits);
        Self(Rc::new(RefCell::new(State { keyspace, window, watchers: BTreeMap::new(), next_id: 0 })))
    }

    /// Looks at the keyspace without copying. `look` must not write to the same store.
    pub fn look<T>(&self, look: impl FnOnce(&Keyspace) -> T) -> T {
        look(&self.0.borrow().keyspace)
    }

    /// Takes a command in, without waiting. [`Store::txn`] and [`Store::compact`] are this.
    pub fn fold(&self, command: Command) -> Result<Reply, Error> {
        let (reply, wakers) = self.0.borrow_mut().fold(command)?;
        // Only now: a waker may poll its watcher at once, which borrows the state.
        for waker in wakers {
            waker.wake();
        }
        Ok(reply)
    }
}

impl Store for Memory {
    type Watch = Watching;

    async fn txn(&self, txn: Txn) -> Result<Reply, Error> {
        self.fold(Command::Txn(txn))
    }

    async fn range(&self, range: Range) -> Result<Page, Error> {
        self.look(|keyspace| keyspace.range(&range))
    }

    async fn watch(&self, span: Span, after: At) -> Result<Watching, Error> {
        let id = self.0.borrow_mut().watch(span, after)?;
        Ok(Watching { store: self.clone(), id })
    }

    async fn head(&self) -> Result<Token, Error> {
        Ok(self.look(Keyspace::head))
    }

    async fn compact(&self, before: Token) -> Result<(), Error> {
        self.fold(Command::Compact(before)).map(|_| ())
    }
}

// === impl Watching ===

impl Watch for Watching {
    async fn next(&mut self) -> Result<Batch, Error> {
        poll_fn(|turn| self.store.0.borrow_mut().poll(self.id, turn.waker())).await
    }

    async fn progress(&mut self) -> Result<Rev, Error> {
        let state = &mut *self.store.0.borrow_mut();
        let cursor = &mut watcher(&mut state.watchers, self.id).cursor;
        state.window.advance(cursor)?;
        Ok(cursor.progress())
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.store.0.borrow_mut().watchers.remove(&self.id);
    }
}

// === impl State ===

impl State {
    /// The reply, and who has something to read now.
    fn fold(&mut self, command: Command) -> Result<(Reply, Vec<Waker>), Error> {
        let (reply, events) = self.keyspace.fold(command)?;
        self.window.forget(self.keyspace.floor().rev);
        let wakers = if events.is_empty() { Vec::new() } else { self.publish(reply.head.rev, events) };
        assert!(self.window.head() == self.keyspace.head().rev, "watchers hear of every revision");
        Ok((reply, wakers))
    }

    fn publish(&mut self, rev: Rev, events: Vec<Event>) -> Vec<Waker> {
        self.window.push(rev, events);
        let mut wakers = Vec::new();
        for watcher in self.watchers.values_mut() {
            // One that fell behind has no waker: it has had something to read for long and has not come.
            if self.window.advance(&mut watcher.cursor).unwrap_or(true) {
                wakers.extend(watcher.waker.take());
            }
        }
        wakers
    }

    fn watch(&mut self, span: Span, after: At) -> Result<u64, Error> {
        let after = self.keyspace.resolve(after)?;
        let mut cursor = Cursor::new(span, after);
        self.window.advance(&mut cursor)?;
        let id = self.next_id;
        self.next_id += 1;
        let owed = after < self.window.head();
        self.watchers.insert(id, Watcher { cursor, owed, waker: None });
        Ok(id)
    }

    fn poll(&mut self, id: u64, waker: &Waker) -> Poll<Result<Batch, Error>> {
        let watcher = watcher(&mut self.watchers, id);
        if watcher.cursor.progress() == self.window.head() && !watcher.owed {
            watcher.waker = Some(waker.clone());
            return Poll::Pending;
        }
        watcher.waker = None;
        watcher.owed = false;
        Poll::Ready(self.window.read(&mut watcher.cursor, BATCH_EVENTS_MAX))
    }
}

fn watcher(watchers: &mut BTreeMap<u64, Watcher>, id: u64) -> &mut Watcher {
    watchers.get_mut(&id).expect("a watcher is registered until its watch is dropped")
}
