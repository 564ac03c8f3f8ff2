//! All decisions of a node: beats, the guard, the council member, the lives of pods.
//!
//! Responsible for: two machines that a body drives and a simulator drives just the same. [`Guard`] is the mind of a
//! small process of its own: it stamps beats and kills exclusive work when permission ends. [`Agent`] is the mind of
//! everything else. Leaves to bodies: time, network, disk, runtime; to `control` every decision about other nodes.
//!
//! Invariants: pure; given the same events at the same times, the same ops; nothing exclusive is begun without a grant
//! that the guard holds; nothing is believed of the host that was not observed.
//!
//! Start reading at [`event`] and [`op`]: the whole contract of the agent. Then [`fence`] for why two copies cannot
//! run, [`guard`] and [`member`] for the protocol, [`pod`] for the life of a pod.

pub mod agent;
pub mod event;
pub mod fence;
pub mod guard;
pub mod heartbeat;
pub mod host;
pub mod ledger;
pub mod member;
pub mod op;
pub mod pod;
pub mod settings;

pub use agent::Agent;
pub use event::{Event, Outcome, Reach};
pub use guard::Guard;
pub use host::PodOnHost;
pub use ledger::{Ledger, Note};
pub use op::{Call, Guarded, Op, OpId, PodAct};
pub use settings::Settings;
