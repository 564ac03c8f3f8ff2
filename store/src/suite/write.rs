//! What a transaction promises: all or nothing, one revision, and only if what it expects holds.
//!
//! Responsible for the behaviours of [`Store::txn`] and [`Store::head`]. Leaves reads and watches to its neighbours.
//!
//! The failures it exists for: two leaders who both write; a conflict that leaves half of a transaction behind; a
//! request repeated after a lost answer that happens twice.

use super::{Behaviour, absent, at_rev, delete, get, head, pairs, put, range, txn};
use crate::txn::{KEY_BYTES_MAX, TXN_OPS_MAX, VALUE_BYTES_MAX};
use crate::{Compare, Error, Incarnation, Key, Op, Range, Refusal, Retry, Span, Store, Txn, Value};

pub(super) fn conditions<S: Store + 'static>() -> Vec<Behaviour<S>> {
    vec![
        Behaviour::new("create_if_absent", "A key is created if it does not exist.", |s| {
            Box::pin(create_if_absent(s))
        }),
        Behaviour::new("create_if_present", "A key that exists is not created again.", |s| {
            Box::pin(create_if_present(s))
        }),
        Behaviour::new("update_by_mod_rev", "The holder of the newest mod_rev may write.", |s| {
            Box::pin(update_by_mod_rev(s))
        }),
        Behaviour::new("conflict_leaves_nothing", "A stale mod_rev changes nothing.", |s| {
            Box::pin(conflict_leaves_nothing(s))
        }),
        Behaviour::new("compare_value", "A value is compared as a whole.", |s| Box::pin(compare_value(s))),
        Behaviour::new("compare_nothing", "An absent key has no revision and no value.", |s| {
            Box::pin(compare_nothing(s))
        }),
        Behaviour::new("all_compares_hold", "One compare that fails is enough.", |s| {
            Box::pin(all_compares_hold(s))
        }),
        Behaviour::new("else_branch", "The else-branch is done as a whole if a compare fails.", |s| {
            Box::pin(else_branch(s))
        }),
        Behaviour::new("epoch_guard", "A deposed leader's write cannot land.", |s| Box::pin(epoch_guard(s))),
        Behaviour::new("incarnation_guard", "A write may be bound to one life of the store.", |s| {
            Box::pin(incarnation_guard(s))
        }),
        Behaviour::new("repeated_write", "A conditional write that is repeated happens once.", |s| {
            Box::pin(repeated_write(s))
        }),
    ]
}

pub(super) fn effects<S: Store + 'static>() -> Vec<Behaviour<S>> {
    vec![
        Behaviour::new("one_revision", "All changes of a transaction have one revision.", |s| {
            Box::pin(one_revision(s))
        }),
        Behaviour::new("versions_count", "A put counts the version and keeps the creation.", |s| {
            Box::pin(versions_count(s))
        }),
        Behaviour::new("same_value", "The same value again is a change.", |s| Box::pin(same_value(s))),
        Behaviour::new("delete_then_recreate", "A key put after its deletion is a new one.", |s| {
            Box::pin(delete_then_recreate(s))
        }),
        Behaviour::new("nothing_no_revision", "What changes nothing makes no revision.", |s| {
            Box::pin(nothing_no_revision(s))
        }),
        Behaviour::new("results_in_order", "Each step has its result, in order.", |s| {
            Box::pin(results_in_order(s))
        }),
        Behaviour::new("get_sees_own_writes", "A get sees the steps before it.", |s| {
            Box::pin(get_sees_own_writes(s))
        }),
        Behaviour::new("binary", "Keys and values are any bytes.", |s| Box::pin(binary(s))),
        Behaviour::new("head_monotonic", "The head goes up with each change and never down.", |s| {
            Box::pin(head_monotonic(s))
        }),
    ]
}

pub(super) fn limits<S: Store + 'static>() -> Vec<Behaviour<S>> {
    vec![
        Behaviour::new("large_value", "A value of one MiB comes back whole.", |s| Box::pin(large_value(s))),
        Behaviour::new("value_too_large", "A value over the limit is refused, nothing is written.", |s| {
            Box::pin(value_too_large(s))
        }),
        Behaviour::new("key_limits", "A key without bytes or over the limit is refused.", |s| {
            Box::pin(key_limits(s))
        }),
        Behaviour::new("most_ops", "As many steps as allowed are done, one more is refused.", |s| {
            Box::pin(most_ops(s))
        }),
        Behaviour::new("key_twice", "A transaction that writes one key twice is refused.", |s| {
            Box::pin(key_twice(s))
        }),
    ]
}

async fn create_if_absent<S: Store>(store: S) {
    let reply = txn(&store, Txn::new().when(absent("a")).then(Op::put("a", "x"))).await;
    assert!(reply.succeeded);
    let entry = get(&store, "a").await.expect("it was created");
    assert_eq!((&*entry.value, entry.version), (&b"x"[..], 1));
    assert_eq!((entry.create_rev, entry.mod_rev), (reply.head.rev, reply.head.rev));
}

async fn create_if_present<S: Store>(store: S) {
    let rev = put(&store, "a", "x").await;
    let reply = txn(&store, Txn::new().when(absent("a")).then(Op::put("a", "y"))).await;
    assert!(!reply.succeeded);
    assert_eq!(get(&store, "a").await.map(|entry| entry.mod_rev), Some(rev));
}

async fn update_by_mod_rev<S: Store>(store: S) {
    let first = put(&store, "a", "x").await;
    let reply = txn(&store, Txn::new().when(at_rev("a", first)).then(Op::put("a", "y"))).await;
    assert!(reply.succeeded);
    assert_eq!(get(&store, "a").await.map(|entry| entry.mod_rev), Some(reply.head.rev));
}

async fn conflict_leaves_nothing<S: Store>(store: S) {
    let stale = put(&store, "a", "x").await;
    let newest = put(&store, "a", "y").await;
    let write = Txn::new().then(Op::put("a", "z")).then(Op::put("b", "z")).then(Op::delete("a/c"));
    let reply = txn(&store, write.when(at_rev("a", stale))).await;
    assert!(!reply.succeeded);
    assert_eq!(reply.head.rev, newest, "the reply says how far the store is");
    assert_eq!(pairs(&range(&store, Range::of(Span::all())).await.entries), ["a=y"]);
    assert_eq!(head(&store).await.rev, newest);
}

async fn compare_value<S: Store>(store: S) {
    put(&store, "a", "x").await;
    let holds = async |value: &str| {
        let compare = Compare::Value(Key::from("a"), Value::from(value));
        txn(&store, Txn::new().when(compare)).await.succeeded
    };
    assert!(holds("x").await);
    for other in ["", "X", "xx"] {
        assert!(!holds(other).await, "{other:?} is another value");
    }
}

async fn compare_nothing<S: Store>(store: S) {
    let gone = put(&store, "a", "").await;
    delete(&store, "a").await;
    for compare in [at_rev("a", gone), Compare::Value(Key::from("a"), Value::from(""))] {
        assert!(!txn(&store, Txn::new().when(compare.clone())).await.succeeded, "{compare:?} does not hold");
    }
    assert!(txn(&store, Txn::new().when(absent("a"))).await.succeeded);
}

async fn all_compares_hold<S: Store>(store: S) {
    let rev = put(&store, "a", "x").await;
    let both = Txn::new().when(at_rev("a", rev)).when(absent("b"));
    assert!(txn(&store, both.clone()).await.succeeded);
    put(&store, "b", "x").await;
    assert!(!txn(&store, both).await.succeeded);
    assert!(txn(&store, Txn::new()).await.succeeded, "what expects nothing is not disappointed");
}

async fn else_branch<S: Store>(store: S) {
    put(&store, "a", "x").await;
    let write = Txn::new().when(absent("a")).then(Op::put("b", "1"));
    let reply = txn(&store, write.otherwise(Op::get("a")).otherwise(Op::put("c", "1"))).await;
    assert!(!reply.succeeded);
    assert_eq!(reply.results.len(), 2);
    let found = reply.results[0].as_ref().map(|entry| &*entry.value);
    assert_eq!(found, Some(&b"x"[..]), "a failed create tells what is there");
    assert_eq!(pairs(&range(&store, Range::of(Span::all())).await.entries), ["a=x", "c=1"]);
}

async fn epoch_guard<S: Store>(store: S) {
    let leader = |name: &str| Compare::Value(Key::from("leader"), Value::from(name));
    let old_epoch = put(&store, "leader", "server-1").await;
    let write = |value: &str| Txn::new().then(Op::put("a", value));
    assert!(txn(&store, write("1").when(at_rev("leader", old_epoch))).await.succeeded);

    let takeover = Txn::new().when(at_rev("leader", old_epoch)).then(Op::put("leader", "server-2"));
    let new_epoch = txn(&store, takeover.clone()).await;
    assert!(new_epoch.succeeded);
    assert!(!txn(&store, takeover).await.succeeded, "one takes over");

    assert!(!txn(&store, write("late").when(at_rev("leader", old_epoch))).await.succeeded);
    assert!(!txn(&store, write("late").when(leader("server-1"))).await.succeeded);
    assert!(txn(&store, write("2").when(at_rev("leader", new_epoch.head.rev))).await.succeeded);
    assert_eq!(get(&store, "a").await.map(|entry| entry.value), Some(Value::from("2")));
}

async fn incarnation_guard<S: Store>(store: S) {
    let this = head(&store).await.incarnation;
    let other = Incarnation(this.0.wrapping_add(1));
    let write = |incarnation| Txn::new().when(Compare::Incarnation(incarnation)).then(Op::put("a", "x"));
    assert!(!txn(&store, write(other)).await.succeeded);
    assert_eq!(get(&store, "a").await, None);
    let reply = txn(&store, write(this)).await;
    assert!(reply.succeeded);
    assert_eq!(reply.head.incarnation, this, "one life");
}

async fn repeated_write<S: Store>(store: S) {
    let rev = put(&store, "a", "x").await;
    let write = Txn::new().when(at_rev("a", rev)).then(Op::put("a", "y")).otherwise(Op::get("a"));
    assert!(txn(&store, write.clone()).await.succeeded);
    // The answer was lost, say. The repetition fails and shows that the first had happened.
    let again = txn(&store, write).await;
    assert!(!again.succeeded);
    let found = again.results[0].as_ref().map(|entry| (&*entry.value, entry.version));
    assert_eq!(found, Some((&b"y"[..], 2)));
}

async fn one_revision<S: Store>(store: S) {
    put(&store, "c", "old").await;
    let before = head(&store).await.rev;
    let write = Txn::new().then(Op::put("a", "1")).then(Op::put("b", "2")).then(Op::delete("c"));
    let reply = txn(&store, write).await;
    assert_eq!(reply.head.rev, before.next());
    let page = range(&store, Range::of(Span::all())).await;
    assert_eq!(pairs(&page.entries), ["a=1", "b=2"]);
    assert!(page.entries.iter().all(|entry| entry.mod_rev == reply.head.rev));
}

async fn versions_count<S: Store>(store: S) {
    let created = put(&store, "a", "x").await;
    put(&store, "b", "x").await;
    let changed = put(&store, "a", "y").await;
    let entry = get(&store, "a").await.expect("it is there");
    assert_eq!((entry.create_rev, entry.mod_rev, entry.version), (created, changed, 2));
}

async fn same_value<S: Store>(store: S) {
    let first = put(&store, "a", "x").await;
    let second = put(&store, "a", "x").await;
    assert!(second > first);
    assert_eq!(get(&store, "a").await.map(|entry| entry.version), Some(2));
}

async fn delete_then_recreate<S: Store>(store: S) {
    let first = put(&store, "a", "x").await;
    put(&store, "a", "y").await;
    delete(&store, "a").await;
    assert_eq!(get(&store, "a").await, None);
    let again = put(&store, "a", "z").await;
    let entry = get(&store, "a").await.expect("it is there");
    assert_eq!((entry.create_rev, entry.mod_rev, entry.version), (again, again, 1));
    assert!(again > first);
    let late = txn(&store, Txn::new().when(at_rev("a", first)).then(Op::delete("a"))).await;
    assert!(!late.succeeded, "who meant the first one does not hit the second");
}

async fn nothing_no_revision<S: Store>(store: S) {
    let rev = put(&store, "a", "x").await;
    let nothings = [
        Txn::new(),
        Txn::new().then(Op::get("a")),
        Txn::new().then(Op::delete("b")),
        Txn::new().when(absent("a")).then(Op::put("a", "y")),
        Txn::new().when(absent("a")).then(Op::put("a", "y")).otherwise(Op::get("a")),
    ];
    for nothing in nothings {
        assert_eq!(txn(&store, nothing.clone()).await.head.rev, rev, "after {nothing:?}");
    }
    assert_eq!(head(&store).await.rev, rev);
}

async fn results_in_order<S: Store>(store: S) {
    put(&store, "a", "1").await;
    put(&store, "b", "2").await;
    let write = Txn::new().then(Op::get("b")).then(Op::put("a", "3")).then(Op::put("c", "4"));
    let reply = txn(&store, write.then(Op::delete("b")).then(Op::delete("d"))).await;
    let values: Vec<_> =
        reply.results.iter().map(|result| result.as_ref().map(|entry| &*entry.value)).collect();
    assert_eq!(values, [Some(&b"2"[..]), Some(&b"1"[..]), None, Some(&b"2"[..]), None]);
}

async fn get_sees_own_writes<S: Store>(store: S) {
    put(&store, "b", "old").await;
    let write = Txn::new().then(Op::get("a")).then(Op::put("a", "x")).then(Op::get("a"));
    let reply = txn(&store, write.then(Op::delete("b")).then(Op::get("b"))).await;
    assert_eq!(reply.results[0], None);
    let seen = reply.results[2].as_ref().map(|entry| (&*entry.value, entry.mod_rev));
    assert_eq!(seen, Some((&b"x"[..], reply.head.rev)));
    assert_eq!(reply.results[4], None);
}

async fn binary<S: Store>(store: S) {
    let keys: [&[u8]; 4] = [b"\0", b"\0\0", b"a\0b", b"\xff\xff"];
    for key in keys {
        put(&store, key, &b"\0\xff\xfe"[..]).await;
    }
    let page = range(&store, Range::of(Span::all())).await;
    let found: Vec<&[u8]> = page.entries.iter().map(|entry| &*entry.key).collect();
    assert_eq!(found, keys);
    assert!(page.entries.iter().all(|entry| *entry.value == *b"\0\xff\xfe"));
}

async fn head_monotonic<S: Store>(store: S) {
    let mut seen = head(&store).await;
    for write in 0..8 {
        let rev = if write % 3 == 2 { delete(&store, "a").await } else { put(&store, "a", "x").await };
        let now = head(&store).await;
        assert_eq!((now.rev, now.incarnation), (rev, seen.incarnation));
        assert!(now.rev > seen.rev);
        seen = now;
    }
}

async fn large_value<S: Store>(store: S) {
    let value: Vec<u8> = (0..=u8::MAX).cycle().take(1024 * 1024).collect();
    put(&store, "a", value.clone()).await;
    let entry = get(&store, "a").await.expect("it is there");
    assert!(*entry.value == *value, "every byte comes back");
}

/// Refused with this, and nothing has changed.
async fn refused<S: Store>(store: &S, write: Txn, refusal: Refusal) {
    let before = head(store).await;
    let error = store.txn(write).await.err();
    assert_eq!(error, Some(Error::Refused(refusal)));
    assert_eq!(error.map(Error::retry), Some(Retry::Never));
    assert_eq!(head(store).await, before);
    assert_eq!(range(store, Range::of(Span::all()).limit(0)).await.count, 0);
}

async fn value_too_large<S: Store>(store: S) {
    let large = vec![0; VALUE_BYTES_MAX + 1];
    let refusal = Refusal::ValueTooLarge(large.len());
    let write = Txn::new().then(Op::put("a", "x")).then(Op::put("b", large.clone()));
    refused(&store, write, refusal).await;
    let not_even_done = Txn::new().then(Op::put("a", "x")).otherwise(Op::put("b", large));
    refused(&store, not_even_done, refusal).await;
}

async fn key_limits<S: Store>(store: S) {
    let long = vec![b'k'; KEY_BYTES_MAX + 1];
    refused(&store, Txn::new().then(Op::put("", "x")), Refusal::KeyEmpty).await;
    refused(&store, Txn::new().then(Op::put(long.clone(), "x")), Refusal::KeyTooLong(long.len())).await;
    put(&store, &long[1..], "x").await;
    assert_eq!(range(&store, Range::of(Span::one(&long[1..]))).await.count, 1);
}

async fn most_ops<S: Store>(store: S) {
    let writes = |count: usize| Txn {
        success: (0..count).map(|n| Op::put(format!("{n:03}"), "x")).collect(),
        ..Txn::new()
    };
    refused(&store, writes(TXN_OPS_MAX + 1), Refusal::TooManyOps(TXN_OPS_MAX + 1)).await;
    let reply = txn(&store, writes(TXN_OPS_MAX)).await;
    assert_eq!(reply.results.len(), TXN_OPS_MAX);
    assert_eq!(range(&store, Range::of(Span::all()).limit(0)).await.count, TXN_OPS_MAX);
}

async fn key_twice<S: Store>(store: S) {
    let puts = Txn::new().then(Op::put("a", "x")).then(Op::put("b", "x")).then(Op::put("a", "y"));
    refused(&store, puts, Refusal::KeyTwice).await;
    let put_delete = Txn::new().then(Op::put("a", "x")).then(Op::delete("a"));
    refused(&store, put_delete, Refusal::KeyTwice).await;
}
