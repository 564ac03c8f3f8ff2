//! The law of the store against a naive model that keeps a copy of everything at every revision.

use std::collections::BTreeMap;

use api::Rev;
use proptest::collection::vec;
use proptest::prelude::*;
use store::{
    At, Command, Compare, Entry, Error, Event, Incarnation, Key, Keyspace, Op, Range, Reply, Span, Token,
    Txn, Value,
};

/// All keys at one revision.
type Moment = BTreeMap<Key, Entry>;

/// What was there at every revision: `moments[n]` at revision `n + 1`.
struct Model {
    incarnation: Incarnation,
    floor: Rev,
    moments: Vec<Moment>,
}

impl Model {
    fn new(incarnation: Incarnation) -> Self {
        Self { incarnation, floor: Rev(1), moments: vec![Moment::new()] }
    }

    fn head(&self) -> Rev {
        Rev(self.moments.len().try_into().unwrap())
    }

    fn moment(&self, rev: Rev) -> &Moment {
        &self.moments[usize::try_from(rev.0).unwrap() - 1]
    }

    fn token(&self) -> Token {
        Token { incarnation: self.incarnation, rev: self.head() }
    }

    fn fold(&mut self, txn: &Txn) -> (Reply, Vec<Event>) {
        let mut now = self.moment(self.head()).clone();
        let holds = |compare: &Compare| match compare {
            Compare::Absent(key) => !now.contains_key(key),
            Compare::ModRev(key, rev) => now.get(key).map(|entry| entry.mod_rev) == Some(*rev),
            Compare::Value(key, value) => now.get(key).map(|entry| &entry.value) == Some(value),
            Compare::Incarnation(incarnation) => *incarnation == self.incarnation,
        };
        let succeeded = txn.compare.iter().all(holds);
        let rev = self.head().next();
        let mut events = Vec::new();
        let mut results = Vec::new();
        for op in if succeeded { &txn.success } else { &txn.failure } {
            match op {
                Op::Put(key, value) => {
                    let prev = now.get(key).cloned();
                    let entry = Entry {
                        key: key.clone(),
                        value: value.clone(),
                        create_rev: prev.as_ref().map_or(rev, |prev| prev.create_rev),
                        mod_rev: rev,
                        version: prev.as_ref().map_or(0, |prev| prev.version) + 1,
                    };
                    now.insert(key.clone(), entry.clone());
                    results.push(prev.clone());
                    events.push(Event::Put { entry, prev });
                }
                Op::Delete(key) => {
                    let prev = now.remove(key);
                    results.push(prev.clone());
                    events.extend(prev.map(|prev| Event::Delete { rev, prev }));
                }
                Op::Get(key) => results.push(now.get(key).cloned()),
            }
        }
        if !events.is_empty() {
            self.moments.push(now);
        }
        (Reply { head: self.token(), succeeded, results }, events)
    }

    fn compact(&mut self, rev: Rev) -> Result<(), Error> {
        if rev > self.head() {
            return Err(Error::Future(self.head()));
        }
        self.floor = self.floor.max(rev);
        Ok(())
    }

    fn range(&self, span: &Span, rev: Rev, limit: usize) -> Result<(Vec<Entry>, usize), Error> {
        if rev < self.floor {
            return Err(Error::Compacted(self.floor));
        }
        if rev > self.head() {
            return Err(Error::Future(self.head()));
        }
        let all: Vec<Entry> =
            self.moment(rev).values().filter(|entry| span.contains(&entry.key)).cloned().collect();
        Ok((all.iter().take(limit).cloned().collect(), all.len()))
    }
}

/// What is asked of both.
#[derive(Clone, Debug)]
enum Step {
    Txn(Txn),
    /// Compact so many revisions below the head; negative is the future.
    Compact(i64),
    /// Read a span so many revisions below the head.
    Read(Span, i64, usize),
}

fn key() -> impl Strategy<Value = Key> {
    // Few keys, so that they meet; some are prefixes of others and some have the largest byte.
    prop::sample::select(vec![&b"a"[..], b"a\0", b"a/1", b"a/2", b"b", b"\xff", b"\xff\xff"])
        .prop_map(Key::from)
}

fn value() -> impl Strategy<Value = Value> {
    vec(0..3_u8, 0..12).prop_map(Value::from)
}

fn span() -> impl Strategy<Value = Span> {
    prop_oneof![
        Just(Span::all()),
        key().prop_map(Span::one),
        key().prop_map(Span::prefix),
        (key(), key()).prop_map(|(from, until)| Span::between(from, until)),
    ]
}

fn compare() -> impl Strategy<Value = Compare> {
    prop_oneof![
        key().prop_map(Compare::Absent),
        (key(), 1..40_u64).prop_map(|(key, rev)| Compare::ModRev(key, Rev(rev))),
        (key(), value()).prop_map(|(key, value)| Compare::Value(key, value)),
        (1..3_u64).prop_map(|n| Compare::Incarnation(Incarnation(n))),
    ]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        4 => (key(), value()).prop_map(|(key, value)| Op::Put(key, value)),
        2 => key().prop_map(Op::Delete),
        1 => key().prop_map(Op::Get),
    ];
    vec(op, 0..4)
}

fn txn() -> impl Strategy<Value = Txn> {
    (vec(compare(), 0..2), ops(), ops()).prop_map(|(compare, success, failure)| Txn {
        compare,
        success,
        failure,
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => txn().prop_map(Step::Txn),
        1 => (-1..10_i64).prop_map(Step::Compact),
        4 => (span(), -1..12_i64, 0..5_usize).prop_map(|(span, back, limit)| Step::Read(span, back, limit)),
    ]
}

fn back(head: Rev, back: i64) -> Rev {
    Rev(head.0.saturating_add_signed(-back))
}

proptest! {
    #[test]
    fn keyspace_is_the_model(steps in vec(step(), 1..80)) {
        let mut model = Model::new(Incarnation(1));
        let mut keyspace = Keyspace::new(Incarnation(1));
        for step in steps {
            let before = (keyspace.head(), keyspace.digest());
            match step {
                Step::Txn(txn) => match txn.check() {
                    Ok(()) => prop_assert_eq!(keyspace.fold(Command::Txn(txn.clone())), Ok(model.fold(&txn))),
                    Err(refusal) => {
                        prop_assert_eq!(keyspace.fold(Command::Txn(txn)), Err(Error::Refused(refusal)));
                        prop_assert_eq!((keyspace.head(), keyspace.digest()), before);
                    }
                },
                Step::Compact(n) => {
                    let rev = back(model.head(), n);
                    let done = keyspace.fold(Command::Compact(model.token().at(rev)));
                    prop_assert_eq!(done.map(|_| ()), model.compact(rev));
                }
                Step::Read(span, n, limit) => {
                    let rev = back(model.head(), n);
                    let range = Range { span: span.clone(), at: At::Exactly(model.token().at(rev)), limit: Some(limit) };
                    let page = keyspace.range(&range);
                    if let Ok(page) = &page {
                        prop_assert_eq!(page.at.rev, rev);
                        prop_assert_eq!(page.more, page.count > page.entries.len());
                    }
                    prop_assert_eq!(page.map(|page| (page.entries, page.count)), model.range(&span, rev, limit));
                }
            }
            prop_assert_eq!(keyspace.head(), model.token());
            prop_assert!(keyspace.head().rev >= before.0.rev);
            prop_assert_eq!(keyspace.digest(), keyspace.recount());
        }
        // Every moment that can be read, once more, after everything that happened to it.
        for rev in keyspace.floor().rev.0..=model.head().0 {
            let page = keyspace.range(&Range::of(Span::all()).at(model.token().at(Rev(rev)))).unwrap();
            prop_assert_eq!(page.entries, model.moment(Rev(rev)).values().cloned().collect::<Vec<_>>());
        }
    }

    #[test]
    fn replicas_agree(txns in vec(txn(), 1..40), compact in 0..40_usize) {
        let mut replicas = [Keyspace::new(Incarnation(1)), Keyspace::new(Incarnation(1))];
        for (n, txn) in txns.into_iter().enumerate() {
            let results = replicas.each_mut().map(|replica| {
                let result = replica.fold(Command::Txn(txn.clone()));
                if n == compact {
                    replica.fold(Command::Compact(replica.head())).unwrap();
                }
                result
            });
            prop_assert_eq!(&results[0], &results[1]);
            prop_assert_eq!(replicas[0].digest(), replicas[1].digest());
        }
    }

    #[test]
    fn digest_sees_every_difference(txns in vec(txn(), 1..20), key in key(), value in value()) {
        let mut keyspace = Keyspace::new(Incarnation(1));
        for txn in txns {
            // Refused ones are no part of this.
            let _ = keyspace.fold(Command::Txn(txn));
        }
        let mut other = keyspace.clone();
        other.fold(Command::Txn(Txn::new().then(Op::Put(key.clone(), value.clone())))).unwrap();
        keyspace.fold(Command::Txn(Txn::new().then(Op::Put(key, Value::from("none of the values"))))).unwrap();
        prop_assert_eq!(keyspace.head(), other.head());
        prop_assert_ne!(keyspace.digest(), other.digest());
    }

    #[test]
    fn loaded_is_what_was_compacted(txns in vec(txn(), 1..40)) {
        let mut keyspace = Keyspace::new(Incarnation(1));
        for txn in txns {
            let _ = keyspace.fold(Command::Txn(txn));
        }
        keyspace.fold(Command::Compact(keyspace.head())).unwrap();
        let loaded = Keyspace::loaded(keyspace.head(), keyspace.iter(&Span::all()).cloned());
        prop_assert_eq!(loaded.digest(), keyspace.digest());
        let other = Token { incarnation: Incarnation(2), rev: keyspace.head().rev };
        let other = Keyspace::loaded(other, keyspace.iter(&Span::all()).cloned());
        prop_assert_ne!(other.digest(), keyspace.digest());
    }
}
