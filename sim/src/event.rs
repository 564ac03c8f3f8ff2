//! Everything that can happen next in the virtual world.
//!
//! Responsible for: one closed list, so that the loop of [`crate::cluster`] is one match. Each event is addressed to
//! one party; a life or boot number says to which incarnation of it, and what comes too late for that one is dropped.

use api::message::{Answer, Ask, Beat, Closed, Gate, NoneHere};
use api::{Epoch, NodeName, ObjectKey, Rev, Time, Uid};

use crate::write::Answered;

/// Something that will happen.
#[derive(Debug)]
pub(crate) enum Event {
    /// To a process of a server.
    Server {
        server: usize,
        /// Of that incarnation.
        life: u32,
        what: ServerEvent,
    },
    /// A message to whatever process of a server runs when it arrives.
    ToServer { server: usize, message: ToServer },
    /// Inside a machine in one boot.
    Machine {
        machine: usize,
        /// Of that boot, by count.
        boot: u32,
        what: MachineEvent,
    },
    /// A message to whatever boot of a machine runs when it arrives.
    ToMachine { machine: usize, message: ToMachine },
    /// A request reaches the store.
    AtStore { server: usize, life: u32, request: Request },
    /// The storage's controller.
    Attacher(AttacherEvent),
    /// A human types again what was not answered.
    Human,
    /// Power comes back, if the machine has been off since that boot.
    PowerOn { machine: usize, after: u32 },
}

/// Inside a server process.
#[derive(Debug)]
pub(crate) enum ServerEvent {
    /// Something may be due.
    Wake,
    /// The watch brings what was written.
    Feed,
    /// Look after the lead.
    LeaseTick,
    /// What the store says about the lead.
    Lease(LeaseAnswer),
    /// The beats of the last moments are to be answered.
    Batch,
    /// The leader key was read: whether this server still leads in that term.
    Confirmed {
        epoch: Epoch,
        /// When the read began, by this server's clock.
        began: Time,
        leads: bool,
    },
    /// Closes and opens may have to be sent again.
    GateTick,
    /// An action was carried out, or not.
    Acted { flight: u64, answered: Answered },
    /// The head of the store, read because an answer was lost; `None` if the store could not be reached.
    Head { flight: u64, head: Option<Rev> },
}

/// A server's request to the store.
#[derive(Debug)]
pub(crate) enum Request {
    /// Who leads?
    Look,
    /// Take the lead, if nobody renewed since `seen`.
    Take { epoch: Epoch, seen: Option<Rev> },
    /// Keep the lead.
    Renew {
        epoch: Epoch,
        seen: Rev,
        /// When it was asked, by the server's clock.
        began: Time,
    },
    /// Still in that term?
    Confirm { epoch: Epoch, began: Time },
    /// The next action of a flight.
    Act { flight: u64 },
    /// The newest revision.
    Head { flight: u64 },
}

/// What the store says about the lead.
#[derive(Debug)]
pub(crate) enum LeaseAnswer {
    Leads(Option<crate::truth::Leader>),
    Taken { epoch: Epoch, head: Option<Rev> },
    Renewed { epoch: Epoch, began: Time, renewed: Option<Rev> },
}

/// A message to a server.
#[derive(Debug)]
pub(crate) enum ToServer {
    /// A machine opens a session.
    Hello { machine: usize, boot: u32 },
    /// A beat on a session.
    Beat { machine: usize, session: u64, beat: Box<Beat> },
    /// A member closed a node.
    Closed(Closed),
    /// A write by somebody who is no server.
    Call(Box<crate::write::Call>),
}

/// A message to a machine.
#[derive(Debug)]
pub(crate) enum ToMachine {
    /// A server accepts a session.
    Welcome {
        server: usize,
        session: u64,
        boot: u32,
    },
    /// A server does not know the session.
    Unknown {
        server: usize,
        session: u64,
    },
    Answer(Box<Answer>),
    Ask {
        from: NodeName,
        ask: Ask,
    },
    NoneHere(NoneHere),
    Gate(Gate),
}

/// Inside a machine.
#[derive(Debug)]
pub(crate) enum MachineEvent {
    /// The guard's timer.
    GuardWake { life: u32 },
    /// The guard's kill: the processes are dead.
    KillProcesses { run: u32 },
    /// The guard's kill: the mounts are pulled.
    KillMounts { run: u32 },
    /// The guard process is started by its supervisor.
    GuardStart,
    /// The watchdog was not fed in time.
    Watchdog { fed: u32 },
    /// The agent's timer.
    AgentWake { life: u32 },
    /// The agent process is started by its supervisor.
    AgentStart,
    /// An act on a pod ends.
    PodAct { work: u64 },
    /// Containers that were asked to end do so.
    Exit { pod: Uid, round: u32 },
    /// A note is on the disk.
    Synced { life: u32, note: u64, op: agent::OpId },
    /// A write was answered.
    Called { life: u32, op: agent::OpId, outcome: agent::Outcome },
    /// The agent's watch brings something.
    Feed { life: u32 },
    /// The agent looks whether its watch lives, or tries to open one.
    Dial { life: u32 },
    /// The watch is open: everything is listed.
    Listed { life: u32, server: usize, server_life: u32 },
    /// The announced shutdown reaches the power switch.
    ShutDown { off_for: api::Duration },
}

/// The storage's controller.
#[derive(Debug)]
pub(crate) enum AttacherEvent {
    /// It looks at an attachment.
    Look(ObjectKey),
    /// The storage has attached or detached.
    Moved { key: ObjectKey, uid: Uid, attach: bool },
}
