//! Random fault schedules: one seed, one plan.
//!
//! Responsible for: drawing the cluster, the faults and what the run promises. Leaves to [`crate::run`] to carry the
//! plan out.
//!
//! Most seeds are chaos: everything that can go wrong, at once. A part of the seeds has one trouble only, because only
//! then a number can be promised (F2) or a stillness (O1, B1, F3).
//!
//! Invariants: a plan depends on the seed, the times and the flaw alone. Faults that a plan begins it also ends, except
//! where the calm at its end does: afterwards nothing goes wrong any more. What no promise covers is not drawn: a guard
//! that stays dead for longer than its kill bound has room for, a human who lies about a node that nothing guards.

mod chaos;

use std::collections::BTreeSet;

use api::flaw::Flaw;
use api::timing::{Automatic, Timing};
use api::{Duration, Name, NodeName};

use crate::chance::Chance;
use crate::config::{Config, Template, Workload};
use crate::fault::{Fault, Party};
use crate::oracle::Promise;
use crate::run::{Act, Plan};

/// Everything must be whole again within this time (L1).
const SETTLE: Duration = Duration::from_secs(120);
/// Stock waits six minutes for a volume that nobody unmounts, and up to ten before an evicted pod is gone.
const SETTLE_STOCK: Duration = Duration::from_secs(900);
/// Every run is left alone for so long at first: pods must be there before anything can be taken away.
const WARM: Duration = Duration::from_secs(12);

/// A plan under construction.
struct Draft {
    chance: Chance,
    config: Config,
    acts: Vec<(Duration, Act)>,
    promises: BTreeSet<Promise>,
    calm: Duration,
}

/// The kinds of runs, with their share of the seeds in a thousand.
const STORIES: [(u64, Story); 7] = [
    (334, Story { name: "one node dies", draw: one_dies }),
    (50, Story { name: "only the control plane fails", draw: outage }),
    (40, Story { name: "all nodes fall silent", draw: all_silent }),
    (60, Story { name: "quick reboot", draw: quick_reboot }),
    (40, Story { name: "council changes", draw: council_change }),
    (60, Story { name: "one node and a human", draw: one_and_a_human }),
    (416, Story { name: "chaos", draw: chaos::draw }),
];

struct Story {
    name: &'static str,
    draw: fn(&mut Draft),
}

/// The plan of a seed.
pub fn plan(seed: u64, timing: Timing, flaw: Option<Flaw>) -> Plan {
    let mut chance = Chance::new(seed);
    let story = story(&mut chance);
    let config = config(&mut chance, timing, flaw);
    let mut draft =
        Draft { chance, config, acts: Vec::new(), promises: BTreeSet::from([Promise::Whole]), calm: WARM };
    (story.draw)(&mut draft);
    draft.acts.sort_by_key(|(at, _)| *at);
    let settle = if draft.is_automatic() { SETTLE } else { SETTLE_STOCK };
    let Draft { config, acts, promises, calm, .. } = draft;
    Plan { story: story.name, config, acts, calm, settle, promises }
}

fn story(chance: &mut Chance) -> &'static Story {
    let mut at = chance.below(STORIES.iter().map(|(share, _)| share).sum());
    for (share, story) in &STORIES {
        if at < *share {
            return story;
        }
        at -= share;
    }
    &STORIES[0].1
}

fn config(chance: &mut Chance, timing: Timing, flaw: Option<Flaw>) -> Config {
    let servers = if chance.per_mille(400) { 3 } else { 1 };
    let nodes = 3 + chance.index(3);
    let mut config = Config::small(timing, servers, nodes);
    config.flaw = flaw;
    if chance.per_mille(200) {
        config.drift_ppm = 0;
    }
    if chance.per_mille(300) {
        config.workloads.push(Workload::Pod { name: "lone".to_owned() });
        config.templates.insert("lone".to_owned(), Template { exclusive: true, ..Template::default() });
    }
    config
}

// === impl Draft ===

impl Draft {
    fn is_automatic(&self) -> bool {
        self.config.timing.automatic == Automatic::On
    }

    fn at(&mut self, at: Duration, fault: Fault) {
        self.acts.push((at, Act::Fault(fault)));
        self.calm = self.calm.max(at);
    }

    fn at_host_of(
        &mut self,
        at: Duration,
        pod: &str,
        fault: fn(NodeName, Duration) -> Fault,
        span: Duration,
    ) {
        self.acts.push((at, Act::ToHostOf { pod: Name::from(pod), fault, span }));
        self.calm = self.calm.max(at + span);
    }

    fn ms(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_ms(self.chance.between(low, high))
    }

    fn secs(&mut self, low: u64, high: u64) -> Duration {
        self.ms(low * 1000, high * 1000)
    }

    fn coin(&mut self) -> bool {
        self.chance.per_mille(500)
    }

    fn node(&mut self) -> NodeName {
        let index = self.chance.index(self.config.nodes.len());
        self.config.nodes[index].name.clone()
    }

    fn nodes(&self) -> Vec<NodeName> {
        self.config.nodes.iter().map(|node| node.name.clone()).collect()
    }

    fn server(&mut self) -> usize {
        self.chance.index(self.config.servers)
    }

    /// How long the node may be off without being fenced: half of the grant, so that no drift or delay matters.
    fn window(&self) -> Duration {
        if self.is_automatic() { self.config.timing.grant.ratio_down(1, 2) } else { Duration::from_secs(30) }
    }

    /// Cuts both ways, or one way, between each server and each of these nodes, from `at` for `span`.
    fn cut_from_servers(&mut self, nodes: &[NodeName], way: Way, at: Duration, span: Duration) {
        for server in 0..self.config.servers {
            for node in nodes {
                let (s, n) = (Party::Server(server), Party::Node(node.clone()));
                if way != Way::ToServer {
                    self.at(at, Fault::Cut(s.clone(), n.clone()));
                    self.at(at + span, Fault::Heal(s.clone(), n.clone()));
                }
                if way != Way::ToNode {
                    self.at(at, Fault::Cut(n.clone(), s.clone()));
                    self.at(at + span, Fault::Heal(n, s));
                }
            }
        }
    }

    fn way(&mut self) -> Way {
        [Way::Both, Way::ToServer, Way::ToNode][self.chance.index(3)]
    }
}

/// Which way is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Both,
    ToServer,
    ToNode,
}

// === the stories ===

/// One node loses power and nothing else happens: the only run whose duration can be promised.
fn one_dies(draft: &mut Draft) {
    let at = WARM + draft.secs(0, 20);
    let ordinal = draft.chance.below(2);
    draft.at_host_of(at, &format!("db-{ordinal}"), |node, _| Fault::PowerOff(node), Duration::ZERO);
    if draft.is_automatic() {
        draft.promises.insert(Promise::FailsOver);
    }
    draft.calm = at + draft.secs(15, 30);
}

/// All servers are down, paused, cut off, or without a store. The nodes hear each other.
fn outage(draft: &mut Draft) {
    let (at, span) = (WARM + draft.secs(0, 10), draft.ms(800, 60_000));
    let servers = draft.config.servers;
    match draft.chance.below(4) {
        0 => {
            for server in 0..servers {
                let late = draft.ms(0, 500);
                draft.at(at + late, Fault::CrashServer(server));
                draft.at(at + late + span, Fault::StartServer(server));
            }
        }
        1 => {
            let clock_runs = draft.coin();
            for server in 0..servers {
                draft.at(at, Fault::PauseServer { server, clock_runs });
                draft.at(at + span, Fault::ResumeServer(server));
            }
        }
        2 if servers > 1 => {
            for server in 0..servers {
                let (s, store) = (Party::Server(server), Party::Store);
                draft.at(at, Fault::Cut(s.clone(), store.clone()));
                draft.at(at, Fault::Cut(store.clone(), s.clone()));
                draft.at(at + span, Fault::Heal(s.clone(), store.clone()));
                draft.at(at + span, Fault::Heal(store, s));
            }
        }
        _ => {
            let (nodes, way) = (draft.nodes(), draft.way());
            draft.cut_from_servers(&nodes, way, at, span);
        }
    }
    draft.promises.insert(Promise::NothingStops);
    draft.calm = at + span + draft.secs(1, 10);
}

/// The one server hears nobody, and it is the server that is alone.
fn all_silent(draft: &mut Draft) {
    draft.config.servers = 1;
    let (at, span) = (WARM + draft.secs(0, 10), draft.secs(2, 60));
    if draft.coin() {
        let clock_runs = draft.coin();
        draft.at(at, Fault::PauseServer { server: 0, clock_runs });
        draft.at(at + span, Fault::ResumeServer(0));
    } else {
        let (nodes, way) = (draft.nodes(), draft.way());
        draft.cut_from_servers(&nodes, way, at, span);
    }
    if draft.is_automatic() {
        draft.promises.insert(Promise::NothingWithdrawn);
    }
    draft.promises.insert(Promise::NothingStops);
    draft.calm = at + span + draft.secs(1, 10);
}

/// A node is back before it is fenced.
fn quick_reboot(draft: &mut Draft) {
    let at = WARM + draft.secs(0, 10);
    let window = draft.window().ms();
    let pod = ["db-0", "db-1"][draft.chance.index(2)];
    if draft.is_automatic() && draft.coin() {
        let span = draft.secs(5, 60);
        draft.at_host_of(at, pod, Fault::AnnouncedReboot, span);
    } else {
        let span = draft.ms(200, window);
        draft.at_host_of(at, pod, Fault::Reboot, span);
    }
    draft.promises.insert(Promise::NothingMoves);
    draft.calm = draft.calm + draft.ms(1000, 5000);
}

/// Members die one after the other and are replaced; some miss the change and hold with the council that they know.
fn council_change(draft: &mut Draft) {
    let more = 6 - draft.config.nodes.len().min(6) + draft.chance.index(2);
    draft.config.nodes = Config::small(draft.config.timing, 1, draft.config.nodes.len() + more).nodes;
    let mut nodes = draft.nodes();
    let mut at = WARM;
    for _ in 0..1 + draft.chance.below(2) {
        let victim = nodes.remove(draft.chance.index(nodes.len()));
        draft.at(at, Fault::PowerOff(victim.clone()));
        let back = draft.secs(20, 60);
        draft.at(at + back, Fault::PowerOn(victim));
        // About when the change is offered, several nodes cannot hear of it.
        let near = at + draft.ms(5000, 9000);
        let count = 1 + draft.chance.index(3);
        let mut cut = Vec::new();
        for _ in 0..count {
            cut.push(nodes[draft.chance.index(nodes.len())].clone());
        }
        cut.sort();
        cut.dedup();
        let span = draft.secs(5, 30);
        draft.cut_from_servers(&cut, Way::Both, near, span);
        at = at + draft.secs(8, 16);
    }
    draft.calm = draft.calm.max(at) + draft.secs(1, 5);
}

/// One node is in trouble, and a human does the wrong or the right thing about it.
fn one_and_a_human(draft: &mut Draft) {
    let at = WARM + draft.secs(0, 5);
    let victim = draft.node();
    let span = draft.secs(5, 40);
    match draft.chance.below(3) {
        0 => {
            draft.at(at, Fault::PowerOff(victim.clone()));
            draft.at(at + span, Fault::PowerOn(victim.clone()));
        }
        1 => {
            let way = draft.way();
            draft.cut_from_servers(std::slice::from_ref(&victim), way, at, span);
        }
        _ => {
            let clock_runs = draft.coin();
            draft.at(at, Fault::Suspend { node: victim.clone(), clock_runs });
            draft.at(at + span, Fault::Resume(victim.clone()));
        }
    }
    for _ in 0..1 + draft.chance.below(3) {
        let when = at + draft.ms(0, span.ms() + 5000);
        chaos::human(draft, when, Some(victim.clone()));
    }
    draft.calm = draft.calm.max(at + span) + draft.secs(1, 8);
    chaos::take_back_marks(draft);
}
