//! What a read promises: the span that was asked for, as it was at one revision.
//!
//! Responsible for the behaviours of [`Store::range`] and [`Store::compact`]. Leaves writes and watches to its
//! neighbours.
//!
//! The failures it exists for: a list whose second page is of another moment than its first; a namespace that reads
//! its neighbour's keys; an old revision answered with new contents.

use super::{Behaviour, delete, get, head, pairs, put, range, watch_error};
use crate::{Error, Incarnation, Op, Page, Range, Retry, Span, Store, Token, Txn};

pub(super) fn spans<S: Store + 'static>() -> Vec<Behaviour<S>> {
    vec![
        Behaviour::new("read_one", "One key is read, and none beside it.", |s| Box::pin(read_one(s))),
        Behaviour::new("order", "Entries come in the order of the bytes of their keys.", |s| {
            Box::pin(order(s))
        }),
        Behaviour::new("prefix", "A prefix reads its keys and not its siblings.", |s| Box::pin(prefix(s))),
        Behaviour::new("empty_prefix", "The empty prefix is all keys.", |s| Box::pin(empty_prefix(s))),
        Behaviour::new("half_open", "A span has its first key and not its last.", |s| Box::pin(half_open(s))),
        Behaviour::new("nothing_there", "A span without keys is an empty page at the head.", |s| {
            Box::pin(nothing_there(s))
        }),
        Behaviour::new("limit", "A limited page says whether there is more, and how many in all.", |s| {
            Box::pin(limit(s))
        }),
        Behaviour::new("count_only", "A limit of nothing counts.", |s| Box::pin(count_only(s))),
        Behaviour::new("pages", "Pages of one read are of one moment, whatever is written.", |s| {
            Box::pin(pages(s))
        }),
    ]
}

pub(super) fn revisions<S: Store + 'static>() -> Vec<Behaviour<S>> {
    vec![
        Behaviour::new("read_own_write", "A read at the head sees every answered write.", |s| {
            Box::pin(read_own_write(s))
        }),
        Behaviour::new("read_the_past", "An old revision is read as it was.", |s| Box::pin(read_the_past(s))),
        Behaviour::new("past_is_whole", "Of the changes of one revision all are seen or none.", |s| {
            Box::pin(past_is_whole(s))
        }),
        Behaviour::new("compaction", "Compaction forgets what is older and nothing else.", |s| {
            Box::pin(compaction(s))
        }),
        Behaviour::new("compact_the_head", "Everything but the present can be forgotten.", |s| {
            Box::pin(compact_the_head(s))
        }),
        Behaviour::new("compact_twice", "Forgetting what is forgotten is no error.", |s| {
            Box::pin(compact_twice(s))
        }),
        Behaviour::new("future", "A revision that has not happened is refused at once.", |s| {
            Box::pin(future(s))
        }),
        Behaviour::new("other_incarnation", "A token of another life is refused everywhere.", |s| {
            Box::pin(other_incarnation(s))
        }),
    ]
}

async fn at<S: Store>(store: &S, token: Token) -> Vec<String> {
    pairs(&range(store, Range::of(Span::all()).at(token)).await.entries)
}

async fn read_one<S: Store>(store: S) {
    for key in ["a", "a/b", "ab", "a\0"] {
        put(&store, key, key).await;
    }
    let page = range(&store, Range::of(Span::one("a"))).await;
    assert_eq!(pairs(&page.entries), ["a=a"]);
    assert_eq!((page.count, page.more), (1, false));
}

async fn order<S: Store>(store: S) {
    for key in ["b", "a/b", "B", "a", "a0", "aa"] {
        put(&store, key, "").await;
    }
    let page = range(&store, Range::of(Span::all())).await;
    assert_eq!(pairs(&page.entries), ["B=", "a=", "a/b=", "a0=", "aa=", "b="]);
}

async fn prefix<S: Store>(store: S) {
    for key in ["pods/a", "pods/a/1", "pods/a/2", "pods/a0", "pods/ab/1", "pods/"] {
        put(&store, key, "").await;
    }
    let page = range(&store, Range::of(Span::prefix("pods/a/"))).await;
    assert_eq!(pairs(&page.entries), ["pods/a/1=", "pods/a/2="]);
    put(&store, &b"z\xff"[..], "").await;
    put(&store, &b"z\xff\xff"[..], "").await;
    put(&store, "{", "").await;
    let page = range(&store, Range::of(Span::prefix(&b"z\xff"[..]))).await;
    assert_eq!(page.count, 2, "the largest byte has no sibling behind it");
}

async fn empty_prefix<S: Store>(store: S) {
    put(&store, &b"\0"[..], "").await;
    put(&store, &b"\xff\xff"[..], "").await;
    assert_eq!(range(&store, Range::of(Span::prefix(""))).await.count, 2);
}

async fn half_open<S: Store>(store: S) {
    for key in ["a", "b", "c", "d"] {
        put(&store, key, "").await;
    }
    let between = async |from: &str, until: &str| {
        pairs(&range(&store, Range::of(Span::between(from, until))).await.entries)
    };
    assert_eq!(between("b", "d").await, ["b=", "c="]);
    assert_eq!(between("aa", "cc").await, ["b=", "c="]);
    assert!(between("b", "b").await.is_empty());
    assert!(between("d", "a").await.is_empty());
}

async fn nothing_there<S: Store>(store: S) {
    let token = super::txn(&store, Txn::new().then(Op::put("a", "x"))).await.head;
    let page = range(&store, Range::of(Span::prefix("b"))).await;
    assert_eq!(page, Page { at: token, entries: Vec::new(), more: false, count: 0 });
}

async fn limit<S: Store>(store: S) {
    for key in ["a", "b", "c", "d"] {
        put(&store, key, "").await;
    }
    let page = range(&store, Range::of(Span::all()).limit(3)).await;
    assert_eq!(pairs(&page.entries), ["a=", "b=", "c="]);
    assert_eq!((page.more, page.count), (true, 4));
    let page = range(&store, Range::of(Span::all()).limit(4)).await;
    assert_eq!((page.entries.len(), page.more, page.count), (4, false, 4));
}

async fn count_only<S: Store>(store: S) {
    let count = async || range(&store, Range::of(Span::all()).limit(0)).await;
    assert_eq!((count().await.count, count().await.more), (0, false));
    put(&store, "a", "").await;
    let page = count().await;
    assert_eq!((page.entries.len(), page.count, page.more), (0, 1, true));
}

async fn pages<S: Store>(store: S) {
    for key in ["a", "b", "c", "d", "e"] {
        put(&store, key, "old").await;
    }
    let mut wanted = Range::of(Span::all()).limit(2);
    let mut found = Vec::new();
    let mut moments = Vec::new();
    loop {
        let page = range(&store, wanted.clone()).await;
        moments.push(page.at);
        found.extend(pairs(&page.entries));
        delete(&store, "e").await;
        put(&store, "d", "new").await;
        put(&store, "bb", "new").await;
        match wanted.rest(&page) {
            Some(rest) => wanted = rest,
            None => break,
        }
    }
    assert_eq!(found, ["a=old", "b=old", "c=old", "d=old", "e=old"]);
    assert!(moments.iter().all(|moment| *moment == moments[0]), "{moments:?}");
}

async fn read_own_write<S: Store>(store: S) {
    for value in ["1", "2", "3"] {
        let rev = put(&store, "a", value).await;
        let page = range(&store, Range::of(Span::one("a"))).await;
        assert_eq!(pairs(&page.entries), [format!("a={value}")]);
        assert!(page.at.rev >= rev);
    }
}

async fn read_the_past<S: Store>(store: S) {
    let empty = head(&store).await;
    let created = empty.at(put(&store, "a", "1").await);
    let changed = empty.at(put(&store, "a", "2").await);
    let other = empty.at(put(&store, "b", "1").await);
    let deleted = empty.at(delete(&store, "a").await);
    let again = empty.at(put(&store, "a", "3").await);
    assert!(at(&store, empty).await.is_empty());
    assert_eq!(at(&store, created).await, ["a=1"]);
    assert_eq!(at(&store, changed).await, ["a=2"]);
    assert_eq!(at(&store, other).await, ["a=2", "b=1"]);
    assert_eq!(at(&store, deleted).await, ["b=1"]);
    assert_eq!(at(&store, again).await, ["a=3", "b=1"]);
    let page = range(&store, Range::of(Span::all()).at(other).limit(1)).await;
    assert_eq!((page.at, page.count, page.more), (other, 2, true));
    assert_eq!(page.entries[0].version, 2, "the past has its versions");
}

async fn past_is_whole<S: Store>(store: S) {
    let mut tokens = Vec::new();
    for value in ["1", "2", "3"] {
        let write = Txn::new().then(Op::put("a", value)).then(Op::put("b", value));
        tokens.push((super::txn(&store, write).await.head, value));
    }
    for (token, value) in tokens {
        assert_eq!(at(&store, token).await, [format!("a={value}"), format!("b={value}")]);
    }
}

async fn compaction<S: Store>(store: S) {
    let first = head(&store).await.at(put(&store, "a", "1").await);
    put(&store, "gone", "1").await;
    let second = first.at(put(&store, "a", "2").await);
    delete(&store, "gone").await;
    let third = first.at(put(&store, "a", "3").await);
    store.compact(second).await.expect("a known revision is compacted");
    let error = store.range(Range::of(Span::all()).at(first)).await.err();
    assert_eq!(error, Some(Error::Compacted(second.rev)));
    assert_eq!(error.map(Error::retry), Some(Retry::FromHead));
    assert_eq!(at(&store, second).await, ["a=2", "gone=1"]);
    assert_eq!(at(&store, third).await, ["a=3"]);
    let entry = get(&store, "a").await.expect("the present is not compacted");
    assert_eq!((entry.create_rev, entry.mod_rev, entry.version), (first.rev, third.rev, 3));
}

async fn compact_the_head<S: Store>(store: S) {
    put(&store, "a", "1").await;
    put(&store, "b", "1").await;
    delete(&store, "b").await;
    let now = head(&store).await;
    store.compact(now).await.expect("the head is compacted");
    assert_eq!(head(&store).await, now, "compaction makes no revision");
    assert_eq!(at(&store, now).await, ["a=1"]);
    put(&store, "a", "2").await;
    assert_eq!(at(&store, now).await, ["a=1"]);
}

async fn compact_twice<S: Store>(store: S) {
    let first = head(&store).await.at(put(&store, "a", "1").await);
    let second = first.at(put(&store, "a", "2").await);
    for token in [second, second, first] {
        store.compact(token).await.expect("what is done is done");
    }
    assert_eq!(at(&store, second).await, ["a=2"]);
}

async fn future<S: Store>(store: S) {
    let now = head(&store).await.at(put(&store, "a", "1").await);
    let later = now.at(now.rev.next());
    let expected = Some(Error::Future(now.rev));
    assert_eq!(store.range(Range::of(Span::all()).at(later)).await.err(), expected);
    assert_eq!(store.compact(later).await.err(), expected);
    assert_eq!(watch_error(&store, Span::all(), later).await, expected);
    assert_eq!(expected.map(Error::retry), Some(Retry::FromHead));
}

async fn other_incarnation<S: Store>(store: S) {
    put(&store, "a", "1").await;
    let now = head(&store).await;
    let foreign = Token { incarnation: Incarnation(now.incarnation.0.wrapping_add(1)), rev: now.rev };
    let is_refused =
        |error: Option<Error>| matches!(error, Some(Error::Compacted(oldest)) if oldest <= now.rev);
    assert!(is_refused(store.range(Range::of(Span::all()).at(foreign)).await.err()));
    assert!(is_refused(watch_error(&store, Span::all(), foreign).await));
    assert!(is_refused(store.compact(foreign).await.err()));
    assert_eq!(at(&store, now).await, ["a=1"], "the own token still works");
}
