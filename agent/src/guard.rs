//! The guard: the machine of a small process that ends exclusive work when permission for it has ended.
//!
//! Responsible for: the node's side of the fencing protocol: `until`, Live or Broken, votes, the newest council; the
//! stamps of beats; when to kill, and when a kill that cannot be confirmed must end in a reboot. Leaves to its body:
//! locked memory, priority, the wake-up, cgroups, mounts, the record on tmpfs; to [`crate::heartbeat`] when to beat
//! and whom to ask; to [`crate::fence`] the argument why this is enough.
//!
//! ```text
//!                 grant, received before sent + G
//!    Broken ───────────────────────────────────────► Live ─┐ grant, or a majority of none-heres:
//!      ▲  kill at once, and again at every tick       │  ▲  │ `until` moves forward
//!      └──────────────────────────────────────────────┘  └──┘
//!        now ≥ until; denied; another identity; boot
//! ```
//!
//! Invariants:
//! - C19: the first act on every event is the expiry test. What comes after expiry revives nothing.
//! - C7: everything is counted from the stamp that is answered, never from receipt.
//! - `until` never exceeds the greater of newest granted stamp + G and the majority-th largest vote, while armed.
//! - Votes prolong, only a grant revives; during a hold nothing is started.
//! - What is addressed to another boot or uid, or answers a stamp that this boot has not given yet, is ignored.
//! - Not armed (no council of three or more was offered): nothing expires, and beats say so.
//!
//! The failure it is for: a node that nobody can reach and that goes on writing to a disk which now belongs to
//! another (C1–C4), and an agent that hangs just then. That is why it is a process of its own, with so little in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::flaw::Flaw;
use api::message::{Answer, Armed, Grant, Incarnation, NoneHere, Stamp};
use api::timing::Timing;
use api::view::Membership;
use api::{CouncilEpoch, Duration, Time, Uid};

#[cfg(test)]
mod tests;

/// Something that happened to the guard.
#[derive(Clone, Debug)]
pub enum Event {
    /// Time has passed; at the latest at [`Guard::next_wake`]. Also once right after a freeze.
    Wake,
    /// The node has this identity now (`Op::Identify` of the agent).
    Identified(Uid),
    /// A leader answered a beat. Handed to the guard *before* the agent hears of it.
    Answer(Answer),
    /// A member of the council said that it hears no leader.
    NoneHere(NoneHere),
    /// A kill has been carried out.
    KillDone(Kill),
}

/// What a kill achieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
    /// No exclusive process lives, no exclusive mount is left.
    Confirmed,
    /// Something is left: a process in uninterruptible sleep, a mount that is busy.
    Remains,
}

/// Something the guard's body must do at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Kill every exclusive cgroup and pull its mounts, then say `KillDone`. Comes again at every tick while Broken,
    /// so that a start that raced with the first kill is caught.
    Kill,
    /// The kill bound is nearly used up and the kill is not confirmed: reboot this machine now.
    Reboot,
    /// Write the record to tmpfs (replace the older one); no outcome.
    Keep(Record),
}

/// Whether exclusive work may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It may, until `until`.
    Live,
    /// It may not.
    Broken,
}

/// What a restarted guard process must know. On tmpfs: it survives the process, not the boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Whose record; one of another boot or uid is ignored.
    pub who: Incarnation,
    /// Live or Broken when it was written.
    pub phase: Phase,
    /// End of the permission.
    pub until: Stamp,
    /// End of the newest grant's own time: what may be *started* until then.
    pub granted_until: Stamp,
    /// The stamp that the newest grant answered.
    pub granted: Option<Stamp>,
    /// The pods of the newest grant.
    pub pods: Arc<[Uid]>,
    /// The newest council offered.
    pub council: Option<Arc<Membership>>,
    /// The newest stamp that was denied.
    pub denied: Option<Stamp>,
    /// When it broke, while the kill was not confirmed.
    pub unconfirmed_since: Option<Stamp>,
}

/// What a guard process is told at its start.
#[derive(Clone, Debug)]
pub struct Start {
    /// This boot, and the identity of the node as the agent last said it; empty if there is none yet.
    pub who: Incarnation,
    /// The record on tmpfs, if there is one.
    pub kept: Option<Record>,
    /// The times.
    pub timing: Timing,
    /// What this node declares.
    pub kill_bound: Duration,
    /// Only in the simulator: the safeguard that is left out.
    pub flaw: Option<Flaw>,
}

/// What the guard shares with the agent, as of one stamp. Cheap to copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Whose guard.
    pub who: Incarnation,
    /// When this was said; the stamp of the next beat.
    pub stamp: Stamp,
    /// Live or Broken.
    pub phase: Phase,
    /// End of the permission.
    pub until: Stamp,
    /// Until when exclusive pods may be started.
    pub granted_until: Stamp,
    /// Which.
    pub pods: Arc<[Uid]>,
    /// Whether anything ever expires.
    pub armed: Armed,
    /// The newest council.
    pub council: Option<Arc<Membership>>,
}

/// The machine.
#[derive(Clone, Debug)]
pub struct Guard {
    who: Incarnation,
    timing: Timing,
    kill_bound: Duration,
    flaw: Option<Flaw>,

    phase: Phase,
    /// Written by grants and holds. Only compared with this boot's own clock.
    until: Stamp,
    /// Written by grants alone.
    granted_until: Stamp,
    /// The newest stamp that a grant answered: a late grant does not bring an older pod list back.
    granted: Option<Stamp>,
    /// The newest stamp that was denied: a grant for it or for an older one is older than the denial.
    denied: Option<Stamp>,
    /// From the newest grant since the last break.
    pods: Arc<[Uid]>,
    /// `None` until a grant has offered one.
    council: Option<Arc<Membership>>,
    /// sent + A of the newest none-here, by member of the newest council.
    votes_by_member: BTreeMap<Uid, Stamp>,

    /// When it broke, until the kill was confirmed.
    unconfirmed_since: Option<Stamp>,
    /// A kill was ordered and has not ended. Until then no grant revives: the kill would pull the mounts of what the
    /// grant lets begin.
    killing: bool,
    /// When it wakes at the latest, to stamp a beat.
    tick_at: Stamp,
}

/// Later than every moment: what is not armed does not expire.
const NEVER: Stamp = Stamp(Time::MAX);

// === impl Guard ===

impl Guard {
    /// The guard as its process starts. It starts by killing when it finds no valid permission: whatever runs was
    /// begun under a permission that nobody has watched since.
    pub fn start(now: Stamp, start: Start, ops: &mut Vec<Op>) -> Self {
        let Start { who, kept, timing, kill_bound, flaw } = start;
        let kept = kept.filter(|r| r.who == who && !who.uid.is_empty());
        let mut guard = Self {
            who,
            timing,
            kill_bound,
            flaw,
            phase: Phase::Broken,
            until: Stamp::default(),
            granted_until: Stamp::default(),
            granted: None,
            denied: None,
            pods: Arc::from([]),
            council: None,
            votes_by_member: BTreeMap::new(),
            unconfirmed_since: Some(now),
            killing: false,
            tick_at: after(now, timing.beat),
        };
        if let Some(record) = kept {
            guard.resume(record);
        }
        guard.expire(now, ops);
        if guard.phase == Phase::Broken {
            guard.order_kill(ops);
        }
        guard
    }

    /// Something happened at `now`, by the clock of this boot (the greater of BOOTTIME and MONOTONIC_RAW elapsed).
    /// The body empties `ops` between two steps.
    pub fn step(&mut self, now: Stamp, event: Event, ops: &mut Vec<Op>) {
        if self.flaw == Some(Flaw::VotesFirst)
            && let Event::NoneHere(none) = &event
        {
            self.vote(now, none);
            self.until = self.until.max(self.held_until());
        }
        // Invariant C19: before anything else. A vote that waited in a socket through a freeze must not be counted.
        self.expire(now, ops);
        match event {
            Event::Wake => self.wake(now, ops),
            Event::Identified(uid) => self.identify(now, uid, ops),
            Event::Answer(Answer::Grant(grant)) => self.grant(now, &grant, ops),
            Event::Answer(Answer::Denied { who, sent, epoch: _ }) => self.deny(now, &who, sent, ops),
            Event::NoneHere(none) => {
                self.vote(now, &none);
                self.hold(now, ops);
            }
            Event::KillDone(Kill::Confirmed) => {
                self.killing = false;
                self.confirm(ops);
            }
            // The next tick kills again; the bound goes on counting from the break.
            Event::KillDone(Kill::Remains) => self.killing = false,
        }
    }

    /// When it must be woken, if nothing happens before.
    pub fn next_wake(&self) -> Stamp {
        let expiry = match self.phase {
            Phase::Live => self.until,
            Phase::Broken => NEVER,
        };
        self.tick_at.min(expiry).min(self.reboot_at())
    }

    /// What is shared with the agent at `now`. Not before [`Guard::step`] has been called for `now`.
    pub fn status(&self, now: Stamp) -> Status {
        Status {
            who: self.who.clone(),
            stamp: now,
            phase: if self.is_live(now) { Phase::Live } else { Phase::Broken },
            until: self.until,
            granted_until: if self.flaw == Some(Flaw::HoldRevives) { self.until } else { self.granted_until },
            pods: self.pods.clone(),
            armed: self.armed(),
            council: self.council.clone(),
        }
    }

    /// True if exclusive work may run at `now`.
    pub fn is_live(&self, now: Stamp) -> bool {
        self.phase == Phase::Live && now < self.until
    }

    /// True if that exclusive pod may be *started* at `now`: what a body asks before it carries out a guarded act.
    /// A hold lets run what runs and starts nothing, so the newest grant's own time must not be over.
    pub fn permits(&self, pod: &Uid, now: Stamp) -> bool {
        let fresh = now < self.granted_until || self.flaw == Some(Flaw::HoldRevives);
        self.is_live(now) && fresh && self.pods.binary_search(pod).is_ok()
    }

    /// End of the permission; [`Time::MAX`] if nothing expires.
    pub fn until(&self) -> Stamp {
        self.until
    }

    /// Whether anything expires: only with a council of three or more does silence prove anything to anybody.
    pub fn armed(&self) -> Armed {
        if self.council.as_ref().is_some_and(|c| c.arms()) { Armed::Yes } else { Armed::No }
    }

    /// Whose guard this is.
    pub fn who(&self) -> &Incarnation {
        &self.who
    }

    fn resume(&mut self, record: Record) {
        self.phase = record.phase;
        self.until = record.until;
        self.granted_until = record.granted_until;
        self.granted = record.granted;
        self.pods = record.pods;
        self.council = record.council;
        self.denied = record.denied;
        self.unconfirmed_since = match record.phase {
            Phase::Live => None,
            Phase::Broken => record.unconfirmed_since.or(self.unconfirmed_since),
        };
    }

    /// The first act on every event.
    fn expire(&mut self, now: Stamp, ops: &mut Vec<Op>) {
        if self.phase == Phase::Live && now >= self.until {
            self.break_now(now, ops);
        }
        if now >= self.reboot_at() {
            ops.push(Op::Reboot);
        }
    }

    fn break_now(&mut self, now: Stamp, ops: &mut Vec<Op>) {
        self.phase = Phase::Broken;
        self.until = self.until.min(now);
        self.granted_until = self.granted_until.min(now);
        // From the order to kill, not from `until`: after a freeze the bound counts from the thaw, and a machine that
        // was only frozen must get the time to kill before it is reset.
        self.unconfirmed_since = Some(now);
        if self.flaw != Some(Flaw::HoldRevives) {
            // Only a grant that is received from now on names what may be started.
            self.pods = Arc::from([]);
        }
        self.order_kill(ops);
        self.keep(ops);
    }

    fn order_kill(&mut self, ops: &mut Vec<Op>) {
        self.killing = true;
        if !ops.contains(&Op::Kill) {
            ops.push(Op::Kill);
        }
    }

    fn wake(&mut self, now: Stamp, ops: &mut Vec<Op>) {
        if now < self.tick_at {
            return;
        }
        let next = after(self.tick_at, self.timing.beat);
        // After a freeze the missed ticks are not made up for.
        self.tick_at = if next > now { next } else { after(now, self.timing.beat) };
        if self.phase == Phase::Broken {
            self.order_kill(ops);
        }
    }

    fn identify(&mut self, now: Stamp, uid: Uid, ops: &mut Vec<Op>) {
        if uid == self.who.uid {
            return;
        }
        // Nothing that was said to the old identity holds for the new one.
        self.who.uid = uid;
        self.council = None;
        self.votes_by_member.clear();
        self.granted = None;
        self.denied = None;
        match self.phase {
            Phase::Live => self.break_now(now, ops),
            Phase::Broken => self.keep(ops),
        }
    }

    fn grant(&mut self, now: Stamp, grant: &Grant, ops: &mut Vec<Op>) {
        if !self.is_for_me(now, &grant.who, grant.sent) || self.denied.is_some_and(|d| grant.sent <= d) {
            return;
        }
        // The next grant comes with the next beat.
        if self.killing {
            return;
        }
        // Invariant C7: from the stamp, never from receipt.
        let from = self.counted_from(now, grant.sent);
        let end = after(from, self.timing.grant);
        if now >= end {
            return;
        }
        let was_armed = self.armed();
        self.adopt_council(grant.council.as_ref());
        match (was_armed, self.armed()) {
            (Armed::Yes | Armed::No, Armed::No) => {
                self.until = NEVER;
                self.granted_until = NEVER;
            }
            // From here on it expires: the end that never came must not survive.
            (Armed::No, Armed::Yes) => {
                self.until = end;
                self.granted_until = end;
            }
            (Armed::Yes, Armed::Yes) => {
                self.until = self.until.max(end);
                self.granted_until = self.granted_until.max(end);
            }
        }
        self.phase = Phase::Live;
        self.unconfirmed_since = None;
        if self.granted.is_none_or(|g| grant.sent >= g) {
            self.granted = Some(grant.sent);
            self.adopt_pods(&grant.pods);
        }
        self.hold(now, ops);
        self.keep(ops);
    }

    fn deny(&mut self, now: Stamp, who: &Incarnation, sent: Stamp, ops: &mut Vec<Op>) {
        if !self.is_for_me(now, who, sent) {
            return;
        }
        self.denied = self.denied.max(Some(sent));
        match self.phase {
            Phase::Live => self.break_now(now, ops),
            Phase::Broken => self.keep(ops),
        }
    }

    /// Counts a none-here of a member of the newest council. The node's own answer is one like any other.
    fn vote(&mut self, now: Stamp, none: &NoneHere) {
        let seated = self.council.as_ref().is_some_and(|c| c.has(&none.member));
        if !seated || !self.is_for_me(now, &none.who, none.sent) {
            return;
        }
        let good_until = after(self.counted_from(now, none.sent), self.timing.council_answer);
        let vote = self.votes_by_member.entry(none.member.clone()).or_default();
        *vote = good_until.max(*vote);
    }

    /// Prolongs a life that has not ended, as far as a majority of the newest council carries it.
    /// Invariant O1: a majority that hears no server either lets run what runs.
    fn hold(&mut self, now: Stamp, ops: &mut Vec<Op>) {
        let held_until = self.held_until();
        if self.flaw == Some(Flaw::HoldRevives) && now < held_until {
            self.phase = Phase::Live;
            self.unconfirmed_since = None;
        }
        if self.phase == Phase::Live && held_until > self.until {
            self.until = held_until;
            self.keep(ops);
        }
    }

    /// The majority-th largest vote in the newest council; zero if fewer have voted.
    fn held_until(&self) -> Stamp {
        let Some(council) = &self.council else { return Stamp::default() };
        let vote_of = |uid: &Uid| self.votes_by_member.get(uid).copied();
        let mut votes: Vec<Stamp> = council.seats.iter().filter_map(|s| vote_of(&s.node_uid)).collect();
        votes.sort_unstable_by(|a, b| b.cmp(a));
        votes.get(council.majority() - 1).copied().unwrap_or_default()
    }

    fn confirm(&mut self, ops: &mut Vec<Op>) {
        if self.phase == Phase::Broken && self.unconfirmed_since.take().is_some() {
            self.keep(ops);
        }
    }

    fn adopt_council(&mut self, offered: Option<&Membership>) {
        let Some(offered) = offered else { return };
        let known = self.council.as_ref().map_or(CouncilEpoch::default(), |c| c.epoch);
        if self.council.is_some() && offered.epoch <= known {
            return;
        }
        self.votes_by_member.retain(|member, _| offered.has(member));
        self.council = Some(Arc::new(offered.clone()));
    }

    fn adopt_pods(&mut self, pods: &[Uid]) {
        let mut sorted = pods.to_vec();
        sorted.sort_unstable();
        if *self.pods != *sorted {
            self.pods = Arc::from(sorted);
        }
    }

    /// True if a message is for this boot of this node and answers a stamp that this boot has given. A stamp of the
    /// future is one of another life: the machine was set back to a snapshot, and what was granted to the life that
    /// is lost would run far beyond what the server waits for.
    fn is_for_me(&self, now: Stamp, who: &Incarnation, sent: Stamp) -> bool {
        let same_uid = !self.who.uid.is_empty() && who.uid == self.who.uid;
        let same_boot = (who.boot == self.who.boot && sent <= now) || self.flaw == Some(Flaw::NoBoot);
        same_uid && same_boot
    }

    fn counted_from(&self, now: Stamp, sent: Stamp) -> Stamp {
        if self.flaw == Some(Flaw::FromReceipt) { now } else { sent }
    }

    /// A kill that is not confirmed by then ends in a reboot: one beat before the declared bound is used up, because
    /// a reset is not instant.
    fn reboot_at(&self) -> Stamp {
        match self.unconfirmed_since {
            Some(since) => after(since, self.kill_bound.minus(self.timing.beat)),
            None => NEVER,
        }
    }

    fn keep(&self, ops: &mut Vec<Op>) {
        // Only the newest record of a step counts.
        ops.retain(|op| !matches!(op, Op::Keep(_)));
        ops.push(Op::Keep(Record {
            who: self.who.clone(),
            phase: self.phase,
            until: self.until,
            granted_until: self.granted_until,
            granted: self.granted,
            pods: self.pods.clone(),
            council: self.council.clone(),
            denied: self.denied,
            unconfirmed_since: self.unconfirmed_since,
        }));
    }
}

// === impl Status ===

impl Status {
    /// True if exclusive work may run, `later` after the stamp.
    pub fn is_live(&self, later: Duration) -> bool {
        self.phase == Phase::Live && after(self.stamp, later) < self.until
    }

    /// True if this was said after `before`. The same words with the same stamp are a page that nobody writes any
    /// more; other words with the same stamp were said within one millisecond.
    pub fn is_news_after(&self, before: &Self) -> bool {
        self.who.boot != before.who.boot
            || self.stamp > before.stamp
            || (self.stamp == before.stamp && self != before)
    }

    /// True if that exclusive pod may be started, `later` after the stamp.
    pub fn permits(&self, pod: &Uid, later: Duration) -> bool {
        self.is_live(later)
            && after(self.stamp, later) < self.granted_until
            && self.pods.binary_search(pod).is_ok()
    }
}

fn after(stamp: Stamp, by: Duration) -> Stamp {
    Stamp(stamp.0 + by)
}
