//! The behaviours that every store must show: one list, run against each of them.
//!
//! Responsible for: saying in running code what [`crate::Store`] means, by its trait alone. Leaves to each store's
//! tests what only that store has (durability, limits of a window, lost answers), and to them an executor and a time
//! limit: a behaviour that waits for ever is a store that does not wake its watchers.
//!
//! A behaviour is given an empty store that nobody else writes to. It must not assume at which revision that store
//! begins, for a restored one begins far up; only that each change makes the next. The store must let a watcher be at
//! least [`BEHIND_MIN`] events behind.
//!
//! ```ignore
//! for behaviour in suite::all() {
//!     run((behaviour.run)(Memory::new(Incarnation(1))));
//! }
//! ```
//!
//! Invariants: a behaviour states one promise; it fails by a panic that names what was expected; it needs no clock.
//! "Nothing arrives" is shown by what arrives next, never by waiting.
//!
//! The failure it exists for: a promise that holds in memory, where everything is tested, and not in production.

mod read;
mod watch;
mod write;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use api::Rev;

use crate::{
    At, Compare, Entry, Error, Event, Key, Op, Page, Range, Reply, Span, Store, Token, Txn, Value, Watch,
};

/// How many events a watcher may be behind in every store that is run: what a client needs to come back after a
/// short cut.
pub const BEHIND_MIN: usize = 256;

/// A behaviour on its way.
pub type Running = Pin<Box<dyn Future<Output = ()>>>;

/// One promise with the code that tries it.
#[derive(Clone, Copy, Debug)]
pub struct Behaviour<S> {
    /// A name, unlike all others.
    pub name: &'static str,
    /// What is promised, in one sentence.
    pub promise: &'static str,
    /// Tries it on an empty store; panics if the promise is broken.
    pub run: fn(S) -> Running,
}

/// All behaviours, in the order in which a new store should be made to show them.
///
/// A function and not a static slice, because a static cannot be generic over the store.
#[must_use]
pub fn all<S: Store + 'static>() -> Vec<Behaviour<S>> {
    let mut all = write::conditions();
    all.extend(write::effects());
    all.extend(write::limits());
    all.extend(read::spans());
    all.extend(read::revisions());
    all.extend(watch::events());
    all.extend(watch::places());
    all.extend(watch::waiting());
    all
}

// === impl Behaviour ===

impl<S> Behaviour<S> {
    const fn new(name: &'static str, promise: &'static str, run: fn(S) -> Running) -> Self {
        Self { name, promise, run }
    }
}

async fn txn<S: Store>(store: &S, txn: Txn) -> Reply {
    store.txn(txn).await.expect("a legal transaction is answered")
}

/// Puts without a condition. The revision.
async fn put<S: Store>(store: &S, key: impl Into<Key>, value: impl Into<Value>) -> Rev {
    txn(store, Txn::new().then(Op::put(key, value))).await.head.rev
}

/// Deletes what is there. The revision.
async fn delete<S: Store>(store: &S, key: impl Into<Key>) -> Rev {
    txn(store, Txn::new().then(Op::delete(key))).await.head.rev
}

async fn head<S: Store>(store: &S) -> Token {
    store.head().await.expect("the head is answered")
}

async fn range<S: Store>(store: &S, range: Range) -> Page {
    store.range(range).await.expect("a known revision is answered")
}

async fn get<S: Store>(store: &S, key: &str) -> Option<Entry> {
    range(store, Range::of(Span::one(key))).await.entries.pop()
}

async fn watch<S: Store>(store: &S, span: Span, after: At) -> S::Watch {
    store.watch(span, after).await.expect("a known revision is watched")
}

/// The error of a watch that cannot be: when it is opened or, as etcd does it, when it is first asked.
async fn watch_error<S: Store>(store: &S, span: Span, after: Token) -> Option<Error> {
    match store.watch(span, At::Exactly(after)).await {
        Ok(mut watch) => watch.next().await.err(),
        Err(error) => Some(error),
    }
}

/// The next events until there are `count` or more. Tries on the way what holds for every batch.
async fn told(watch: &mut impl Watch, count: usize) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    while events.len() < count {
        let batch = watch.next().await.expect("the watch goes on");
        let seen = events.last().map_or(Rev(0), Event::rev);
        let first = batch.events.first().map_or(Rev(u64::MAX), Event::rev);
        assert!(first > seen, "a revision is told as a whole and once: {first} after {seen}");
        assert!(batch.events.is_sorted_by_key(Event::rev), "events are told in order: {:?}", batch.events);
        assert!(batch.events.iter().all(|event| event.rev() <= batch.rev), "a batch covers its events");
        events.extend(batch.events);
    }
    events
}

/// Events as text: `2 put a=x`, `3 put a=y was x`, `4 delete a was y`. Revisions are counted from `base`.
fn text(base: Rev, events: &[Event]) -> Vec<String> {
    events.iter().map(|event| line(base, event)).collect()
}

fn line(base: Rev, event: &Event) -> String {
    let rev = event.rev().0 - base.0;
    let key = event.key().escape_ascii();
    let was = event.prev().map_or(String::new(), |prev| format!(" was {}", prev.value.escape_ascii()));
    match event {
        Event::Put { entry, .. } => format!("{rev} put {key}={}{was}", entry.value.escape_ascii()),
        Event::Delete { .. } => format!("{rev} delete {key}{was}"),
    }
}

/// Entries as text: `a=x`.
fn pairs(entries: &[Entry]) -> Vec<String> {
    entries
        .iter()
        .map(|entry| format!("{}={}", entry.key.escape_ascii(), entry.value.escape_ascii()))
        .collect()
}

/// Guards a write by what a key was changed last by.
fn at_rev(key: &str, rev: Rev) -> Compare {
    Compare::ModRev(Key::from(key), rev)
}

fn absent(key: &str) -> Compare {
    Compare::Absent(Key::from(key))
}

/// Polls `first` until it waits, runs `second`, then goes on with `first` once the store has woken it: a store that
/// forgets to do so hangs here.
async fn meanwhile<T>(first: impl Future<Output = T>, second: impl Future<Output = ()>) -> T {
    let mut first = pin!(first);
    let bell = |turn: &mut Context<'_>| Bell { rung: AtomicBool::new(false), outer: turn.waker().clone() };
    let bell = Arc::new(poll_fn(|turn| Poll::Ready(bell(turn))).await);
    let waker = Waker::from(Arc::clone(&bell));
    assert!(first.as_mut().poll(&mut Context::from_waker(&waker)).is_pending(), "it waits");
    second.await;
    poll_fn(|_| match bell.rung.swap(false, Ordering::Relaxed) {
        true => first.as_mut().poll(&mut Context::from_waker(&waker)),
        false => Poll::Pending,
    })
    .await
}

/// Remembers that it was rung: a future that is polled for another reason must not look as if it had been woken.
struct Bell {
    rung: AtomicBool,
    /// Who runs the behaviour.
    outer: Waker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rung.store(true, Ordering::Relaxed);
        self.outer.wake_by_ref();
    }
}

/// Polls once and drops, as a caller does who waits for several things at once.
async fn give_up<T>(future: impl Future<Output = T>) {
    let mut future = pin!(future);
    let early = poll_fn(|turn| Poll::Ready(future.as_mut().poll(turn))).await;
    assert!(early.is_pending(), "it waits");
}
