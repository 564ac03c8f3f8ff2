//! Deliberate faults: what the simulator breaks to see whether its oracles notice.
//!
//! Responsible for: one name per safeguard. Leaves to each safeguard the one line that asks. An oracle that never
//! fired is not trusted, and a safeguard that nothing depends on is not needed; both are found by leaving the
//! safeguard out. Nothing but the simulator sets a flaw: no configuration, flag or environment leads here.

/// A safeguard that is left out. The texts are in [`Flaw::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each variant is explained in the list below")]
pub enum Flaw {
    Amnesia,
    DirtyIsClean,
    FromReceipt,
    ForgetSaid,
    ForgetClose,
    NoDrift,
    LeaderClock,
    AnyAck,
    NewestOnly,
    NoClose,
    RacingGrant,
    GuardlessBeat,
    VotesFirst,
    LateKill,
    NoBarrier,
    NoEpoch,
    HoldRevives,
    UnconfirmedGrant,
    NoFreshRead,
    NoBrake,
    NoBoot,
    NoTombstone,
}

impl Flaw {
    /// Every flaw: name on the command line, and what is broken.
    pub const ALL: [(Self, &'static str, &'static str); 22] = [
        (Self::Amnesia, "c5-amnesia", "a restarted server assumes that no grant is outstanding"),
        (
            Self::DirtyIsClean,
            "c6-dirty-is-clean",
            "a member that just said none-here acknowledges a close as clean",
        ),
        (
            Self::FromReceipt,
            "c7-from-receipt",
            "a grant or a vote counts from its receipt, not from its question",
        ),
        (Self::ForgetSaid, "c8-forget-said", "a restarted member forgets when it said none-here"),
        (Self::ForgetClose, "c9-forget-close", "a restarted member forgets what it closed"),
        (Self::NoDrift, "c10-no-drift", "the server ignores that clocks run at different rates"),
        (
            Self::LeaderClock,
            "c11-leader-clock",
            "a deposed leader trusts its own clock instead of reading the leader key",
        ),
        (Self::AnyAck, "c12-any-ack", "an acknowledgement of an older close counts"),
        (Self::NewestOnly, "c13-newest-only", "only the newest council is closed and counted"),
        (Self::NoClose, "c14-no-close", "a silent node is fenced without closing it at the council"),
        (
            Self::RacingGrant,
            "c17-racing-grant",
            "a node is granted while evidence about it is being recorded",
        ),
        (Self::GuardlessBeat, "c18-guardless-beat", "beats go out although the guard is dead"),
        (Self::VotesFirst, "c19-votes-first", "a vote is counted before the expiry is tested"),
        (Self::LateKill, "late-kill", "self-fencing takes longer than the declared kill bound"),
        (Self::NoBarrier, "no-barrier", "a key is decided again before the view holds its last effect"),
        (Self::NoEpoch, "no-epoch", "writes of a deposed leader are not refused"),
        (Self::HoldRevives, "hold-revives", "a hold starts exclusive pods that were stopped"),
        (
            Self::UnconfirmedGrant,
            "unconfirmed-grant",
            "a fenced node is granted before it confirmed that it stopped",
        ),
        (
            Self::NoFreshRead,
            "no-fresh-read",
            "irreversible steps trust the view instead of comparing with the store",
        ),
        (Self::NoBrake, "no-brake", "no brake holds"),
        (Self::NoBoot, "no-boot", "evidence and confirmations are not compared with the boot"),
        (
            Self::NoTombstone,
            "no-tombstone",
            "an exclusive pod's object may go without a record that it may still run",
        ),
    ];

    /// The flaw of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, n, _)| *n == name).map(|(flaw, _, _)| *flaw)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(flaw, _, _)| *flaw == self).map_or("", |(_, name, _)| name)
    }
}
