//! Acceptance vectors of stock behaviour (V-01 to V-16), in a closed loop: the mind of a control plane under the
//! profile `kubernetes`, the law of writes, and agents that do no more than renew their leases.
//!
//! The log holds what stock's controllers did, with the second in which they did it.

use std::collections::{BTreeMap, BTreeSet};

use api::edit::Edit;
use api::taint::{Taint, TaintEffect};
use api::timing::Profile;
use api::view::{Condition, ConditionStatus, View, tree};
use api::{Duration, Epoch, Kind, Name, NodeName, ObjectKey, Rev, Time, annotation};
use expect_test::{Expect as Golden, expect};
use registry::{Caller, Effect, Law, Occasion};
use serde_json::{Value, json};

use crate::controller::Change;
use crate::decision::{Action, Expect, Verb};
use crate::mind::{Mind, Sent};
use crate::queue::Outcome;
use crate::text::{Story, act, time};
use crate::world::Settings;

/// Controllers whose acts are logged.
const STOCK: [&str; 6] = [
    "node-lifecycle-controller",
    "node-lifecycle-pods",
    "node-lifecycle-no-schedule",
    "node-lifecycle-no-execute",
    "taint-eviction-controller",
    "pod-garbage-collector-controller",
];

struct Loop {
    mind: Mind,
    store: BTreeMap<ObjectKey, (Value, Rev)>,
    head: Rev,
    now: Time,
    alive: BTreeSet<NodeName>,
    log: Vec<String>,
}

impl Loop {
    /// The objects of a text world; every node is alive.
    fn new(text: &str) -> Self {
        let timing = Profile::named("kubernetes").expect("the profile is known").timing;
        let mind = Mind::new(Settings { timing, flaw: None }, Time::ZERO);
        let mut this = Self {
            mind,
            store: BTreeMap::new(),
            head: Rev(0),
            now: Time::ZERO,
            alive: BTreeSet::new(),
            log: Vec::new(),
        };
        for change in Story::read(&format!("profile kubernetes\n{text}")).world.everything() {
            if let Change::Object { key, new: Some(View::Node(node)), .. } = change {
                this.alive.insert(node.name());
                this.put(&key, Some(tree(&*node)));
            } else if let Change::Object { key, new: Some(View::Pod(pod)), .. } = change {
                this.put(&key, Some(tree(&*pod)));
            }
        }
        this.beat();
        this.mind.elected(Epoch(1), this.head, this.now);
        this
    }

    fn put(&mut self, key: &ObjectKey, tree: Option<Value>) {
        self.head = self.head.next();
        let view = tree
            .as_ref()
            .map(|t| View::read(key.kind, t.to_string().as_bytes()).expect("the tree has a view"));
        match tree {
            Some(tree) => drop(self.store.insert(key.clone(), (tree, self.head))),
            None => drop(self.store.remove(key)),
        }
        self.mind.fold(key, view, self.head, self.now);
    }

    /// Agents renew their leases.
    fn beat(&mut self) {
        for node in self.alive.clone() {
            let key = ObjectKey::namespaced(Kind::Lease, &annotation::NODE_LEASES.into(), Name::from(&node));
            let lease = json!({"metadata": {"name": node, "namespace": annotation::NODE_LEASES},
                "spec": {"renewTime": self.now}});
            self.put(&key, Some(lease));
        }
    }

    /// Everything up to and at `until`.
    fn run(&mut self, until: &str) -> &mut Self {
        let (until, period) = (time(until), Duration::from_secs(10));
        loop {
            let wake = self.settle_down();
            let beat = Time::ZERO + period.times(self.now.ms() / period.ms() + 1);
            let next = wake.map_or(beat, |w| w.min(beat).max(self.now + Duration::from_ms(1)));
            if next > until {
                self.now = until;
                return self;
            }
            self.now = next;
            if next == beat {
                self.beat();
            }
        }
    }

    /// Decides and carries out until nothing is left to do now.
    fn settle_down(&mut self) -> Option<Time> {
        for _ in 0..1000 {
            let mut out = Vec::new();
            let wake = self.mind.step(self.now, &mut out);
            if out.is_empty() && wake.is_none_or(|w| w > self.now) {
                return wake;
            }
            for Sent { ticket, actions } in out {
                let stock = STOCK.contains(&ticket.origin().0);
                let all = actions.iter().all(|action| self.carry_out(action, stock));
                let outcome = if all { Outcome::Done(self.head) } else { Outcome::Stale(self.head) };
                self.mind.settle(&ticket, outcome, self.now);
            }
        }
        panic!("the loop does not come to rest at {:?}: {:?}", self.now, self.log.last());
    }

    fn carry_out(&mut self, action: &Action, logged: bool) -> bool {
        if !action.expect.iter().all(|e| self.holds(e)) {
            return false;
        }
        match &action.verb {
            Verb::Edit(key, edit) => self.write(key, |key, tree, on| registry::edit(key, tree, edit, on)),
            Verb::Delete(key, how) => self.write(key, |key, tree, on| registry::delete(key, tree, how, on)),
            Verb::Note(_) => {}
            // Nothing of these vectors is about what other controllers make.
            Verb::Create(_) => return true,
        }
        if logged {
            self.log.push(format!("{}s {}", self.now.ms() / 1000, act(action)));
        }
        true
    }

    fn holds(&self, expect: &Expect) -> bool {
        let rev = |key| self.store.get(key).map(|(_, rev)| *rev);
        match expect {
            Expect::At(key, at) | Expect::Fresh(key, at) => rev(key) == Some(*at),
            Expect::Uid(key, uid) => {
                self.store.get(key).is_some_and(|(t, _)| t["metadata"]["uid"] == uid.as_str())
            }
            Expect::Absent(key) | Expect::Gone(key) => rev(key).is_none(),
        }
    }

    fn write(
        &mut self,
        key: &ObjectKey,
        act: impl FnOnce(&ObjectKey, &mut Value, &Occasion<'_>) -> Result<Effect, registry::Refusal>,
    ) {
        let Some((tree, _)) = self.store.get(key) else { return };
        let mut tree = tree.clone();
        let read = |key: &ObjectKey| View::read(key.kind, self.store.get(key)?.0.to_string().as_bytes()).ok();
        let law = Law::kubernetes();
        let on = Occasion { now: self.now, caller: &Caller::Controller, law: &law, read: &read };
        match act(key, &mut tree, &on).expect("the law allows it") {
            Effect::Same => {}
            Effect::Put => self.put(key, Some(tree)),
            Effect::Remove { .. } => self.put(key, None),
        }
    }

    fn stops(&mut self, node: &str) -> &mut Self {
        self.alive.remove(node);
        self
    }

    fn returns(&mut self, node: &str) -> &mut Self {
        self.alive.insert(node.into());
        let mut ready = Condition::new("Ready", ConditionStatus::True, "KubeletReady", "", self.now);
        ready.last_heartbeat_time = self.now;
        self.edit(&format!("node/{node}"), &Edit::NodeConditions(vec![ready]))
    }

    fn edit(&mut self, key: &str, edit: &Edit) -> &mut Self {
        self.write(&crate::text::object_key(key), |key, tree, on| registry::edit(key, tree, edit, on));
        self
    }

    fn deletes(&mut self, key: &str) -> &mut Self {
        self.put(&crate::text::object_key(key), None);
        self
    }

    /// Compares what was done since the last look.
    #[track_caller]
    fn did(&mut self, golden: Golden) -> &mut Self {
        let lines: Vec<String> = std::mem::take(&mut self.log).into_iter().map(|l| l + "\n").collect();
        golden.assert_eq(&lines.concat());
        self
    }
}

const THREE: &str = "
    node n1
    node n2
    node n3
    pod default/a on n1 running ready tolerate=default
    ";

#[test]
fn v01_v06_v12_a_node_dies_its_pod_is_evicted_and_a_human_gives_it_up() {
    let mut cluster = Loop::new(THREE);
    cluster.run("42s").stops("n1").run("120s").did(expect![[r#"
        95s edit node/n1: Ready=Unknown NodeStatusUnknown Kubelet stopped posting node status. @95000, MemoryPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @95000, DiskPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @95000, PIDPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @95000
        95s note node/n1 NodeNotReady: Node n1 status is now: NodeNotReady
        95s edit pod/default/a: Ready=False @95000
        95s note pod/default/a NodeNotReady: Node is not ready
        95s edit node/n1: +node.kubernetes.io/unreachable:NoSchedule@95000
        100s edit node/n1: +node.kubernetes.io/unreachable:NoExecute@100000 [node_collector_evictions_total zone=-]
    "#]]);
    cluster.run("700s").did(expect![[r#"
        400s note pod/default/a TaintManagerEviction: Marking for deletion Pod default/a
        400s edit pod/default/a: DisruptionTarget=True DeletionByTaintManager Taint manager: deleting due to NoExecute taint @400000
        400s delete pod/default/a [taint_eviction_controller_pod_deletions_total]
    "#]]);
    let taint = Taint::new(annotation::OUT_OF_SERVICE, TaintEffect::NoExecute).with_value("nodeshutdown");
    cluster.edit("node/n1", &Edit::Taints { add: vec![taint], remove: Vec::new() });
    cluster.run("721s").did(expect![[r#"
        700s edit pod/default/a: Failed
        700s force-delete pod/default/a [pod_gc_collector_force_delete_pods_total namespace=default reason=out-of-service]
    "#]]);
}

#[test]
fn v02_a_cluster_of_one_is_never_evicted() {
    let mut cluster = Loop::new("node n1\npod default/a on n1 ready tolerate=default");
    cluster.stops("n1").run("1000s").did(expect![[r#"
         55s edit node/n1: Ready=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000, MemoryPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000, DiskPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000, PIDPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000
         55s note node/n1 NodeNotReady: Node n1 status is now: NodeNotReady
         55s edit pod/default/a: Ready=False @55000
         55s note pod/default/a NodeNotReady: Node is not ready
         55s edit node/n1: +node.kubernetes.io/unreachable:NoSchedule@55000
    "#]]);
}

#[test]
fn v03_two_of_three_are_tainted_one_after_the_other() {
    let mut cluster = Loop::new(THREE);
    cluster.stops("n1").stops("n2").run("100s").did(expect![[r#"
         55s edit node/n1: Ready=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000, MemoryPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000, DiskPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000, PIDPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000
         55s note node/n1 NodeNotReady: Node n1 status is now: NodeNotReady
         55s edit node/n2: Ready=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000, MemoryPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000, DiskPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000, PIDPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000
         55s note node/n2 NodeNotReady: Node n2 status is now: NodeNotReady
         55s edit pod/default/a: Ready=False @55000
         55s note pod/default/a NodeNotReady: Node is not ready
         55s edit node/n1: +node.kubernetes.io/unreachable:NoSchedule@55000
         55s edit node/n2: +node.kubernetes.io/unreachable:NoSchedule@55000
         60s edit node/n1: +node.kubernetes.io/unreachable:NoExecute@60000 [node_collector_evictions_total zone=-]
         70s edit node/n2: +node.kubernetes.io/unreachable:NoExecute@70000 [node_collector_evictions_total zone=-]
    "#]]);
}

#[test]
fn v04_three_of_four_stop_the_zone() {
    let mut cluster = Loop::new("node n1\nnode n2\nnode n3\nnode n4");
    cluster.run("15s").stops("n1").run("75s").stops("n2").stops("n3").run("300s").did(expect![[r#"
        65s edit node/n1: Ready=Unknown NodeStatusUnknown Kubelet stopped posting node status. @65000, MemoryPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @65000, DiskPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @65000, PIDPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @65000
        65s note node/n1 NodeNotReady: Node n1 status is now: NodeNotReady
        65s edit node/n1: +node.kubernetes.io/unreachable:NoSchedule@65000
        70s edit node/n1: +node.kubernetes.io/unreachable:NoExecute@70000 [node_collector_evictions_total zone=-]
        125s edit node/n2: Ready=Unknown NodeStatusUnknown Kubelet stopped posting node status. @125000, MemoryPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @125000, DiskPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @125000, PIDPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @125000
        125s note node/n2 NodeNotReady: Node n2 status is now: NodeNotReady
        125s edit node/n3: Ready=Unknown NodeStatusUnknown Kubelet stopped posting node status. @125000, MemoryPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @125000, DiskPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @125000, PIDPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @125000
        125s note node/n3 NodeNotReady: Node n3 status is now: NodeNotReady
        125s edit node/n2: +node.kubernetes.io/unreachable:NoSchedule@125000
        125s edit node/n3: +node.kubernetes.io/unreachable:NoSchedule@125000
    "#]]);
}

#[test]
fn v05_all_stop_and_one_returns() {
    let mut cluster = Loop::new("node n1\nnode n2\npod default/a on n1 ready tolerate=default");
    cluster.run("15s").stops("n1").run("100s").did(expect![[r#"
         65s edit node/n1: Ready=Unknown NodeStatusUnknown Kubelet stopped posting node status. @65000, MemoryPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @65000, DiskPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @65000, PIDPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @65000
         65s note node/n1 NodeNotReady: Node n1 status is now: NodeNotReady
         65s edit pod/default/a: Ready=False @65000
         65s note pod/default/a NodeNotReady: Node is not ready
         65s edit node/n1: +node.kubernetes.io/unreachable:NoSchedule@65000
         70s edit node/n1: +node.kubernetes.io/unreachable:NoExecute@70000 [node_collector_evictions_total zone=-]
    "#]]);
    cluster.stops("n2").run("400s").did(expect![[r#"
        155s edit node/n2: Ready=Unknown NodeStatusUnknown Kubelet stopped posting node status. @155000, MemoryPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @155000, DiskPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @155000, PIDPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @155000
        155s note node/n2 NodeNotReady: Node n2 status is now: NodeNotReady
        155s edit node/n2: +node.kubernetes.io/unreachable:NoSchedule@155000
        155s edit node/n1: -node.kubernetes.io/unreachable:NoExecute
        155s note pod/default/a TaintManagerEviction: Cancelling deletion of Pod default/a
    "#]]);
    cluster.returns("n2").run("500s").did(expect![[r#"
        400s edit node/n2: -node.kubernetes.io/unreachable:NoSchedule
        400s edit node/n1: +node.kubernetes.io/unreachable:NoExecute@400000 [node_collector_evictions_total zone=-]
    "#]]);
}

#[test]
fn v07_a_node_that_returns_in_time_keeps_its_pods() {
    let mut cluster = Loop::new(THREE);
    cluster.stops("n1").run("200s").did(expect![[r#"
         55s edit node/n1: Ready=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000, MemoryPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000, DiskPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000, PIDPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000
         55s note node/n1 NodeNotReady: Node n1 status is now: NodeNotReady
         55s edit pod/default/a: Ready=False @55000
         55s note pod/default/a NodeNotReady: Node is not ready
         55s edit node/n1: +node.kubernetes.io/unreachable:NoSchedule@55000
         60s edit node/n1: +node.kubernetes.io/unreachable:NoExecute@60000 [node_collector_evictions_total zone=-]
    "#]]);
    cluster.returns("n1").run("700s").did(expect![[r#"
        200s edit node/n1: -node.kubernetes.io/unreachable:NoSchedule
        200s edit node/n1: -node.kubernetes.io/unreachable:NoExecute
        200s note pod/default/a TaintManagerEviction: Cancelling deletion of Pod default/a
    "#]]);
}

#[test]
fn v08_what_is_tolerated_for_no_time_goes_with_the_taint() {
    let text = format!(
        "{THREE}\npod default/b on n1 tolerate=unreachable:NoExecute:0\npod default/log on n1 tolerate=*"
    );
    let mut cluster = Loop::new(&text);
    cluster.stops("n1").run("100s").did(expect![[r#"
         55s edit node/n1: Ready=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000, MemoryPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000, DiskPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000, PIDPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000
         55s note node/n1 NodeNotReady: Node n1 status is now: NodeNotReady
         55s edit pod/default/a: Ready=False @55000
         55s note pod/default/a NodeNotReady: Node is not ready
         55s edit node/n1: +node.kubernetes.io/unreachable:NoSchedule@55000
         60s edit node/n1: +node.kubernetes.io/unreachable:NoExecute@60000 [node_collector_evictions_total zone=-]
         60s note pod/default/b TaintManagerEviction: Marking for deletion Pod default/b
         60s edit pod/default/b: DisruptionTarget=True DeletionByTaintManager Taint manager: deleting due to NoExecute taint @60000
         60s delete pod/default/b [taint_eviction_controller_pod_deletions_total]
    "#]]);
}

#[test]
fn v15_v17_pods_of_a_deleted_node_go_after_the_quarantine() {
    let text = format!("{THREE}\npod default/kept on n1 finalizer=x/y");
    let mut cluster = Loop::new(&text);
    cluster.run("42s").stops("n1").deletes("node/n1").run("300s").did(expect![[r#"
        100s edit pod/default/a: Failed with DisruptionTarget=True DeletionByPodGC PodGC: node no longer exists @100000
        100s force-delete pod/default/a [pod_gc_collector_force_delete_pods_total namespace=default reason=orphaned]
        100s edit pod/default/kept: Failed with DisruptionTarget=True DeletionByPodGC PodGC: node no longer exists @100000
        100s force-delete pod/default/kept [pod_gc_collector_force_delete_pods_total namespace=default reason=orphaned]
    "#]]);
}
