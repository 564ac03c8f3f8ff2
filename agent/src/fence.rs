//! Why two copies cannot run, and what a node's permission means for its pods.
//!
//! Responsible for: one pure question, [`verdict`], and the argument behind it. Leaves the state to [`crate::guard`],
//! the server's half of the argument to `control`.
//!
//! The argument. An exclusive pod runs on node V only while V's guard is Live, plus the kill bound K. The guard is
//! Live only until the later of two moments:
//!
//! 1. newest answered stamp + G. The stamp was given before the beat was sent, the server noted the beat's arrival
//!    before it answered; so counted from that note, G (stretched by the drift of clocks) outlasts every grant.
//! 2. the majority-th largest vote (question's stamp + A). Before the server trusts silence it has a *majority* of the
//!    council close V. Two majorities share a member m. What m said to V it said before closing: if m then declares
//!    itself clean, that vote is dead already; if not, the server waits A from m's word. After closing, m says
//!    nothing more to V. So no majority can ever be renewed.
//!
//! After the later of both, plus K, V has stopped, and only then are its pods moved. No clock is compared with another;
//! each only measures a span, and none may run fast by more than the drift bound. A clock that stands still makes
//! everybody wait, or (a whole machine paused by its hypervisor) lets the old copy run on for what was left of its
//! permission after it wakes: it then finds itself denied, or at the latest closed.
//!
//! Starting is narrower than running: only a grant's own time and list permits a start. A hold is said by members who
//! do not know which pods the node still owns.

use api::Duration;

use crate::guard::{Phase, Status};

/// What may be done with exclusive pods now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A grant lives: what it names runs and may be started.
    Granted,
    /// Only the council's word carries the node: what runs may go on, nothing is started.
    Held,
    /// Nothing exclusive may run. The guard kills; the agent restarts nothing.
    StopExclusive,
}

/// What the guard's status, `age` old, means. No status of a living guard at all means that nothing may be started,
/// and nothing is stopped by the agent: stopping is the guard's, which is restarted at once and begins by killing.
pub fn verdict(status: Option<(&Status, Duration)>) -> Verdict {
    match status {
        None => Verdict::Held,
        Some((status, age)) => match (status.phase, status.is_live(age)) {
            (Phase::Broken, true | false) | (Phase::Live, false) => Verdict::StopExclusive,
            (Phase::Live, true) if status.stamp.0 + age < status.granted_until.0 => Verdict::Granted,
            (Phase::Live, true) => Verdict::Held,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::Time;
    use api::message::{Armed, Incarnation, Stamp};

    use super::*;

    #[test]
    fn a_status_means_what_its_times_say() {
        let at = |ms| Stamp(Time::from_ms(ms));
        let status = Status {
            who: Incarnation::default(),
            stamp: at(1000),
            phase: Phase::Live,
            until: at(3000),
            granted_until: at(2000),
            pods: Arc::from([]),
            armed: Armed::Yes,
            council: None,
        };
        let after = |ms| verdict(Some((&status, Duration::from_ms(ms))));
        assert_eq!(after(999), Verdict::Granted);
        assert_eq!(after(1000), Verdict::Held);
        assert_eq!(after(2000), Verdict::StopExclusive);
        assert_eq!(verdict(None), Verdict::Held, "the agent stops nothing in the guard's place");
        let broken = Status { phase: Phase::Broken, ..status };
        assert_eq!(verdict(Some((&broken, Duration::ZERO))), Verdict::StopExclusive);
    }
}
