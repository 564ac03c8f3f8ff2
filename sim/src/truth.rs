//! The store as it is: the one linearizable memory of the cluster.
//!
//! Responsible for: objects on the pure state machine of `store`, each with its tree and its view (made once per
//! revision and shared by everybody), the log that watches read, and the leader's keys. Leaves to [`crate::write`]
//! the law of writes, to servers and machines how late they see it.
//!
//! Invariants: `objects` is what the keyspace holds; every change of an object stands once in the log.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use api::view::View;
use api::{Epoch, Kind, NodeName, ObjectKey, Rev};
use serde_json::Value as Tree;
use store::{Command, Compare, Incarnation, Key, Keyspace, Op, Txn, Value};

/// The key that says who leads.
const LEADER: &str = "/mainstay/leader";
/// The key that holds the term alone: controller writes are compared with it, and renewals do not touch it.
const EPOCH: &str = "/mainstay/epoch";
/// The past is forgotten when it has so many versions: nobody in a simulation reads old revisions.
const PAST_MAX: usize = 256;

/// An object as the store has it.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    /// The revision of its last change.
    pub(crate) rev: Rev,
    /// The whole object.
    pub(crate) tree: Arc<Tree>,
    /// What minds read of it; `None` if no view can be made.
    pub(crate) view: Option<View>,
}

/// One change of one object.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) rev: Rev,
    pub(crate) key: ObjectKey,
    pub(crate) old: Option<View>,
    pub(crate) new: Option<View>,
}

/// Who leads, by the word of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leader {
    pub(crate) server: usize,
    pub(crate) epoch: Epoch,
    /// The revision of the last renewal.
    pub(crate) renewed: Rev,
}

/// See the module's header.
#[derive(Debug)]
pub(crate) struct Truth {
    space: Keyspace,
    objects: BTreeMap<ObjectKey, Object>,
    pods_by_node: BTreeMap<NodeName, BTreeSet<ObjectKey>>,
    log: VecDeque<Change>,
    /// How many entries of the log were forgotten.
    forgotten: u64,
    leader: Option<Leader>,
    writes: u64,
}

impl Truth {
    pub(crate) fn new() -> Self {
        Self {
            space: Keyspace::new(Incarnation(1)),
            objects: BTreeMap::new(),
            pods_by_node: BTreeMap::new(),
            log: VecDeque::new(),
            forgotten: 0,
            leader: None,
            writes: 0,
        }
    }

    pub(crate) fn head(&self) -> Rev {
        self.space.head().rev
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&Object> {
        self.objects.get(key)
    }

    /// What minds read of an object.
    pub(crate) fn view(&self, key: &ObjectKey) -> Option<&View> {
        self.objects.get(key)?.view.as_ref()
    }

    pub(crate) fn objects(&self) -> impl Iterator<Item = (&ObjectKey, &Object)> {
        self.objects.iter()
    }

    /// All objects of a kind.
    pub(crate) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = (&ObjectKey, &Object)> {
        let first = ObjectKey::cluster(kind, "");
        self.objects.range(first..).take_while(move |(key, _)| key.kind == kind)
    }

    /// Pods that are bound to a node of that name.
    pub(crate) fn pods_on(&self, node: &NodeName) -> impl Iterator<Item = &Object> {
        self.pods_by_node.get(node).into_iter().flatten().filter_map(|key| self.objects.get(key))
    }

    /// How many writes changed something.
    pub(crate) fn writes(&self) -> u64 {
        self.writes
    }

    // === the log ===

    /// The index behind the newest entry of the log.
    pub(crate) fn log_end(&self) -> u64 {
        self.forgotten + self.log.len() as u64
    }

    /// The entries from `from` to before `until`.
    pub(crate) fn log(&self, from: u64, until: u64) -> impl Iterator<Item = &Change> {
        let index = |at: u64| usize::try_from(at.saturating_sub(self.forgotten)).unwrap_or(usize::MAX);
        debug_assert!(from >= self.forgotten, "a cursor is never behind the log");
        self.log.range(index(from).min(self.log.len())..index(until).min(self.log.len()))
    }

    /// Nobody reads entries before `until` any more.
    pub(crate) fn forget(&mut self, until: u64) {
        while self.forgotten < until && self.log.pop_front().is_some() {
            self.forgotten += 1;
        }
    }

    // === writing ===

    /// Puts or removes objects in one transaction, if the term is still `term` (where one is given). The caller has
    /// looked at the objects in the same moment; the compares say so to the store and are asserted to hold.
    ///
    /// `None`: the term is over, nothing happened. Else the changes, which have one revision; no changes at all if
    /// every object was already so.
    pub(crate) fn commit(
        &mut self,
        writes: Vec<(ObjectKey, Option<Tree>)>,
        term: Option<Epoch>,
    ) -> Option<Vec<Change>> {
        let mut txn = Txn::new();
        if let Some(epoch) = term {
            txn = txn.when(Compare::Value(Key::from(EPOCH), epoch_value(epoch)));
        }
        let mut coming = Vec::new();
        for (key, tree) in writes {
            let there = self.objects.get(&key);
            let place = Key::from(key.store_key());
            match (there, &tree) {
                (None, None) => continue,
                (Some(object), Some(tree)) if *object.tree == *tree => continue,
                _ => {}
            }
            txn = txn.when(match there {
                Some(object) => Compare::ModRev(place.clone(), object.rev),
                None => Compare::Absent(place.clone()),
            });
            let bytes = tree.as_ref().map(|tree| serde_json::to_vec(tree).unwrap_or_default());
            let view = bytes.as_ref().and_then(|bytes| View::read(key.kind, bytes).ok());
            txn = txn.then(match bytes {
                Some(bytes) => Op::Put(place, Value::from(bytes)),
                None => Op::Delete(place),
            });
            coming.push((key, tree, view));
        }
        if coming.is_empty() {
            let fits = term.is_none_or(|epoch| self.leader.is_some_and(|leader| leader.epoch == epoch));
            return fits.then(Vec::new);
        }
        let rev = self.transact(txn)?;
        Some(coming.into_iter().map(|(key, tree, view)| self.fold(key, tree, view, rev)).collect())
    }

    /// Takes the lead, or renews it: only if the leader's key is still at `seen`. A renewal keeps the term.
    pub(crate) fn lead(&mut self, server: usize, epoch: Epoch, seen: Option<Rev>) -> Option<Rev> {
        let key = Key::from(LEADER);
        let value = format!("{server} {epoch}");
        let mut txn = Txn::new().when(match seen {
            Some(rev) => Compare::ModRev(key.clone(), rev),
            None => Compare::Absent(key.clone()),
        });
        txn = txn.then(Op::put(key, value.as_str()));
        if self.leader.is_none_or(|leader| leader.epoch != epoch) {
            txn = txn.then(Op::Put(Key::from(EPOCH), epoch_value(epoch)));
        }
        let renewed = self.transact(txn)?;
        self.leader = Some(Leader { server, epoch, renewed });
        Some(renewed)
    }

    /// Who leads: a linearizable read.
    pub(crate) fn leader(&self) -> Option<Leader> {
        self.leader
    }

    fn transact(&mut self, txn: Txn) -> Option<Rev> {
        let (reply, _) = self.space.fold(Command::Txn(txn)).ok()?;
        if !reply.succeeded {
            return None;
        }
        self.writes += 1;
        if self.space.past_len() > PAST_MAX {
            let head = self.space.head();
            let compacted = self.space.fold(Command::Compact(head));
            debug_assert!(compacted.is_ok(), "the head can be compacted");
        }
        Some(reply.head.rev)
    }

    fn fold(&mut self, key: ObjectKey, tree: Option<Tree>, new: Option<View>, rev: Rev) -> Change {
        let old = match tree {
            Some(tree) => {
                let object = Object { rev, tree: Arc::new(tree), view: new.clone() };
                self.objects.insert(key.clone(), object)
            }
            None => self.objects.remove(&key),
        };
        let old = old.and_then(|object| object.view);
        for (view, there) in [(&old, false), (&new, true)] {
            if let Some(View::Pod(pod)) = view
                && pod.is_bound()
            {
                self.index_pod(&pod.spec.node_name, &key, there);
            }
        }
        let change = Change { rev, key, old, new };
        self.log.push_back(change.clone());
        change
    }

    fn index_pod(&mut self, node: &NodeName, key: &ObjectKey, there: bool) {
        if there {
            self.pods_by_node.entry(node.clone()).or_default().insert(key.clone());
        } else if let Some(pods) = self.pods_by_node.get_mut(node) {
            pods.remove(key);
        }
    }
}

fn epoch_value(epoch: Epoch) -> Value {
    Value::from(epoch.0.to_string().into_bytes())
}
