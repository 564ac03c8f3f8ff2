//! The law of the store as a deterministic state machine: command in, reply and events out.
//!
//! Responsible for: revisions, versions, what each key held at each revision since the last compaction, the digest.
//! Leaves to [`crate::window`] how events reach watchers, to `engine` how commands become durable and in which order
//! they come, to the server when to compact.
//!
//! ```text
//!   live:  key ──► entry                              what is there now: reads at the head touch nothing else
//!   past:  key ──► [entry, until)[entry, until)...    what was there, each version with the revision that ended it
//!   order: (until, key), oldest first                 compaction pops from here and visits nothing else
//! ```
//!
//! A deletion needs no tombstone: it is the end of a version without a beginning of another.
//!
//! Invariants, asserted: the head never goes down; a command that changes something makes exactly one revision, one
//! that changes nothing makes none; a refused command changes nothing; the oldest readable revision is never above
//! the head. The same commands in the same order give the same digest on every machine.
//!
//! The failure it exists for: two replicas that drift apart, or a restored one that serves old revision numbers with
//! new contents (case P106). A broken assertion ends the process: a wrong memory is worse than none.

use std::collections::btree_map;
use std::collections::{BTreeMap, VecDeque};

use api::Rev;

use crate::digest::{Digest, Hash};
use crate::key::{Key, Span, Value};
use crate::txn::{Compare, Entry, Event, Op, Page, Range, Reply, Txn};
use crate::{At, Error, Incarnation, Token};

/// The head of a store that nobody has written to. As in etcd; 0 is never a revision, because Kubernetes clients say
/// 0 for "whatever you have".
pub const FIRST: Rev = Rev(1);

/// How far a restored store jumps ahead of its backup. Clients hold bare numbers of the lost life; all of these must
/// lie below what the new life can read. The value that etcd's own restore recommends: at 10,000 writes per second it
/// covers a backup that is a day old. At half, it covers half a day; double gains nothing.
pub const RESTORE_STEP: u64 = 1_000_000_000;

/// What a replica is told to do. Whatever is written to a log is one of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Carry out a transaction.
    Txn(Txn),
    /// Forget what reads below this revision need.
    Compact(Token),
}

/// All keys, now and back to the last compaction.
#[derive(Clone, Debug)]
pub struct Keyspace {
    incarnation: Incarnation,
    head: Rev,
    /// The oldest revision that can be read.
    floor: Rev,
    live: BTreeMap<Key, Version>,
    past: BTreeMap<Key, VecDeque<Past>>,
    /// When each version in `past` ended, in order; one item per version.
    order: VecDeque<(Rev, Key)>,
    /// The wrapping sum of the hashes of all versions in `live` and `past`.
    sum: u64,
}

/// An entry with its hash, so that taking it away does not read its value again.
#[derive(Clone, Debug)]
struct Version {
    entry: Entry,
    hash: u64,
}

/// A version that was there from its `mod_rev` to before `until`.
#[derive(Clone, Debug)]
struct Past {
    version: Version,
    until: Rev,
}

// === impl Keyspace ===

impl Keyspace {
    /// An empty store.
    #[must_use]
    pub fn new(incarnation: Incarnation) -> Self {
        Self::loaded(Token { incarnation, rev: FIRST }, [])
    }

    /// A store as it was at `head`, in the same life; older revisions are compacted.
    #[must_use]
    pub fn loaded(head: Token, entries: impl IntoIterator<Item = Entry>) -> Self {
        assert!(head.rev >= FIRST, "a store has a first revision");
        let mut live = BTreeMap::new();
        let mut sum = 0_u64;
        for entry in entries {
            assert!(
                entry.create_rev <= entry.mod_rev && entry.mod_rev <= head.rev,
                "an entry is from the past"
            );
            let version = Version::new(entry);
            sum = sum.wrapping_add(version.hash);
            let twice = live.insert(version.entry.key.clone(), version);
            assert!(twice.is_none(), "a key is loaded once");
        }
        Self {
            incarnation: head.incarnation,
            head: head.rev,
            floor: head.rev,
            live,
            past: BTreeMap::new(),
            order: VecDeque::new(),
            sum,
        }
    }

    /// A store restored from a backup that was taken at `backup`, as a new life.
    ///
    /// Writes after the backup are lost and clients remember them. So that none of their revisions is answered, the
    /// new life begins far above them: a token of the old life is refused by its incarnation, a bare number is below
    /// the oldest readable revision.
    #[must_use]
    pub fn restored(
        incarnation: Incarnation,
        backup: Token,
        entries: impl IntoIterator<Item = Entry>,
    ) -> Self {
        assert!(incarnation != backup.incarnation, "a restored store is another life");
        let rev = Rev(backup.rev.0 + RESTORE_STEP);
        Self::loaded(Token { incarnation, rev }, entries)
    }

    /// Takes a command into the state. On an error nothing has changed.
    pub fn fold(&mut self, command: Command) -> Result<(Reply, Vec<Event>), Error> {
        match command {
            Command::Txn(txn) => {
                txn.check()?;
                Ok(self.txn(txn))
            }
            Command::Compact(before) => {
                self.compact(before)?;
                Ok((Reply { head: self.head(), succeeded: true, results: Vec::new() }, Vec::new()))
            }
        }
    }

    /// Reads a span of keys.
    pub fn range(&self, range: &Range) -> Result<Page, Error> {
        let rev = self.resolve(range.at)?;
        let limit = range.limit.unwrap_or(usize::MAX);
        let page = |(entries, count): (Vec<Entry>, usize)| Page {
            at: Token { incarnation: self.incarnation, rev },
            more: count > entries.len(),
            entries,
            count,
        };
        if rev == self.head {
            Ok(page(cut(self.iter(&range.span), limit)))
        } else {
            Ok(page(cut(self.iter_at(&range.span, rev), limit)))
        }
    }

    /// What `key` holds at the head.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.live.get(key).map(|version| &version.entry)
    }

    /// What the keys of a span hold at the head, in order. Copies nothing.
    pub fn iter(&self, span: &Span) -> impl Iterator<Item = &Entry> {
        self.live.range::<[u8], _>(span.bounds()).map(|(_, version)| &version.entry)
    }

    /// The newest revision.
    #[must_use]
    pub fn head(&self) -> Token {
        Token { incarnation: self.incarnation, rev: self.head }
    }

    /// The oldest revision that can be read.
    #[must_use]
    pub fn floor(&self) -> Token {
        Token { incarnation: self.incarnation, rev: self.floor }
    }

    /// How many keys there are at the head.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// How many versions are kept for reads at older revisions: the measure by which the owner decides to compact.
    #[must_use]
    pub fn past_len(&self) -> usize {
        self.order.len()
    }

    /// Whether a revision can be read, and which it is.
    pub fn resolve(&self, at: At) -> Result<Rev, Error> {
        match at {
            At::Head => Ok(self.head),
            At::Exactly(token) if token.incarnation != self.incarnation => Err(Error::Compacted(self.floor)),
            At::Exactly(token) if token.rev < self.floor => Err(Error::Compacted(self.floor)),
            At::Exactly(token) if token.rev > self.head => Err(Error::Future(self.head)),
            At::Exactly(token) => Ok(token.rev),
        }
    }

    /// The digest of the whole state, in constant time.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest_of(self.sum)
    }

    /// The digest computed from every version anew. Differs from [`Keyspace::digest`] if memory and bookkeeping do.
    #[must_use]
    pub fn recount(&self) -> Digest {
        let live = self.live.values().map(|version| hash(&version.entry));
        let past = self.past.values().flatten().map(|past| ended(hash(&past.version.entry), past.until));
        self.digest_of(live.chain(past).fold(0, u64::wrapping_add))
    }

    fn digest_of(&self, sum: u64) -> Digest {
        let hash = Hash::new()
            .number(self.incarnation.0)
            .number(self.head.0)
            .number(self.floor.0)
            .number(self.live.len() as u64)
            .number(self.order.len() as u64)
            .number(sum);
        Digest(hash.finish())
    }

    fn txn(&mut self, txn: Txn) -> (Reply, Vec<Event>) {
        let succeeded = txn.compare.iter().all(|compare| self.holds(compare));
        let ops = if succeeded { txn.success } else { txn.failure };
        let rev = self.head.next();
        let mut events = Vec::new();
        let mut results = Vec::with_capacity(ops.len());
        for op in ops {
            let event = match op {
                Op::Put(key, value) => Some(self.put(rev, key, value)),
                Op::Delete(key) => self.delete(rev, &key),
                Op::Get(key) => {
                    results.push(self.get(&key).cloned());
                    continue;
                }
            };
            results.push(event.as_ref().and_then(Event::prev).cloned());
            events.extend(event);
        }
        if !events.is_empty() {
            self.head = rev;
        }
        (Reply { head: self.head(), succeeded, results }, events)
    }

    fn holds(&self, compare: &Compare) -> bool {
        match compare {
            Compare::Absent(key) => !self.live.contains_key(key),
            Compare::ModRev(key, rev) => self.get(key).is_some_and(|entry| entry.mod_rev == *rev),
            Compare::Value(key, value) => self.get(key).is_some_and(|entry| entry.value == *value),
            Compare::Incarnation(incarnation) => self.incarnation == *incarnation,
        }
    }

    fn put(&mut self, rev: Rev, key: Key, value: Value) -> Event {
        match self.live.entry(key) {
            btree_map::Entry::Vacant(slot) => {
                // The entry shares the bytes of the map's key: one allocation per key, whatever happens to it.
                let key = slot.key().clone();
                let entry = Entry { key, value, create_rev: rev, mod_rev: rev, version: 1 };
                let version = slot.insert(Version::new(entry));
                self.sum = self.sum.wrapping_add(version.hash);
                Event::Put { entry: version.entry.clone(), prev: None }
            }
            btree_map::Entry::Occupied(mut slot) => {
                let old = &slot.get().entry;
                let (key, create_rev, version) = (old.key.clone(), old.create_rev, old.version + 1);
                let entry = Entry { key, value, create_rev, mod_rev: rev, version };
                let version = Version::new(entry.clone());
                self.sum = self.sum.wrapping_add(version.hash);
                let old = slot.insert(version);
                let prev = Some(old.entry.clone());
                self.retire(old, rev);
                Event::Put { entry, prev }
            }
        }
    }

    fn delete(&mut self, rev: Rev, key: &Key) -> Option<Event> {
        let old = self.live.remove(key)?;
        let prev = old.entry.clone();
        self.retire(old, rev);
        Some(Event::Delete { rev, prev })
    }

    /// Keeps a version that `until` ended for reads at older revisions.
    fn retire(&mut self, version: Version, until: Rev) {
        assert!(version.entry.mod_rev < until, "a version ends after it began");
        self.sum = self.sum.wrapping_sub(version.hash).wrapping_add(ended(version.hash, until));
        let key = version.entry.key.clone();
        self.order.push_back((until, key.clone()));
        self.past.entry(key).or_default().push_back(Past { version, until });
    }

    fn compact(&mut self, before: Token) -> Result<(), Error> {
        // Compacted twice is compacted: the caller may be repeating a request whose answer was lost.
        if before.incarnation == self.incarnation && before.rev <= self.floor {
            return Ok(());
        }
        let rev = self.resolve(At::Exactly(before))?;
        // A version that ended at or before `rev` cannot be seen at `rev` or later.
        while let Some((_, key)) = self.order.pop_front_if(|(until, _)| *until <= rev) {
            let versions = self.past.get_mut(&key).expect("every version in `order` is in `past`");
            let gone = versions.pop_front().expect("a key without past versions is not in `past`");
            self.sum = self.sum.wrapping_sub(ended(gone.version.hash, gone.until));
            if versions.is_empty() {
                self.past.remove(&key);
            }
        }
        self.floor = rev;
        assert!(self.floor <= self.head, "what is there now stays readable");
        Ok(())
    }

    /// What the keys of a span held at `rev`, in order: a merge of what is there with what was.
    fn iter_at(&self, span: &Span, rev: Rev) -> impl Iterator<Item = &Entry> {
        let mut live = self.live.range::<[u8], _>(span.bounds()).peekable();
        let mut past = self.past.range::<[u8], _>(span.bounds()).peekable();
        let next_key = move || {
            let first = match (live.peek(), past.peek()) {
                (None, None) => return None,
                (Some((key, _)), None) | (None, Some((key, _))) => *key,
                (Some((a, _)), Some((b, _))) => (*a).min(*b),
            };
            let now = live.next_if(|(key, _)| *key == first).map(|(_, version)| version);
            let before = past.next_if(|(key, _)| *key == first).map(|(_, versions)| versions);
            Some((now, before))
        };
        std::iter::from_fn(next_key).filter_map(move |(now, before)| {
            let now = now.map(|version| &version.entry).filter(|entry| entry.mod_rev <= rev);
            now.or_else(|| seen_at(before?, rev))
        })
    }
}

// === impl Version ===

impl Version {
    fn new(entry: Entry) -> Self {
        let hash = hash(&entry);
        Self { entry, hash }
    }
}

/// The version that was there at `rev`, if any.
fn seen_at(versions: &VecDeque<Past>, rev: Rev) -> Option<&Entry> {
    let index = versions.partition_point(|past| past.until <= rev);
    versions.get(index).map(|past| &past.version.entry).filter(|entry| entry.mod_rev <= rev)
}

/// The first `limit` entries, and how many there are.
fn cut<'a>(mut entries: impl Iterator<Item = &'a Entry>, limit: usize) -> (Vec<Entry>, usize) {
    let first: Vec<Entry> = entries.by_ref().take(limit).cloned().collect();
    let count = first.len() + entries.count();
    (first, count)
}

fn hash(entry: &Entry) -> u64 {
    Hash::new()
        .number(entry.create_rev.0)
        .number(entry.mod_rev.0)
        .number(entry.version)
        .bytes(&entry.key)
        .bytes(&entry.value)
        .finish()
}

/// The hash of a version that is over: another than while it was there.
fn ended(hash: u64, until: Rev) -> u64 {
    Hash::new().number(hash).number(until.0).finish()
}
