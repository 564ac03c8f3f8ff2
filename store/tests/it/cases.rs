//! Cases that happened to others, by their number.

use api::Rev;
use store::mvcc::RESTORE_STEP;
use store::{
    At, Command, Compare, Entry, Error, Incarnation, Keyspace, Limits, Memory, Op, Range, Span, Store, Token,
    Txn, Watch, Window,
};

use crate::block_on;

fn put(store: &Memory, key: &str) -> Token {
    block_on(store.txn(Txn::new().then(Op::put(key, "value")))).unwrap().head
}

fn entries(store: &Memory) -> Vec<Entry> {
    store.look(|keyspace| keyspace.iter(&Span::all()).cloned().collect())
}

/// A store of incarnation 1 with a backup, and the writes after the backup that are lost: the store restored as
/// incarnation 2, the token of the backup, and the last token that clients had seen.
fn restored() -> (Memory, Token, Token) {
    let store = Memory::new(Incarnation(1));
    put(&store, "a");
    let backup = put(&store, "b");
    let saved = entries(&store);
    put(&store, "lost");
    let seen = put(&store, "a");
    let restored = Keyspace::restored(Incarnation(2), backup, saved);
    (Memory::over(restored, Limits::default()), backup, seen)
}

#[test]
fn p106_revisions_never_go_down_in_an_incarnation() {
    let store = Memory::new(Incarnation(1));
    let mut seen = block_on(store.head()).unwrap();
    for n in 0..50_u32 {
        let write = match n % 5 {
            0 | 3 => Txn::new().then(Op::put("a", "x")),
            1 => Txn::new().then(Op::delete("a")),
            2 => Txn::new().when(Compare::Absent("b".into())),
            _ => Txn::new().then(Op::put("", "refused")),
        };
        let _ = block_on(store.txn(write));
        if n % 7 == 0 {
            block_on(store.compact(seen)).unwrap();
        }
        let now = block_on(store.head()).unwrap();
        assert!(now.rev >= seen.rev && now.incarnation == seen.incarnation);
        seen = now;
    }
}

#[test]
fn p106_restart_in_the_same_incarnation_keeps_the_revision() {
    let store = Memory::new(Incarnation(1));
    put(&store, "a");
    let head = put(&store, "a");
    let again = Memory::over(Keyspace::loaded(head, entries(&store)), Limits::default());
    assert_eq!(block_on(again.head()), Ok(head));
    assert!(put(&again, "a").rev > head.rev);
}

#[test]
fn p106_tokens_of_another_incarnation_are_refused() {
    let (store, backup, seen) = restored();
    let oldest = block_on(store.head()).unwrap().rev;
    for token in [backup, seen, Token { incarnation: Incarnation(1), rev: oldest }] {
        let refused = Some(Error::Compacted(oldest));
        assert_eq!(block_on(store.range(Range::of(Span::all()).at(token))).err(), refused);
        assert_eq!(block_on(store.watch(Span::all(), At::Exactly(token))).err(), refused);
        assert_eq!(block_on(store.compact(token)).err(), refused);
    }
    let late = Txn::new().when(Compare::Incarnation(Incarnation(1))).then(Op::put("a", "late"));
    assert!(!block_on(store.txn(late)).unwrap().succeeded);
}

#[test]
fn p106_bare_revisions_of_a_lost_life_are_refused() {
    // Clients of Kubernetes hold a number and no incarnation: the new life must not know any number of the old one.
    let (store, backup, seen) = restored();
    let head = block_on(store.head()).unwrap();
    assert_eq!(head.rev, Rev(backup.rev.0 + RESTORE_STEP));
    for bare in [backup.rev, seen.rev, Rev(seen.rev.0 + 1000)] {
        let token = head.at(bare);
        let refused = Some(Error::Compacted(head.rev));
        assert_eq!(block_on(store.range(Range::of(Span::all()).at(token))).err(), refused);
        assert_eq!(block_on(store.watch(Span::all(), At::Exactly(token))).err(), refused);
    }
}

#[test]
fn p106_full_relist_is_all_that_is_needed() {
    let (store, ..) = restored();
    let page = block_on(store.range(Range::of(Span::all()))).unwrap();
    assert_eq!(page.entries.iter().map(|entry| &*entry.key).collect::<Vec<_>>(), [b"a", b"b"]);
    let mut watch = block_on(store.watch(Span::all(), At::Exactly(page.at))).unwrap();
    let next = put(&store, "a");
    let batch = block_on(watch.next()).unwrap();
    assert_eq!((batch.rev, batch.events.len()), (next.rev, 1));
}

#[test]
fn p107_idle_watcher_recovers_from_any_revision_at_once() {
    let store = Memory::over(Keyspace::new(Incarnation(1)), Limits { events_max: 20, bytes_max: usize::MAX });
    let start = block_on(store.head()).unwrap();
    for _ in 0..50 {
        put(&store, "busy");
    }
    let head = block_on(store.head()).unwrap();
    for rev in start.rev.0..=head.rev.0 + 3 {
        // `block_on` panics if any of these waited for a write to the idle span.
        match block_on(store.watch(Span::prefix("idle/"), At::Exactly(head.at(Rev(rev))))) {
            Ok(mut watch) => {
                assert!((head.rev.0 - 20..=head.rev.0).contains(&rev), "{rev}");
                assert_eq!(block_on(watch.progress()), Ok(head.rev));
                if rev < head.rev.0 {
                    let batch = block_on(watch.next()).unwrap();
                    assert_eq!((batch.rev, batch.events.len()), (head.rev, 0));
                }
            }
            Err(Error::Compacted(oldest)) => assert!(rev < oldest.0, "{rev} is known"),
            Err(Error::Future(newest)) => assert!(rev > newest.0 && newest == head.rev, "{rev} has happened"),
            Err(other @ (Error::Refused(_) | Error::Unavailable | Error::Unknown)) => panic!("{other}"),
        }
    }
}

#[test]
fn p107_idle_watcher_recovers_after_a_restart_at_once() {
    // The window of a server that has just started is empty; the head is known all the same.
    let store = Memory::new(Incarnation(1));
    put(&store, "idle/1");
    let head = put(&store, "busy");
    let again = Memory::over(Keyspace::loaded(head, entries(&store)), Limits::default());
    let mut watch = block_on(again.watch(Span::prefix("idle/"), At::Exactly(head))).unwrap();
    assert_eq!(block_on(watch.progress()), Ok(head.rev));
    let list = block_on(again.range(Range::of(Span::prefix("idle/")).at(head))).unwrap();
    assert_eq!((list.entries.len(), list.at), (1, head), "no revision that was ever told is too large");
}

#[test]
fn p107_bookmark_moves_an_idle_watcher_on() {
    let store = Memory::over(Keyspace::new(Incarnation(1)), Limits { events_max: 4, bytes_max: usize::MAX });
    let mut watch = block_on(store.watch(Span::prefix("idle/"), At::Head)).unwrap();
    for n in 0..100 {
        let head = put(&store, "busy");
        if n % 30 == 29 {
            let bookmark = block_on(watch.progress()).unwrap();
            assert_eq!(bookmark, head.rev);
            // A client that reconnects with its bookmark is served, though nothing of its kind was ever written.
            watch = block_on(store.watch(Span::prefix("idle/"), At::Exactly(head.at(bookmark)))).unwrap();
        }
    }
    let written = put(&store, "idle/1");
    let batch = block_on(watch.next()).unwrap();
    assert_eq!((batch.rev, batch.events.len()), (written.rev, 1));
}

#[test]
fn p107_other_writes_do_not_push_a_cursor_out() {
    let mut keyspace = Keyspace::new(Incarnation(1));
    let mut window = Window::new(keyspace.head().rev, Limits { events_max: 2, bytes_max: usize::MAX });
    let mut moved = store::Cursor::new(Span::one("idle"), window.head());
    let mut left_alone = moved.clone();
    for _ in 0..10 {
        let (reply, events) = keyspace.fold(Command::Txn(Txn::new().then(Op::put("busy", "x")))).unwrap();
        window.push(reply.head.rev, events);
        assert_eq!(window.advance(&mut moved), Ok(false));
    }
    assert_eq!(moved.progress(), window.head());
    assert_eq!(
        window.read(&mut left_alone, 1),
        Err(Error::Compacted(window.floor())),
        "without the bookmark it is"
    );
}
