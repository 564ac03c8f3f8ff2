//! Everything that can go wrong, and everything a human can do at a bad moment.
//!
//! Responsible for: the closed list of faults that a random schedule draws from and a scenario file names. Leaves to
//! [`crate::cluster`] to make them happen.

use api::taint::Taint;
use api::{Duration, Name, Namespace, NodeName};

/// A party on the network.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Party {
    /// A server, by index from 0.
    Server(usize),
    /// A machine.
    Node(NodeName),
    /// The store, where it is not inside the server (three servers).
    Store,
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Power cut: every process dies, unsynced writes are lost.
    PowerOff(NodeName),
    /// Power back: a new boot.
    PowerOn(NodeName),
    /// Off and on again after that time.
    Reboot(NodeName, Duration),
    /// The agent announces a reboot, shuts down in order, and the machine is back after that time.
    AnnouncedReboot(NodeName, Duration),
    /// Nothing moves; the clock counts it, or not.
    Suspend {
        /// The machine.
        node: NodeName,
        /// Whether its clock counts the pause.
        clock_runs: bool,
    },
    /// It goes on.
    Resume(NodeName),
    /// The agent process dies and is started again by its supervisor after that time.
    KillAgent(NodeName, Duration),
    /// The guard process dies; its supervisor starts it again at once (that time).
    KillGuard(NodeName, Duration),
    /// Messages from the one to the other are lost.
    Cut(Party, Party),
    /// They arrive again.
    Heal(Party, Party),
    /// All cuts end.
    HealAll,
    /// This share of messages (per mille) is lost, everywhere.
    Loss(u32),
    /// Delays of up to this much for some messages, everywhere.
    Delay(Duration),
    /// The server process dies; memory is lost.
    CrashServer(usize),
    /// It starts again.
    StartServer(usize),
    /// The server's machine is paused; its clock counts it, or not.
    PauseServer {
        /// Index of the server.
        server: usize,
        /// Whether its clock counts the pause.
        clock_runs: bool,
    },
    /// It goes on.
    ResumeServer(usize),
    /// This share of the store's answers (per mille) is lost after the write may have happened.
    LoseAnswers(u32),
    /// Watches of this server are late by this much: a stale view.
    StaleView(usize, Duration),
    /// A human force-deletes a pod.
    ForceDelete(Namespace, Name),
    /// A human deletes a pod with its grace.
    DeletePod(Namespace, Name),
    /// A human taints a node.
    Taint(NodeName, Taint),
    /// A human takes taints of that key away.
    Untaint(NodeName, String),
    /// A human deletes a Node object.
    DeleteNode(NodeName),
    /// A human removes a finalizer from a pod.
    DropFinalizers(Namespace, Name),
    /// A human scales a ReplicaSet or StatefulSet.
    Scale(Namespace, Name, u32),
}
