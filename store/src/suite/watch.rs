//! What a watch promises: every event of its span, once and in order, or an honest "you fell behind".
//!
//! Responsible for the behaviours of [`Store::watch`] and [`Watch`]. Leaves writes and reads to its neighbours.
//!
//! The failures it exists for: an event lost between a list and its watch; half a transaction shown to a watcher; a
//! slow watcher that misses something and is not told; an idle watcher that is thrown out because others write.

use super::{
    BEHIND_MIN, Behaviour, absent, delete, get, give_up, head, meanwhile, pairs, put, range, text, told, txn,
    watch, watch_error,
};
use crate::{At, Error, Event, Op, Range, Span, Store, Txn, Watch};

pub(super) fn events<S: Store + 'static>() -> Vec<Behaviour<S>> {
    vec![
        Behaviour::new("watch_from_now", "A watch from now tells what comes and not what was.", |s| {
            Box::pin(watch_from_now(s))
        }),
        Behaviour::new("watch_tells_before", "An event says what the key held before.", |s| {
            Box::pin(watch_tells_before(s))
        }),
        Behaviour::new("watch_in_order", "Events come in the order of their revisions.", |s| {
            Box::pin(watch_in_order(s))
        }),
        Behaviour::new("watch_whole_revisions", "All events of a revision come in one batch.", |s| {
            Box::pin(watch_whole_revisions(s))
        }),
        Behaviour::new("watch_span", "A watch tells its span and nothing beside it.", |s| {
            Box::pin(watch_span(s))
        }),
        Behaviour::new("watch_only_changes", "What changed nothing is not told.", |s| {
            Box::pin(watch_only_changes(s))
        }),
        Behaviour::new("watch_twice", "Two watchers of a span are told the same.", |s| {
            Box::pin(watch_twice(s))
        }),
        Behaviour::new("watch_tells_entries", "An event carries the entry as a read shows it.", |s| {
            Box::pin(watch_tells_entries(s))
        }),
    ]
}

pub(super) fn places<S: Store + 'static>() -> Vec<Behaviour<S>> {
    vec![
        Behaviour::new("watch_from_past", "A watch from an old revision tells all since.", |s| {
            Box::pin(watch_from_past(s))
        }),
        Behaviour::new("list_then_watch", "Nothing is lost between a list and its watch.", |s| {
            Box::pin(list_then_watch(s))
        }),
        Behaviour::new("watch_resumes", "A watch opened after a batch goes on where it ended.", |s| {
            Box::pin(watch_resumes(s))
        }),
        Behaviour::new("watch_compacted", "A watch from before a compaction is told so.", |s| {
            Box::pin(watch_compacted(s))
        }),
        Behaviour::new("watch_after_compaction", "A watch from a compaction on works.", |s| {
            Box::pin(watch_after_compaction(s))
        }),
        Behaviour::new("watch_far_behind", "Far behind, all is told or that it is not.", |s| {
            Box::pin(watch_far_behind(s))
        }),
        Behaviour::new("watch_slowly", "A slow watcher within the window loses nothing.", |s| {
            Box::pin(watch_slowly(s))
        }),
    ]
}

pub(super) fn waiting<S: Store + 'static>() -> Vec<Behaviour<S>> {
    vec![
        Behaviour::new("watch_wakes", "A watcher that waits is woken by a write.", |s| {
            Box::pin(watch_wakes(s))
        }),
        Behaviour::new("watch_given_up", "A wait that is given up loses nothing.", |s| {
            Box::pin(watch_given_up(s))
        }),
        Behaviour::new("watch_dropped", "A watch that is dropped does not disturb others.", |s| {
            Box::pin(watch_dropped(s))
        }),
        Behaviour::new(
            "idle_is_answered",
            "A watch from the past of an idle span is answered at once.",
            |s| Box::pin(idle_is_answered(s)),
        ),
        Behaviour::new("idle_moves_on", "Writes outside its span move a watcher on.", |s| {
            Box::pin(idle_moves_on(s))
        }),
        Behaviour::new(
            "idle_stays",
            "However much others write, an idle watcher does not fall behind.",
            |s| Box::pin(idle_stays(s)),
        ),
        Behaviour::new("progress_is_honest", "Progress never passes an event that waits.", |s| {
            Box::pin(progress_is_honest(s))
        }),
    ]
}

async fn watch_from_now<S: Store>(store: S) {
    put(&store, "a", "old").await;
    let base = head(&store).await.rev;
    let mut watch = watch(&store, Span::all(), At::Head).await;
    put(&store, "a", "new").await;
    assert_eq!(text(base, &told(&mut watch, 1).await), ["1 put a=new was old"]);
}

async fn watch_tells_before<S: Store>(store: S) {
    let base = head(&store).await.rev;
    let mut watch = watch(&store, Span::all(), At::Head).await;
    put(&store, "a", "1").await;
    put(&store, "a", "2").await;
    delete(&store, "a").await;
    put(&store, "a", "3").await;
    let expected = ["1 put a=1", "2 put a=2 was 1", "3 delete a was 2", "4 put a=3"];
    assert_eq!(text(base, &told(&mut watch, 4).await), expected);
}

async fn watch_in_order<S: Store>(store: S) {
    let mut watch = watch(&store, Span::all(), At::Head).await;
    let mut revs = Vec::new();
    for n in 0..20 {
        revs.push(put(&store, format!("{}", n * 7 % 20), "x").await);
    }
    let events = told(&mut watch, 20).await;
    assert_eq!(events.iter().map(Event::rev).collect::<Vec<_>>(), revs);
}

async fn watch_whole_revisions<S: Store>(store: S) {
    let mut watch = watch(&store, Span::all(), At::Head).await;
    let mut wanted = Vec::new();
    for round in 0..3 {
        let ops = (0..80).map(|n| Op::put(format!("{n:02}"), format!("{round}"))).collect();
        wanted.push(txn(&store, Txn { success: ops, ..Txn::new() }).await.head.rev);
    }
    // Several revisions may come at once; `told` fails if one comes in two batches.
    let events = told(&mut watch, 240).await;
    for rev in wanted {
        assert_eq!(events.iter().filter(|event| event.rev() == rev).count(), 80);
    }
}

async fn watch_span<S: Store>(store: S) {
    let base = head(&store).await.rev;
    let mut prefix = watch(&store, Span::prefix("a/"), At::Head).await;
    let mut one = watch(&store, Span::one("a"), At::Head).await;
    let ops = ["a", "a/1", "a0", "b"].map(|key| Op::put(key, "x"));
    txn(&store, Txn { success: ops.to_vec(), ..Txn::new() }).await;
    delete(&store, "a0").await;
    delete(&store, "a/1").await;
    delete(&store, "a").await;
    assert_eq!(text(base, &told(&mut prefix, 2).await), ["1 put a/1=x", "3 delete a/1 was x"]);
    assert_eq!(text(base, &told(&mut one, 2).await), ["1 put a=x", "4 delete a was x"]);
}

async fn watch_only_changes<S: Store>(store: S) {
    put(&store, "a", "1").await;
    let base = head(&store).await.rev;
    let mut watch = watch(&store, Span::all(), At::Head).await;
    txn(&store, Txn::new().when(absent("a")).then(Op::put("b", "x"))).await;
    delete(&store, "c").await;
    put(&store, "last", "x").await;
    assert_eq!(text(base, &told(&mut watch, 1).await), ["1 put last=x"]);
}

async fn watch_twice<S: Store>(store: S) {
    let mut first = watch(&store, Span::all(), At::Head).await;
    let mut second = watch(&store, Span::all(), At::Head).await;
    put(&store, "a", "1").await;
    put(&store, "b", "1").await;
    let told_first = told(&mut first, 2).await;
    delete(&store, "a").await;
    let told_second = told(&mut second, 3).await;
    assert_eq!(told_first[..], told_second[..2]);
    assert_eq!(told(&mut first, 1).await[..], told_second[2..]);
}

async fn watch_tells_entries<S: Store>(store: S) {
    let mut watch = watch(&store, Span::all(), At::Head).await;
    put(&store, "a", "1").await;
    let first = get(&store, "a").await;
    put(&store, "a", "2").await;
    let second = get(&store, "a").await;
    let rev = delete(&store, "a").await;
    let events = told(&mut watch, 3).await;
    assert_eq!((events[0].entry(), events[0].prev()), (first.as_ref(), None));
    assert_eq!((events[1].entry(), events[1].prev()), (second.as_ref(), first.as_ref()));
    assert_eq!((events[2].entry(), events[2].prev(), events[2].rev()), (None, second.as_ref(), rev));
}

async fn watch_from_past<S: Store>(store: S) {
    let start = head(&store).await;
    put(&store, "a", "1").await;
    put(&store, "b", "1").await;
    delete(&store, "a").await;
    let mut all = watch(&store, Span::all(), At::Exactly(start)).await;
    assert_eq!(text(start.rev, &told(&mut all, 3).await), ["1 put a=1", "2 put b=1", "3 delete a was 1"]);
    let mut late = watch(&store, Span::all(), At::Exactly(start.at(start.rev.next()))).await;
    put(&store, "c", "1").await;
    let expected = ["2 put b=1", "3 delete a was 1", "4 put c=1"];
    assert_eq!(text(start.rev, &told(&mut late, 3).await), expected);
}

async fn list_then_watch<S: Store>(store: S) {
    put(&store, "a", "1").await;
    let page = range(&store, Range::of(Span::all())).await;
    put(&store, "b", "1").await;
    let mut watch = watch(&store, Span::all(), At::Exactly(page.at)).await;
    put(&store, "a", "2").await;
    assert_eq!(pairs(&page.entries), ["a=1"]);
    assert_eq!(text(page.at.rev, &told(&mut watch, 2).await), ["1 put b=1", "2 put a=2 was 1"]);
}

async fn watch_resumes<S: Store>(store: S) {
    let start = head(&store).await;
    let mut place = start;
    let mut events = Vec::new();
    for n in 0..10 {
        put(&store, format!("{n}"), "x").await;
        put(&store, "other", "x").await;
        put(&store, format!("{n}/b"), "x").await;
        let mut again = watch(&store, Span::between("0", "a"), At::Exactly(place)).await;
        let batch = again.next().await.expect("the place is known");
        place = start.at(batch.rev);
        events.extend(batch.events);
    }
    let mut rest = watch(&store, Span::between("0", "a"), At::Exactly(place)).await;
    events.extend(told(&mut rest, 20 - events.len()).await);
    let revs: Vec<u64> = events.iter().map(|event| event.rev().0 - start.rev.0).collect();
    assert_eq!(revs, (0..10).flat_map(|n| [3 * n + 1, 3 * n + 3]).collect::<Vec<_>>());
}

async fn watch_compacted<S: Store>(store: S) {
    let start = head(&store).await;
    for n in 0..5 {
        put(&store, format!("{n}"), "x").await;
    }
    let now = head(&store).await;
    store.compact(now).await.expect("the head is compacted");
    // Not tried: the revision just before the compacted one. etcd still has its events, others need not.
    assert_eq!(watch_error(&store, Span::all(), start).await, Some(Error::Compacted(now.rev)));
    assert_eq!(watch_error(&store, Span::one("idle"), start).await, Some(Error::Compacted(now.rev)));
}

async fn watch_after_compaction<S: Store>(store: S) {
    put(&store, "a", "1").await;
    let middle = head(&store).await;
    let mut open = watch(&store, Span::all(), At::Head).await;
    store.compact(middle).await.expect("the head is compacted");
    put(&store, "a", "2").await;
    let mut late = watch(&store, Span::all(), At::Exactly(middle)).await;
    for watch in [&mut open, &mut late] {
        assert_eq!(text(middle.rev, &told(watch, 1).await), ["1 put a=2 was 1"]);
    }
}

async fn watch_far_behind<S: Store>(store: S) {
    let mut watch = watch(&store, Span::prefix("a/"), At::Head).await;
    let mut revs = Vec::new();
    for n in 0..BEHIND_MIN * 2 {
        revs.push(put(&store, format!("a/{}", n % 7), "x").await);
    }
    store.compact(head(&store).await).await.expect("the head is compacted");
    revs.push(put(&store, "a/last", "x").await);
    let mut seen = Vec::new();
    while seen.len() < revs.len() {
        match watch.next().await {
            Ok(batch) => seen.extend(batch.events.iter().map(Event::rev)),
            Err(error) => {
                assert!(matches!(error, Error::Compacted(_)), "{error:?}");
                assert_eq!(watch.next().await.err(), Some(error), "it is not forgotten that it fell behind");
                break;
            }
        }
    }
    assert_eq!(seen[..], revs[..seen.len()], "what was told has no gap");
}

async fn watch_slowly<S: Store>(store: S) {
    let mut watch = watch(&store, Span::prefix("a/"), At::Head).await;
    let mut revs = Vec::new();
    let mut seen = Vec::new();
    for n in 0..BEHIND_MIN / 2 {
        revs.push(put(&store, format!("a/{}", n % 7), "x").await);
        put(&store, "b", "x").await;
        if n % 25 == 24 {
            seen.extend(told(&mut watch, 1).await);
        }
    }
    seen.extend(told(&mut watch, revs.len() - seen.len()).await);
    assert_eq!(seen.iter().map(Event::rev).collect::<Vec<_>>(), revs);
}

async fn watch_wakes<S: Store>(store: S) {
    let base = head(&store).await.rev;
    let mut watch = watch(&store, Span::one("a"), At::Head).await;
    let events = meanwhile(told(&mut watch, 1), async {
        put(&store, "b", "1").await;
        put(&store, "a", "1").await;
    })
    .await;
    assert_eq!(text(base, &events), ["2 put a=1"]);
}

async fn watch_given_up<S: Store>(store: S) {
    let base = head(&store).await.rev;
    let mut watch = watch(&store, Span::all(), At::Head).await;
    give_up(watch.next()).await;
    put(&store, "a", "1").await;
    assert_eq!(text(base, &told(&mut watch, 1).await), ["1 put a=1"]);
    give_up(watch.next()).await;
    put(&store, "a", "2").await;
    assert_eq!(text(base, &told(&mut watch, 1).await), ["2 put a=2 was 1"]);
}

async fn watch_dropped<S: Store>(store: S) {
    let base = head(&store).await.rev;
    let mut gone = watch(&store, Span::all(), At::Head).await;
    let mut stays = watch(&store, Span::all(), At::Head).await;
    give_up(gone.next()).await;
    drop(gone);
    put(&store, "a", "1").await;
    assert_eq!(text(base, &told(&mut stays, 1).await), ["1 put a=1"]);
}

async fn idle_is_answered<S: Store>(store: S) {
    let start = head(&store).await;
    for _ in 0..5 {
        put(&store, "busy", "x").await;
    }
    let now = head(&store).await;
    for behind in 0..5 {
        let place = start.at(api::Rev(start.rev.0 + behind));
        let mut watch = watch(&store, Span::one("idle"), At::Exactly(place)).await;
        let batch = watch.next().await.expect("the place is known");
        assert_eq!((batch.rev, batch.events.len()), (now.rev, 0), "a bookmark, from {place}");
    }
}

async fn idle_moves_on<S: Store>(store: S) {
    let mut watch = watch(&store, Span::one("idle"), At::Head).await;
    for _ in 0..5 {
        let rev = put(&store, "busy", "x").await;
        let progress = watch.progress().await.expect("the watch goes on");
        assert!(progress >= rev, "{progress} is behind {rev}");
    }
    let rev = put(&store, "idle", "x").await;
    assert_eq!(told(&mut watch, 1).await[0].rev(), rev, "and misses nothing");
}

async fn idle_stays<S: Store>(store: S) {
    let mut watch = watch(&store, Span::one("idle"), At::Head).await;
    for _ in 0..BEHIND_MIN * 2 {
        put(&store, "busy", "x").await;
    }
    // Asked for its progress, as a server does before it sends a bookmark; then even a compaction does no harm.
    watch.progress().await.expect("the watch goes on");
    store.compact(head(&store).await).await.expect("the head is compacted");
    for _ in 0..BEHIND_MIN * 2 {
        put(&store, "busy", "x").await;
    }
    let rev = put(&store, "idle", "x").await;
    assert_eq!(told(&mut watch, 1).await[0].rev(), rev);
}

async fn progress_is_honest<S: Store>(store: S) {
    let mut watch = watch(&store, Span::one("a"), At::Head).await;
    put(&store, "b", "1").await;
    let waiting = put(&store, "a", "1").await;
    let last = put(&store, "b", "2").await;
    let progress = watch.progress().await.expect("the watch goes on");
    assert!(progress < waiting, "{progress} passes {waiting}, which was not fetched");
    told(&mut watch, 1).await;
    let progress = watch.progress().await.expect("the watch goes on");
    assert!(progress >= last);
}
