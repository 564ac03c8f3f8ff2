//! The scenario files that come with the simulator.
//!
//! Responsible for: one list, by name. A test compares it with the directory `sim/scenarios`; a run that looks for a
//! mutation begins with those that must fail with it.

/// One file.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// Its name without the ending.
    pub name: &'static str,
    /// What it says.
    pub text: &'static str,
}

/// Makes the list: a macro, because `include_str!` needs a literal.
macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(Shipped { name: $name, text: include_str!(concat!("../../scenarios/", $name, ".txt")) }),*]
    };
}

/// Every file in `sim/scenarios`, by name.
pub static SHIPPED: &[Shipped] = shipped![
    "c01-one-way-contact",
    "c02-a-majority-at-each-instant",
    "c03-paused-server",
    "c04-deleted-while-paused",
    "c05-amnesia",
    "c07-from-receipt",
    "c08-forget-said",
    "c09-paused-node-and-later-outage",
    "c10-no-drift",
    "c11-leader-clock",
    "c12-any-ack",
    "c13-newest-only",
    "c15-boot-is-recorded-first",
    "c16-late-beat-of-the-old-boot",
    "c17-racing-grant",
    "c18-guardless-beat",
    "c19-votes-first",
    "closed-node-is-opened-again",
    "deposed-leader-writes-nothing",
    "f03-announced-reboot",
    "f03-quick-reboot",
    "hold-starts-nothing",
    "late-report-frees-no-volume",
    "old-evidence-proves-nothing-new",
    "p01-stateful-pod-moves-on-proof",
    "p02-hold",
    "p04-short-toleration-shows",
    "p05-marked-pod-is-no-replica",
    "p08-deleted-node-leaves-nothing",
    "p10-mark-on-a-ready-node",
    "p10-tolerated-mark",
    "p109-stale-view-destroys-nothing",
    "p11-mark-taken-back",
    "p112-a-human-has-the-proof",
    "p112-no-proof-no-fencing",
    "p113-blip",
    "p13-nothing-lands-on-a-dying-node",
    "p14-force-delete-on-a-healthy-node",
    "p16-cut-node-comes-back-writing",
    "p19-one-way-cut",
    "p19-one-way-cut-back",
    "p20-deletes-are-judged-again",
    "p22-clean-unmount-waits-for-no-timer",
    "p23-no-detach-by-time",
    "p25-attachment-of-a-lost-node",
    "p26-deleted-node-that-lives",
    "p28-no-attachment-to-a-dead-node",
    "p29-restart-between-writes",
    "p32-power-cut-of-the-site",
    "p35-flapping-node",
    "p39-however-it-ended",
    "p41-no-daemons-for-a-node-that-shuts-down",
    "p67-endpoints-go-in-time",
    "p67-endpoints-go-in-time-fast",
    "p69-server-hears-nobody",
    "p69-server-is-paused",
    "p70-control-plane-returns",
    "p70-control-plane-returns-stock",
    "p71-a-zone-is-down",
    "p73-store-failover",
    "p76-old-leader",
    "p77-link-lost-and-back",
    "p86-name-is-not-a-machine",
    "p91-orphans-wait",
    "p92-fencing-keeps-the-node",
    "taken-away-nodes-hold-no-seat",
    "three-left-prove-the-next-death",
    "v01-unreachable",
    "v02-one-node",
    "v03-two-of-three",
    "v04-three-of-four",
    "v05-all-nodes",
    "v06-evicted-after-300s",
    "v07-back-in-time",
    "v08-no-patience",
    "v09-shortest-toleration",
    "v10-daemon-stays",
    "v11-stateful-waits-for-ever",
    "v12-out-of-service",
    "v13-mark-on-a-ready-node",
    "v14-mark-without-eviction",
    "v15-node-deleted",
    "v16-node-made-again",
    "v17-finalizer-keeps-the-object",
];
