//! Heartbeat: when to beat, and when to ask the council.
//!
//! Responsible for: one beat per beat period to every server, carrying the guard's stamp; questions to the council
//! while nobody answers. Leaves to [`crate::guard`] stamps and what answers are worth; to the body datagrams, and that
//! a beat never queues behind other traffic.
//!
//! Invariants:
//! - C18: no stamp of a living guard, no beat. A stamp is of a living guard if it is newer than the one before and
//!   came in less than two beat periods ago.
//! - A loop that stalls is silent: a live socket on a dead agent is a lie. The body of the beat may be another thread;
//!   the beat itself is decided here, and only while ticks go on coming.
//! - A node asks only while its permission lives: what is broken cannot be held.
//!
//! The failure it is for: a node whose guard is dead is granted for ever, because its agent answers so well.

use api::message::Stamp;
use api::timing::Timing;
use api::{Duration, Time};

use crate::guard::{Phase, Status};

/// When beats and questions are due.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    timing: Timing,
    started: Time,
    /// What the guard said last; `None` until it spoke to this process.
    guard: Option<Status>,
    /// When a *new* stamp came in.
    stamped_at: Time,
    /// The stamp of the last beat that went out.
    beaten: Option<Stamp>,
    /// When the last beat went out; only for the flaw that beats without the guard.
    beaten_at: Time,
    /// When a leader last answered.
    answered_at: Time,
    /// When the council was last asked.
    asked_at: Time,
    /// When the step loop last ticked.
    ticked_at: Time,
}

// === impl Heartbeat ===

impl Heartbeat {
    /// Nothing heard, nothing said.
    pub fn start(now: Time, timing: Timing) -> Self {
        Self {
            timing,
            started: now,
            guard: None,
            stamped_at: Time::ZERO,
            beaten: None,
            beaten_at: Time::ZERO,
            answered_at: now,
            asked_at: Time::ZERO,
            ticked_at: now,
        }
    }

    /// The guard spoke, or its page was read once more.
    pub fn stamped(&mut self, now: Time, status: Status) {
        if self.guard.as_ref().is_none_or(|before| status.is_news_after(before)) {
            self.stamped_at = now;
            self.guard = Some(status);
        }
    }

    /// A leader answered.
    pub fn answered(&mut self, now: Time) {
        self.answered_at = now;
    }

    /// The step loop is alive.
    pub fn ticked(&mut self, now: Time) {
        self.ticked_at = now;
    }

    /// What the guard said, and how long ago, if it is alive.
    pub fn guard(&self, now: Time) -> Option<(&Status, Duration)> {
        let age = now.since(self.stamped_at);
        self.guard.as_ref().filter(|_| age <= self.timing.beat.times(2)).map(|g| (g, age))
    }

    /// The stamp for a beat, if one is due. A beat belongs to a stamp, so that its age on the wire is the age of the
    /// stamp: a beat of its own rhythm would carry one that is up to a beat old, and a blip would kill that much earlier.
    pub fn beat(&mut self, now: Time) -> Option<Stamp> {
        let stamp = self.guard(now)?.0.stamp;
        // Three quarters: a guard that woke a little late once would else make every second stamp come too early.
        let period = self.timing.beat.ratio_down(3, 4);
        let due = self.beaten.is_none_or(|b| stamp.0.since(b.0) >= period || stamp < b);
        let stalled = now.since(self.ticked_at) > self.timing.beat.times(4);
        if !due || stalled {
            return None;
        }
        self.beaten = Some(stamp);
        self.beaten_at = now;
        Some(stamp)
    }

    /// What a beat would be stamped with by an agent that does not need its guard (the broken kind; C18).
    pub fn guardless_beat(&mut self, now: Time) -> Option<Stamp> {
        let guard = self.guard.as_ref()?;
        if now.since(self.beaten_at) < self.timing.beat {
            return None;
        }
        self.beaten_at = now;
        Some(Stamp(guard.stamp.0 + now.since(self.stamped_at)))
    }

    /// The stamp for a question to every member, if one is due.
    pub fn ask(&mut self, now: Time) -> Option<Stamp> {
        let (status, age) = self.guard(now)?;
        let stamp = status.stamp;
        let live = status.phase == Phase::Live && status.is_live(age) && status.until.0 != Time::MAX;
        let silent = now.since(self.answered_at) >= self.silence();
        if !live || !silent || now.since(self.asked_at) < self.timing.asking {
            return None;
        }
        self.asked_at = now;
        Some(stamp)
    }

    /// When [`Heartbeat::ask`] may next be due.
    pub fn next_wake(&self) -> Time {
        let ask = (self.answered_at + self.silence()).max(self.asked_at + self.timing.asking);
        ask.max(self.started)
    }

    /// Two beats and their ways there and back: below that, silence is the ordinary gap between two answers.
    fn silence(&self) -> Duration {
        self.timing.beat.times(2).plus(self.timing.delay.times(4))
    }
}
