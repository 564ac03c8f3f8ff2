//! What the names in a scenario mean when their time comes: nodes that were given names, the leader, the followers.

use std::collections::BTreeMap;

use api::NodeName;

use crate::fault::{Fault, Party};
use crate::scenario::{FOLLOWERS, LEADER};

/// What names mean now.
#[derive(Debug)]
pub(super) struct Cast<'n> {
    pub(super) names: &'n BTreeMap<NodeName, NodeName>,
    pub(super) leader: usize,
    pub(super) servers: usize,
}

impl Cast<'_> {
    /// The machine behind a name.
    pub(super) fn node(&self, name: &NodeName) -> NodeName {
        self.names.get(name).unwrap_or(name).clone()
    }

    /// The faults with every name resolved.
    pub(super) fn resolve(&self, faults: &[Fault]) -> Vec<Fault> {
        faults.iter().flat_map(|fault| self.one(fault)).collect()
    }

    fn servers(&self, server: usize) -> Vec<usize> {
        match server {
            LEADER => vec![self.leader],
            FOLLOWERS => (0..self.servers).filter(|s| *s != self.leader).collect(),
            index => vec![index],
        }
    }

    fn each(&self, server: usize, fault: impl Fn(usize) -> Fault) -> Vec<Fault> {
        self.servers(server).into_iter().map(fault).collect()
    }

    fn parties(&self, party: &Party) -> Vec<Party> {
        match party {
            Party::Node(name) => vec![Party::Node(self.node(name))],
            Party::Server(server) => self.servers(*server).into_iter().map(Party::Server).collect(),
            Party::Store => vec![Party::Store],
        }
    }

    fn links(&self, one: &Party, other: &Party, fault: fn(Party, Party) -> Fault) -> Vec<Fault> {
        let others = self.parties(other);
        let mut faults = Vec::new();
        for one in self.parties(one) {
            // A name may mean what stands on the other side; nobody is cut off from himself.
            faults.extend(
                others.iter().filter(|other| **other != one).map(|other| fault(one.clone(), other.clone())),
            );
        }
        faults
    }

    fn one(&self, fault: &Fault) -> Vec<Fault> {
        let node = |name: &NodeName| self.node(name);
        match fault {
            Fault::PowerOff(n) => vec![Fault::PowerOff(node(n))],
            Fault::PowerOn(n) => vec![Fault::PowerOn(node(n))],
            Fault::Reboot(n, span) => vec![Fault::Reboot(node(n), *span)],
            Fault::AnnouncedReboot(n, span) => vec![Fault::AnnouncedReboot(node(n), *span)],
            Fault::Suspend { node: n, clock_runs } => {
                vec![Fault::Suspend { node: node(n), clock_runs: *clock_runs }]
            }
            Fault::Resume(n) => vec![Fault::Resume(node(n))],
            Fault::KillAgent(n, span) => vec![Fault::KillAgent(node(n), *span)],
            Fault::KillGuard(n, span) => vec![Fault::KillGuard(node(n), *span)],
            Fault::Cut(a, b) => self.links(a, b, Fault::Cut),
            Fault::Heal(a, b) => self.links(a, b, Fault::Heal),
            Fault::CrashServer(s) => self.each(*s, Fault::CrashServer),
            Fault::StartServer(s) => self.each(*s, Fault::StartServer),
            Fault::PauseServer { server, clock_runs } => {
                self.each(*server, |server| Fault::PauseServer { server, clock_runs: *clock_runs })
            }
            Fault::ResumeServer(s) => self.each(*s, Fault::ResumeServer),
            Fault::StaleView(s, late) => self.each(*s, |server| Fault::StaleView(server, *late)),
            Fault::Taint(n, taint) => vec![Fault::Taint(node(n), taint.clone())],
            Fault::Untaint(n, key) => vec![Fault::Untaint(node(n), key.clone())],
            Fault::DeleteNode(n) => vec![Fault::DeleteNode(node(n))],
            Fault::HealAll
            | Fault::Loss(_)
            | Fault::Delay(_)
            | Fault::LoseAnswers(_)
            | Fault::ForceDelete(..)
            | Fault::DeletePod(..)
            | Fault::DropFinalizers(..)
            | Fault::Scale(..) => vec![fault.clone()],
        }
    }
}
