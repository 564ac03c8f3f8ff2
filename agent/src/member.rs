//! The member: what this node says as a seat of the council.
//!
//! Responsible for: "none here" to nodes that ask, and for keeping nodes closed that a leader closed. Leaves to
//! `control` whom to close and what an acknowledgement is worth; to [`crate::guard`] what a none-here is worth; to the
//! body the disk and the wire.
//!
//! Invariants:
//! - Safety is in `closed_by_uid` alone. The contact test is a courtesy that keeps fencing fast: a member that wrongly
//!   says "none here" to a node that is not closed makes the leader wait, never two copies run.
//! - C9: a close is refused-from at once in memory, and acknowledged only once it is on disk.
//! - C6: an acknowledgement is clean only if the last none-here to that node can carry no hold any more, by this
//!   clock running fast and that node's running slow.
//! - C8: a member that has just started does not know what it said before, so its start counts as a none-here to all.
//!
//! The failure it is for: C4. A machine that was paused, fenced, and wakes into an outage finds its grant still good
//! by its own clock. Only members that remember the close stop it.

use std::collections::BTreeMap;

use api::flaw::Flaw;
use api::message::{Ask, Closed, Gate, GateWish, NoneHere};
use api::timing::Timing;
use api::{Time, Uid};

use crate::ledger::GateEntry;

#[cfg(test)]
mod tests;

/// How many *open* nodes are remembered. An open is kept so that a late, older close is recognised; a forgotten one
/// costs a needless close at most. Closes are never forgotten: one for every node that ever died and never returned.
const OPEN_MAX: usize = 1024;

/// The machine of one member, in the agent's process.
#[derive(Clone, Debug)]
pub struct Member {
    timing: Timing,
    flaw: Option<Flaw>,
    /// When this process started, by the clock that everything here is compared with.
    started: Time,
    /// When a leader that is not recovering last answered this node; `None` since the start.
    contact: Option<Time>,
    /// The last none-here, by node uid. Not on disk: `started` stands in for it after a restart.
    said_by_uid: BTreeMap<Uid, Time>,
    /// The last wish of a leader, by node uid. On disk before it is acknowledged.
    gates_by_uid: BTreeMap<Uid, GateEntry>,
}

/// What a gate asks of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Keep this, then acknowledge with [`Member::acknowledge`] if it was a close.
    Keep(GateEntry),
    /// It is on disk already: acknowledge again.
    Acknowledge,
    /// An older wish: nothing.
    Ignore,
}

// === impl Member ===

impl Member {
    /// The member as its process starts, with what the ledger holds.
    pub fn start(
        now: Time,
        gates_by_uid: BTreeMap<Uid, GateEntry>,
        timing: Timing,
        flaw: Option<Flaw>,
    ) -> Self {
        let gates_by_uid = if flaw == Some(Flaw::ForgetClose) { BTreeMap::new() } else { gates_by_uid };
        Self { timing, flaw, started: now, contact: None, said_by_uid: BTreeMap::new(), gates_by_uid }
    }

    /// A leader answered this node. One that is recovering is no contact: while the only server has just come back,
    /// nodes that it has not granted yet must still be able to hold.
    pub fn heard(&mut self, now: Time, recovering: bool) {
        if !recovering {
            self.contact = Some(now);
        }
    }

    /// A node asks whether a leader is there. `me` is the identity of this member.
    pub fn answer(&mut self, now: Time, me: &Uid, ask: &Ask) -> Option<NoneHere> {
        if me.is_empty() || self.is_closed(&ask.who.uid) || !self.is_alone(now) {
            return None;
        }
        self.said_by_uid.insert(ask.who.uid.clone(), now);
        Some(NoneHere { member: me.clone(), who: ask.who.clone(), sent: ask.sent })
    }

    /// A leader closes or opens a node. From here on a closed node is refused, whether or not the disk has it.
    pub fn gate(&mut self, gate: &Gate) -> Verdict {
        let stored = self.gates_by_uid.get(&gate.uid);
        let order = stored.map(|s| (gate.epoch, gate.seq).cmp(&(s.epoch, s.seq)));
        match (order, gate.wish) {
            (Some(std::cmp::Ordering::Less), GateWish::Close | GateWish::Open) => Verdict::Ignore,
            (Some(std::cmp::Ordering::Equal), GateWish::Open) => Verdict::Ignore,
            (Some(std::cmp::Ordering::Equal), GateWish::Close) => match stored.map(|s| s.wish) {
                Some(GateWish::Close) => Verdict::Acknowledge,
                Some(GateWish::Open) | None => Verdict::Ignore,
            },
            (Some(std::cmp::Ordering::Greater) | None, wish) => {
                // Invariant C9: on disk before it is acknowledged.
                let entry = GateEntry { epoch: gate.epoch, seq: gate.seq, wish };
                self.gates_by_uid.insert(gate.uid.clone(), entry);
                if self.flaw == Some(Flaw::ForgetClose) { Verdict::Acknowledge } else { Verdict::Keep(entry) }
            }
        }
    }

    /// The acknowledgement of that close, once it is on disk. `None` if a newer wish has come in between, or if it
    /// was an open.
    pub fn acknowledge(&self, now: Time, me: &Uid, uid: &Uid, kept: GateEntry) -> Option<Closed> {
        let current = self.gates_by_uid.get(uid) == Some(&kept);
        let close = kept.wish == GateWish::Close;
        (current && close && !me.is_empty()).then(|| Closed {
            member: me.clone(),
            uid: uid.clone(),
            epoch: kept.epoch,
            seq: kept.seq,
            clean: self.is_clean(now, uid),
        })
    }

    /// What is stored of that node.
    pub fn gate_of(&self, uid: &Uid) -> Option<GateEntry> {
        self.gates_by_uid.get(uid).copied()
    }

    /// Drops an open that is one too many; the caller drops it from the ledger.
    pub fn forget_one(&mut self) -> Option<Uid> {
        let is_open = |entry: &GateEntry| entry.wish == GateWish::Open;
        if self.gates_by_uid.len() <= OPEN_MAX
            || self.gates_by_uid.values().filter(|e| is_open(e)).count() <= OPEN_MAX
        {
            return None;
        }
        let oldest =
            self.gates_by_uid.iter().filter(|(_, e)| is_open(e)).min_by_key(|(_, e)| (e.epoch, e.seq));
        let uid = oldest.map(|(uid, _)| uid.clone())?;
        self.gates_by_uid.remove(&uid);
        Some(uid)
    }

    fn is_closed(&self, uid: &Uid) -> bool {
        self.gates_by_uid.get(uid).is_some_and(|e| e.wish == GateWish::Close)
    }

    /// True if no leader was heard for longer than the contact window, in this process's life.
    fn is_alone(&self, now: Time) -> bool {
        let since = self.contact.map_or(self.started, |c| c.max(self.started));
        now.since(since) > self.timing.contact_window
    }

    /// Invariant C6, C8.
    fn is_clean(&self, now: Time, uid: &Uid) -> bool {
        if self.flaw == Some(Flaw::DirtyIsClean) {
            return true;
        }
        let said = self.said_by_uid.get(uid).copied();
        let last = if self.flaw == Some(Flaw::ForgetSaid) {
            said.unwrap_or(Time::ZERO)
        } else {
            said.unwrap_or(self.started).max(self.started)
        };
        now.since(last) > self.timing.clean_limit()
    }
}
