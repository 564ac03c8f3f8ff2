//! The behaviour suite against the store in memory.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use store::suite::{self, BEHIND_MIN, Behaviour};
use store::{Incarnation, Keyspace, Limits, Memory, Op, Span, Token, Txn, Value};

use crate::block_on;

/// Runs the whole suite and names everything that fails.
fn conforms(fresh: impl Fn() -> Memory) {
    let fails = |behaviour: &Behaviour<Memory>| {
        catch_unwind(AssertUnwindSafe(|| block_on((behaviour.run)(fresh())))).is_err()
    };
    let failed: Vec<String> = suite::all::<Memory>()
        .iter()
        .filter(|behaviour| fails(behaviour))
        .map(|behaviour| format!("{}: {}", behaviour.name, behaviour.promise))
        .collect();
    assert!(failed.is_empty(), "broken promises:\n{}", failed.join("\n"));
}

#[test]
fn memory_conforms() {
    conforms(|| Memory::new(Incarnation(7)));
}

#[test]
fn memory_with_the_smallest_window_conforms() {
    let limits = Limits { events_max: BEHIND_MIN, bytes_max: usize::MAX };
    conforms(|| Memory::over(Keyspace::new(Incarnation(7)), limits));
}

#[test]
fn restored_memory_conforms() {
    let backup = Token { incarnation: Incarnation(1), rev: api::Rev(12_345) };
    conforms(|| Memory::over(Keyspace::restored(Incarnation(2), backup, []), Limits::default()));
}

#[test]
fn behaviours_have_one_name_and_one_sentence() {
    let behaviours = suite::all::<Memory>();
    let names: BTreeSet<_> = behaviours.iter().map(|behaviour| behaviour.name).collect();
    assert_eq!(names.len(), behaviours.len());
    assert!(behaviours.len() >= 30, "{} behaviours", behaviours.len());
    assert!(behaviours.iter().all(|behaviour| behaviour.promise.ends_with('.')));
}

#[test]
fn large_store_reads_its_head_without_history() {
    // The size of a large simulated cluster. Not a benchmark: it fails only if something becomes quadratic.
    let mut keyspace = Keyspace::new(Incarnation(1));
    let value = Value::from(vec![b'v'; 300]);
    for n in 0..200_000_u32 {
        let txn = Txn::new().then(Op::put(format!("pods/{:05}", n % 30_000), value.clone()));
        keyspace.fold(store::Command::Txn(txn)).unwrap();
        if n % 10_000 == 9_999 {
            keyspace.fold(store::Command::Compact(keyspace.head())).unwrap();
        }
    }
    assert_eq!((keyspace.len(), keyspace.past_len()), (30_000, 0));
    assert_eq!(keyspace.iter(&Span::prefix("pods/2")).count(), 10_000);
    assert_eq!(keyspace.digest(), keyspace.recount());
}
