//! The network between servers, store and machines.
//!
//! Responsible for: which way is cut, what is lost, how long a message takes. Leaves to the senders what they do when
//! nothing comes.
//!
//! Two kinds of traffic: a *datagram* (beats, questions, gates and their answers) is lost or late; a *stream* (API
//! calls, watches) loses nothing, is late when the network loses, and fails when it is cut.

use std::collections::BTreeSet;

use api::Duration;

use crate::chance::Chance;

/// A party, by index. Humans and the storage's own controller are none: nothing cuts them off but the servers' death.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Site {
    Server(usize),
    Machine(usize),
    Store,
}

/// This share of messages is late while [`crate::fault::Fault::Delay`] holds, in per mille.
const LATE_SHARE: u32 = 150;
/// A stream that lost a segment sends it again after 200 ms at first; 6.2 s after the fourth time.
const RETRANSMIT: (Duration, Duration) = (Duration::from_ms(200), Duration::from_ms(3000));

/// See the module's header.
#[derive(Debug)]
pub(crate) struct Network {
    cuts: BTreeSet<(Site, Site)>,
    loss: u32,
    late: Duration,
    delay: (Duration, Duration),
    sent: u64,
}

impl Network {
    pub(crate) fn new(delay: (Duration, Duration)) -> Self {
        Self { cuts: BTreeSet::new(), loss: 0, late: Duration::ZERO, delay, sent: 0 }
    }

    pub(crate) fn cut(&mut self, from: Site, to: Site) {
        self.cuts.insert((from, to));
    }

    pub(crate) fn heal(&mut self, from: Site, to: Site) {
        self.cuts.remove(&(from, to));
    }

    pub(crate) fn heal_all(&mut self) {
        self.cuts.clear();
    }

    pub(crate) fn set_loss(&mut self, per_mille: u32) {
        self.loss = per_mille;
    }

    pub(crate) fn set_late(&mut self, most: Duration) {
        self.late = most;
    }

    /// How many messages were sent, lost ones too.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// True if a message can go from the one to the other.
    pub(crate) fn passes(&self, from: Site, to: Site) -> bool {
        self.cuts.is_empty() || !self.cuts.contains(&(from, to))
    }

    /// True if a stream between the two works: it needs both ways.
    pub(crate) fn connects(&self, a: Site, b: Site) -> bool {
        self.passes(a, b) && self.passes(b, a)
    }

    /// Sends a datagram: how long it takes, or that it is lost.
    pub(crate) fn datagram(&mut self, chance: &mut Chance, from: Site, to: Site) -> Option<Duration> {
        self.sent += 1;
        if !self.passes(from, to) || chance.per_mille(self.loss) {
            return None;
        }
        Some(self.delay(chance))
    }

    /// Sends something on a stream: how long it takes, or that the stream is cut.
    pub(crate) fn stream(&mut self, chance: &mut Chance, from: Site, to: Site) -> Option<Duration> {
        self.sent += 1;
        if !self.connects(from, to) {
            return None;
        }
        let again = if chance.per_mille(self.loss) {
            chance.span(RETRANSMIT.0, RETRANSMIT.1)
        } else {
            Duration::ZERO
        };
        Some(self.delay(chance) + again)
    }

    fn delay(&self, chance: &mut Chance) -> Duration {
        let usual = chance.span(self.delay.0, self.delay.1);
        if self.late > Duration::ZERO && chance.per_mille(LATE_SHARE) {
            return usual + chance.span(Duration::ZERO, self.late);
        }
        usual
    }
}
