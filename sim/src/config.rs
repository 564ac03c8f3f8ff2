//! What a virtual cluster is made of.
//!
//! Responsible for: the numbers and names that a run is built from. Leaves to [`crate::cluster`] to build it, to
//! scenarios and the command line to choose.

use std::collections::BTreeMap;

use api::flaw::Flaw;
use api::taint::Toleration;
use api::timing::Timing;
use api::view::RestartPolicy;
use api::{Duration, NodeName, Time};

/// When every run begins: 2026-01-01T00:00:00Z. A fixed moment, so that texts in objects are the same in every run.
pub const START: Time = Time::from_ms(1_767_225_600_000);

/// The namespace of all workloads.
pub const NAMESPACE: &str = "default";

/// Everything a run is built from, beside its seed.
#[derive(Clone, Debug)]
pub struct Config {
    /// The times of node death.
    pub timing: Timing,
    /// One server with its store inside, or three with a store of their own.
    pub servers: usize,
    /// The machines.
    pub nodes: Vec<NodeConfig>,
    /// What a human creates at the start, in order.
    pub workloads: Vec<Workload>,
    /// What is unusual about the pods of a workload, by its name.
    pub templates: BTreeMap<String, Template>,
    /// Each clock runs faster or slower by at most this, in parts per million; drawn for each machine.
    pub drift_ppm: u32,
    /// Shortest and longest delay of a message.
    pub delay: (Duration, Duration),
    /// A safeguard that is left out.
    pub flaw: Option<Flaw>,
}

/// One machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// Its name, which is also the name of its Node.
    pub name: NodeName,
    /// Its zone.
    pub zone: String,
}

/// Something that a human creates. Pods carry the label `app: <name>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workload {
    /// A StatefulSet; with `volume`, each pod has a claim `data-<name>-<n>` (RWO) bound to the CSI volume
    /// `pv-<name>-<n>`.
    StatefulSet {
        /// Its name.
        name: String,
        /// How many pods.
        replicas: u32,
        /// Whether each pod has a volume.
        volume: bool,
    },
    /// A ReplicaSet of pods without volumes.
    ReplicaSet {
        /// Its name.
        name: String,
        /// How many pods.
        replicas: u32,
    },
    /// A DaemonSet.
    DaemonSet {
        /// Its name.
        name: String,
    },
    /// A pod without an owner.
    Pod {
        /// Its name.
        name: String,
    },
    /// A Service over the pods of that workload, with the same name.
    Service {
        /// Its name.
        name: String,
    },
}

/// What may be unusual about the pods of a workload, and about the program that runs in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// Marked as exclusive.
    pub exclusive: bool,
    /// Taints that they live with.
    pub tolerations: Vec<Toleration>,
    /// What must be taken away before their objects go.
    pub finalizers: Vec<String>,
    /// When an ended container is started again.
    pub restart_policy: RestartPolicy,
    /// What the program exits with, when it is asked to end or ends by itself.
    pub exit_code: i32,
    /// The program ends by itself after this long; otherwise never.
    pub ends_after: Option<Duration>,
}

impl Config {
    /// Machines `n1`…, zones `a b c` in turn; a StatefulSet `db` of one pod with a volume, a ReplicaSet `web`, a
    /// DaemonSet `log`, a bare pod, a Service over `web`.
    pub fn small(timing: Timing, servers: usize, nodes: usize) -> Self {
        let zone = |i: usize| ["a", "b", "c"][i % 3].to_owned();
        let node = |i: usize| NodeConfig { name: NodeName::from(format!("n{}", i + 1)), zone: zone(i) };
        Self {
            timing,
            servers,
            nodes: (0..nodes).map(node).collect(),
            workloads: vec![
                Workload::StatefulSet { name: "db".to_owned(), replicas: 2, volume: true },
                Workload::ReplicaSet { name: "web".to_owned(), replicas: 3 },
                Workload::DaemonSet { name: "log".to_owned() },
                Workload::Pod { name: "bare".to_owned() },
                Workload::Service { name: "web".to_owned() },
            ],
            templates: BTreeMap::new(),
            drift_ppm: 10_000,
            delay: (Duration::from_ms(1), Duration::from_ms(50)),
            flaw: None,
        }
    }
}
