//! The watch window: each cursor is told everything once and in order, or that it fell behind.

use api::Rev;
use proptest::collection::vec;
use proptest::prelude::*;
use store::window::weight;
use store::{
    At, Command, Cursor, Error, Event, Incarnation, Keyspace, Limits, Memory, Op, Span, Store, Txn, Watch,
    Window,
};

use crate::block_on;

const KEYS: [&str; 5] = ["a", "a/1", "a/2", "b", "c"];

/// A write of some keys at once: each is put, or deleted if it exists and its turn is odd.
fn write(keyspace: &mut Keyspace, mask: usize, odd: bool) -> Vec<Event> {
    let ops = KEYS.iter().enumerate().filter(|(n, _)| mask & (1 << n) != 0);
    let ops = ops.map(|(_, key)| if odd { Op::delete(*key) } else { Op::put(*key, "value") }).collect();
    keyspace.fold(Command::Txn(Txn { success: ops, ..Txn::new() })).unwrap().1
}

#[derive(Clone, Debug)]
enum Step {
    Write(usize, bool),
    /// Reader and most events.
    Read(usize, usize),
    Advance(usize),
    /// Forget up to so many revisions below the head.
    Forget(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..32_usize, any::<bool>()).prop_map(|(mask, odd)| Step::Write(mask, odd)),
        4 => (0..4_usize, 0..6_usize).prop_map(|(reader, max)| Step::Read(reader, max)),
        1 => (0..4_usize).prop_map(Step::Advance),
        1 => (2..12_u64).prop_map(Step::Forget),
    ]
}

struct Reader {
    cursor: Cursor,
    told: Vec<Event>,
    behind: bool,
}

proptest! {
    #[test]
    fn cursors_are_told_all_or_that_they_fell_behind(
        steps in vec(step(), 1..120), events_max in 1..30_usize, revs_bytes in 1..6_usize,
    ) {
        let mut keyspace = Keyspace::new(Incarnation(1));
        let start = keyspace.head().rev;
        // Some of the windows are limited by their events, some by their bytes.
        let bytes_max = if revs_bytes == 5 { usize::MAX } else { revs_bytes * 2000 };
        let mut window = Window::new(start, Limits { events_max, bytes_max });
        let mut all: Vec<Event> = Vec::new();
        let spans = [Span::all(), Span::prefix("a"), Span::one("b"), Span::one("idle")];
        let mut readers = spans.map(|span| Reader { cursor: Cursor::new(span, start), told: Vec::new(), behind: false });
        for step in steps {
            match step {
                Step::Write(mask, odd) => {
                    let events = write(&mut keyspace, mask, odd);
                    if !events.is_empty() {
                        all.extend(events.iter().cloned());
                        window.push(keyspace.head().rev, events);
                    }
                }
                Step::Forget(back) => window.forget(Rev(window.head().0.saturating_sub(back))),
                Step::Advance(n) => {
                    let reader = &mut readers[n];
                    let wants = window.advance(&mut reader.cursor);
                    reader.behind |= wants.is_err();
                    if wants == Ok(false) {
                        prop_assert_eq!(reader.cursor.progress(), window.head());
                    }
                }
                Step::Read(n, max) => {
                    let Reader { cursor, told, behind } = &mut readers[n];
                    let before = cursor.progress();
                    match window.read(cursor, max) {
                        Ok(batch) => {
                            prop_assert!(!*behind, "who fell behind stays behind");
                            prop_assert_eq!(batch.rev, cursor.progress());
                            prop_assert!(batch.rev >= before);
                            told.extend(batch.events);
                        }
                        Err(error) => {
                            prop_assert_eq!(error, Error::Compacted(window.floor()));
                            *behind = true;
                        }
                    }
                }
            }
            for Reader { cursor, told, .. } in &readers {
                let is_due = |event: &&Event| cursor.span().contains(event.key()) && event.rev() <= cursor.progress();
                prop_assert_eq!(told, &all.iter().filter(is_due).cloned().collect::<Vec<_>>());
            }
            prop_assert!(window.len() <= events_max.max(KEYS.len()));
        }
    }

    #[test]
    fn only_own_events_make_a_cursor_fall_behind(writes in vec((1..32_usize, any::<bool>()), 1..200)) {
        let mut keyspace = Keyspace::new(Incarnation(1));
        let mut window = Window::new(keyspace.head().rev, Limits { events_max: 6, bytes_max: usize::MAX });
        let mut idle = Cursor::new(Span::one("idle"), window.head());
        let mut slow = Cursor::new(Span::one("c"), window.head());
        for (mask, odd) in writes {
            let events = write(&mut keyspace, mask, odd);
            if events.is_empty() {
                continue;
            }
            window.push(keyspace.head().rev, events);
            prop_assert_eq!(window.advance(&mut idle), Ok(false));
            match window.advance(&mut slow) {
                Ok(true) => prop_assert!(slow.progress() < window.head()),
                Ok(false) => prop_assert_eq!(slow.progress(), window.head()),
                // The event it waited with was the next one, and that has been forgotten.
                Err(error) => {
                    prop_assert_eq!(error, Error::Compacted(window.floor()));
                    prop_assert!(slow.progress() < window.floor());
                    break;
                }
            }
        }
    }

    #[test]
    fn watches_see_what_was_written(
        steps in vec((1..32_usize, any::<bool>(), any::<bool>()), 1..60), start in 0..60_usize,
    ) {
        let store = Memory::new(Incarnation(1));
        let mut watching = None;
        let mut expected = Vec::new();
        let mut told = Vec::new();
        for (n, (mask, odd, reads)) in steps.into_iter().enumerate() {
            if n == start {
                watching = Some(block_on(store.watch(Span::prefix("a"), At::Head)).unwrap());
            }
            let mut copy = store.look(Keyspace::clone);
            let events = write(&mut copy, mask, odd);
            let ops = KEYS.iter().enumerate().filter(|(n, _)| mask & (1 << n) != 0);
            let ops = ops.map(|(_, key)| if odd { Op::delete(*key) } else { Op::put(*key, "value") }).collect();
            block_on(store.txn(Txn { success: ops, ..Txn::new() })).unwrap();
            prop_assert_eq!(store.look(Keyspace::digest), copy.digest());
            if let Some(watching) = &mut watching {
                expected.extend(events.into_iter().filter(|event| event.key().starts_with(b"a")));
                while reads && told.len() < expected.len() {
                    told.extend(block_on(watching.next()).unwrap().events);
                }
            }
        }
        while told.len() < expected.len() {
            told.extend(block_on(watching.as_mut().unwrap().next()).unwrap().events);
        }
        prop_assert_eq!(told, expected);
    }
}

#[test]
fn bytes_limit_the_window() {
    let mut keyspace = Keyspace::new(Incarnation(1));
    let first = write(&mut keyspace, 1, false);
    let bytes_max = 3 * weight(&first[0]);
    let mut window = Window::new(Rev(1), Limits { events_max: usize::MAX, bytes_max });
    window.push(Rev(2), first);
    for _ in 0..9 {
        let events = write(&mut keyspace, 1, false);
        window.push(keyspace.head().rev, events);
    }
    assert_eq!((window.len(), window.floor(), window.head()), (3, Rev(8), Rev(11)));
}

#[test]
fn newest_revision_stays_whatever_its_size() {
    let mut keyspace = Keyspace::new(Incarnation(1));
    let mut window = Window::new(Rev(1), Limits { events_max: 1, bytes_max: 1 });
    let mut cursor = Cursor::new(Span::all(), Rev(1));
    let events = write(&mut keyspace, 0b1_1111, false);
    window.push(keyspace.head().rev, events);
    assert_eq!(window.read(&mut cursor, 1).unwrap().events.len(), 5);
    let events = write(&mut keyspace, 1, false);
    window.push(keyspace.head().rev, events);
    assert_eq!((window.len(), window.floor()), (1, Rev(2)));
}

#[test]
fn batch_ends_between_revisions() {
    let mut keyspace = Keyspace::new(Incarnation(1));
    let mut window = Window::new(Rev(1), Limits::SERVER);
    for _ in 0..4 {
        let events = write(&mut keyspace, 0b0_1111, false);
        window.push(keyspace.head().rev, events);
    }
    let mut cursor = Cursor::new(Span::prefix("a"), Rev(1));
    let sizes: Vec<(usize, u64)> = (0..4)
        .map(|_| window.read(&mut cursor, 4).unwrap())
        .map(|batch| (batch.events.len(), batch.rev.0))
        .collect();
    assert_eq!(sizes, [(6, 3), (6, 5), (0, 5), (0, 5)]);
}

#[test]
fn compaction_makes_an_event_that_waits_unknown() {
    // As etcd may do it: whoever writes for the store in memory must not learn that compaction is harmless.
    let store = Memory::new(Incarnation(1));
    let mut waits = block_on(store.watch(Span::one("a"), At::Head)).unwrap();
    let mut idle = block_on(store.watch(Span::one("b"), At::Head)).unwrap();
    let head = block_on(store.txn(Txn::new().then(Op::put("a", "x")))).unwrap().head;
    block_on(store.compact(head)).unwrap();
    assert_eq!(block_on(waits.next()), Err(Error::Compacted(head.rev)));
    assert_eq!(block_on(waits.progress()), Err(Error::Compacted(head.rev)));
    assert_eq!(block_on(idle.progress()), Ok(head.rev));
}
