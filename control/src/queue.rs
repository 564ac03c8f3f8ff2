//! The queue: which keys are due.
//!
//! Responsible for: the ready set, deadlines, actions in flight, the revision barrier, back-off and quarantine.
//! Leaves to [`crate::mind`] what is decided, to the body how long an action takes.
//!
//! ```text
//!            add                    pop                  settle(Done rev)
//!  (idle) ───────► ready ─────────────────► in flight ───────────────────► barrier(rev)
//!    ▲  deadline ──►  ▲                         │ Later, Refused               │ world reached rev
//!    │                └──── not before(time) ◄──┘                              ▼
//!    └──────────────────────────────── nothing to do ◄──────────────────── ready again
//! ```
//!
//! Invariants:
//! - Q1: a job in flight is not popped: one decision per key at a time.
//! - Q2 (revision barrier): a job whose actions were sent is not popped before the world has reached the revision of
//!   their effects. This replaces the expectation bookkeeping of stock controllers by one number per key; without it
//!   a ReplicaSet makes its pods twice.
//! - A touch is never lost: what arrives while a job is held is remembered and comes after.

use std::collections::{BTreeMap, BTreeSet};

use api::{Duration, Rev, Time};

use crate::controller::Key;

/// First pause after a failure. Half of it would retry inside one store round trip; doubling it is not noticed.
const BACKOFF_FIRST: Duration = Duration::from_ms(100);
/// Longest pause after failures: a key that fails for ever costs two decisions a minute.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// One key of one controller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Job {
    /// Index into the list of controllers.
    pub controller: usize,
    /// The unit of work.
    pub key: Key,
}

/// How carrying out a decision's actions ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All succeeded; the last effect has this revision.
    Done(Rev),
    /// An expectation did not hold; effects up to this revision may be there. Look again once the view is there.
    Stale(Rev),
    /// It may work later.
    Later,
    /// The law refused it: our bug, or the user's.
    Refused,
    /// The answer was lost. It may have happened; the head read afterwards is this.
    Unclear(Rev),
}

/// What holds a job back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// Nothing: it is in the ready set, or idle.
    Free,
    /// Its actions are being carried out.
    InFlight,
    /// The world must reach this revision first.
    Barrier(Rev),
    /// Not before this moment.
    NotBefore(Time),
}

#[derive(Debug)]
struct Slot {
    hold: Hold,
    /// Touched while held.
    touched: bool,
    deadline: Option<Time>,
    failures: u32,
}

impl Default for Slot {
    fn default() -> Self {
        Self { hold: Hold::Free, touched: false, deadline: None, failures: 0 }
    }
}

/// See the module's header.
#[derive(Debug, Default)]
pub struct Queue {
    slots: BTreeMap<Job, Slot>,
    ready: BTreeSet<Job>,
    deadlines: BTreeSet<(Time, Job)>,
    barriers: BTreeSet<(Rev, Job)>,
}

impl Queue {
    /// The job may have something to do.
    pub fn add(&mut self, job: Job) {
        let slot = self.slots.entry(job.clone()).or_default();
        match slot.hold {
            Hold::Free => {
                self.ready.insert(job);
            }
            Hold::InFlight | Hold::Barrier(_) | Hold::NotBefore(_) => slot.touched = true,
        }
    }

    /// The job may have something to do, and that may wait until `at`: what comes before is looked at together.
    pub fn add_by(&mut self, job: Job, at: Time) {
        let slot = self.slots.entry(job.clone()).or_default();
        match slot.hold {
            Hold::Free if self.ready.contains(&job) || slot.deadline.is_some_and(|set| set <= at) => {}
            Hold::Free => self.set_deadline(&job, at),
            Hold::InFlight | Hold::Barrier(_) | Hold::NotBefore(_) => slot.touched = true,
        }
    }

    /// The next job that is due, which is then in flight until it is settled.
    pub fn pop(&mut self, revision: Rev, now: Time) -> Option<Job> {
        self.release(revision, now);
        let job = self.ready.pop_first()?;
        let slot = self.slots.entry(job.clone()).or_default();
        debug_assert_eq!(slot.hold, Hold::Free, "invariant Q1: a held job is not ready");
        slot.hold = Hold::InFlight;
        slot.touched = false;
        if let Some(at) = slot.deadline.take() {
            self.deadlines.remove(&(at, job.clone()));
        }
        Some(job)
    }

    /// When something will be due if nothing happens before.
    pub fn next_deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// The job's decision had no actions.
    pub fn rest(&mut self, job: &Job, wake: Option<Time>) {
        let Some(slot) = self.slots.get_mut(job) else { return };
        slot.hold = Hold::Free;
        slot.failures = 0;
        let touched = std::mem::take(&mut slot.touched);
        if let Some(at) = wake {
            slot.deadline = Some(at);
            self.deadlines.insert((at, job.clone()));
        }
        if touched {
            self.ready.insert(job.clone());
        } else if wake.is_none() {
            self.slots.remove(job);
        }
    }

    /// The job's decision may not be carried out before `at` (no token, quarantine).
    pub fn postpone(&mut self, job: &Job, at: Time) {
        let Some(slot) = self.slots.get_mut(job) else { return };
        slot.hold = Hold::NotBefore(at);
        slot.touched = true;
        self.set_deadline(job, at);
    }

    /// The job's actions were carried out, or not. The job is decided again once the view holds what may have
    /// happened: every decision is checked by looking once more, so nothing depends on an answer being true.
    pub fn settle(&mut self, job: &Job, outcome: Outcome, wake: Option<Time>, now: Time) {
        let Some(slot) = self.slots.get_mut(job) else { return };
        slot.touched = true;
        let (hold, failed) = match outcome {
            // Invariant Q2.
            Outcome::Done(rev) => (Hold::Barrier(rev), false),
            Outcome::Stale(rev) | Outcome::Unclear(rev) => (Hold::Barrier(rev), true),
            Outcome::Later | Outcome::Refused => (Hold::Free, true),
        };
        slot.failures = if failed { slot.failures.saturating_add(1) } else { 0 };
        let failures = slot.failures;
        slot.hold = match (hold, outcome) {
            (Hold::Barrier(rev), _) => {
                self.barriers.insert((rev, job.clone()));
                Hold::Barrier(rev)
            }
            (_, Outcome::Refused) => Hold::NotBefore(now + BACKOFF_MAX),
            _ => Hold::NotBefore(now + backoff(failures)),
        };
        let until = match slot.hold {
            Hold::NotBefore(at) => Some(at),
            Hold::Free | Hold::InFlight | Hold::Barrier(_) => wake,
        };
        if let Some(at) = until {
            self.set_deadline(job, at);
        }
    }

    /// Forgets everything: this server does not lead any more.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// How many jobs are known, for limits and metrics.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True if no job is known.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    fn set_deadline(&mut self, job: &Job, at: Time) {
        let Some(slot) = self.slots.get_mut(job) else { return };
        if let Some(old) = slot.deadline.replace(at) {
            self.deadlines.remove(&(old, job.clone()));
        }
        self.deadlines.insert((at, job.clone()));
    }

    /// Frees what the world has reached and what time has come for.
    fn release(&mut self, revision: Rev, now: Time) {
        while let Some((rev, _)) = self.barriers.first()
            && *rev <= revision
        {
            let Some((_, job)) = self.barriers.pop_first() else { break };
            let Some(slot) = self.slots.get_mut(&job) else { continue };
            // A job that failed waits its turn even after the barrier, or two leaders would race each other hot.
            if slot.failures > 1 {
                let at = now + backoff(slot.failures - 1);
                slot.hold = Hold::NotBefore(at);
                self.set_deadline(&job, at);
            } else {
                slot.hold = Hold::Free;
                if std::mem::take(&mut slot.touched) {
                    self.ready.insert(job);
                }
            }
        }
        while let Some((at, _)) = self.deadlines.first()
            && *at <= now
        {
            let Some((_, job)) = self.deadlines.pop_first() else { break };
            let Some(slot) = self.slots.get_mut(&job) else { continue };
            slot.deadline = None;
            match slot.hold {
                Hold::Free | Hold::NotBefore(_) => {
                    slot.hold = Hold::Free;
                    slot.touched = false;
                    self.ready.insert(job);
                }
                Hold::InFlight | Hold::Barrier(_) => slot.touched = true,
            }
        }
    }
}

/// Doubling pause after the n-th failure in a row.
fn backoff(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    BACKOFF_FIRST.times(1 << doublings).min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_wait_waits_and_what_may_not_does_not() {
        let (at, due) = (Time::from_ms, Time::from_ms(100));
        let job = || Job { controller: 0, key: Key::Cluster };
        let mut queue = Queue::default();
        queue.add_by(job(), due);
        queue.add_by(job(), at(200));
        assert_eq!((queue.pop(Rev(1), at(99)), queue.next_deadline()), (None, Some(due)));
        assert_eq!(queue.pop(Rev(1), due), Some(job()));
        queue.rest(&job(), None);
        assert_eq!((queue.is_empty(), queue.next_deadline()), (true, None));

        queue.add_by(job(), due);
        queue.add(job());
        queue.add_by(job(), at(200));
        assert_eq!(queue.pop(Rev(1), at(1)), Some(job()));
        // While its actions are carried out it is touched like by anything else.
        queue.add_by(job(), at(200));
        queue.settle(&job(), Outcome::Done(Rev(2)), None, at(2));
        assert_eq!(queue.pop(Rev(1), at(3)), None);
        assert_eq!(queue.pop(Rev(2), at(3)), Some(job()));
    }
}
