//! Chaos: 3 to 24 faults of all kinds within about a minute and a half.
//!
//! Responsible for: the mix. Each fault that lasts ends by itself after a while, in the plan or at its calm end.

use api::taint::{Taint, TaintEffect};
use api::{Duration, Name, Namespace, NodeName, annotation};

use super::{Draft, WARM, Way};
use crate::config::{Config, NAMESPACE};
use crate::fault::{Fault, Party};

/// When the last fault begins, after the warm-up.
const TROUBLE: u64 = 80_000;

/// Adds faults of one kind, from that moment on.
type Kind = fn(&mut Draft, Duration);

/// The kinds of faults with their weights.
const KINDS: [(u64, Kind); 19] = [
    (14, power),
    (6, reboot),
    (3, announced),
    (12, partition),
    (10, one_way),
    (4, between_nodes),
    (6, server_alone),
    (8, crash_server),
    (7, pause_server),
    (9, suspend),
    (4, kill_agent),
    (4, kill_guard),
    (2, kill_both),
    (4, loss),
    (5, delay),
    (3, lost_answers),
    (4, stale_view),
    (3, store_cut),
    (8, any_human),
];

pub(super) fn draw(draft: &mut Draft) {
    if draft.chance.per_mille(60) {
        let nodes = 1 + draft.chance.index(2);
        draft.config.nodes = Config::small(draft.config.timing, 1, nodes).nodes;
    }
    let total = KINDS.iter().map(|(weight, _)| weight).sum();
    let count = draft.chance.between(3, 24);
    // Few faults in a short time meet each other as well as many in a long one.
    let within = draft.chance.between(20_000, TROUBLE);
    for _ in 0..count {
        let at = WARM + draft.ms(0, within);
        let mut drawn = draft.chance.below(total);
        for (weight, fault) in KINDS {
            if drawn < weight {
                fault(draft, at);
                break;
            }
            drawn -= weight;
        }
    }
    draft.calm = draft.calm.min(WARM + Duration::from_ms(TROUBLE + 10_000));
    let calm = draft.calm;
    draft.acts.retain(|(at, _)| *at <= calm);
    take_back_marks(draft);
}

/// Faults last for a blink, for about as long as the protocol's times, or for long.
fn span(draft: &mut Draft) -> Duration {
    match draft.chance.below(4) {
        0 => draft.ms(50, 1500),
        1 | 2 => draft.ms(1500, 12_000),
        _ => draft.ms(12_000, 40_000),
    }
}

fn power(draft: &mut Draft, at: Duration) {
    let (node, span) = (draft.node(), span(draft));
    draft.at(at, Fault::PowerOff(node.clone()));
    draft.at(at + span, Fault::PowerOn(node));
}

fn reboot(draft: &mut Draft, at: Duration) {
    let (node, span) = (draft.node(), draft.ms(200, 20_000));
    draft.at(at, Fault::Reboot(node, span));
}

fn announced(draft: &mut Draft, at: Duration) {
    let (node, span) = (draft.node(), draft.secs(3, 30));
    draft.at(at, Fault::AnnouncedReboot(node, span));
}

fn partition(draft: &mut Draft, at: Duration) {
    let (node, span) = (draft.node(), span(draft));
    draft.cut_from_servers(&[node], Way::Both, at, span);
}

fn one_way(draft: &mut Draft, at: Duration) {
    let (node, span) = (draft.node(), span(draft));
    let way = if draft.coin() { Way::ToNode } else { Way::ToServer };
    draft.cut_from_servers(&[node], way, at, span);
}

fn between_nodes(draft: &mut Draft, at: Duration) {
    let (one, other, span) = (draft.node(), draft.node(), span(draft));
    let (one, other) = (Party::Node(one), Party::Node(other));
    draft.at(at, Fault::Cut(one.clone(), other.clone()));
    draft.at(at + span, Fault::Heal(one.clone(), other.clone()));
    if draft.coin() {
        draft.at(at, Fault::Cut(other.clone(), one.clone()));
        draft.at(at + span, Fault::Heal(other, one));
    }
}

/// One server loses all nodes, and its store if that is elsewhere.
fn server_alone(draft: &mut Draft, at: Duration) {
    let (server, span, way) = (draft.server(), span(draft), draft.way());
    let mut parties: Vec<Party> = draft.nodes().into_iter().map(Party::Node).collect();
    if draft.config.servers > 1 && draft.coin() {
        parties.push(Party::Store);
    }
    for party in parties {
        if way != Way::ToServer {
            draft.at(at, Fault::Cut(Party::Server(server), party.clone()));
            draft.at(at + span, Fault::Heal(Party::Server(server), party.clone()));
        }
        if way != Way::ToNode {
            draft.at(at, Fault::Cut(party.clone(), Party::Server(server)));
            draft.at(at + span, Fault::Heal(party, Party::Server(server)));
        }
    }
}

fn crash_server(draft: &mut Draft, at: Duration) {
    let (server, span) = (draft.server(), draft.ms(100, 20_000));
    draft.at(at, Fault::CrashServer(server));
    draft.at(at + span, Fault::StartServer(server));
}

fn pause_server(draft: &mut Draft, at: Duration) {
    let (server, span, clock_runs) = (draft.server(), span(draft), draft.coin());
    draft.at(at, Fault::PauseServer { server, clock_runs });
    draft.at(at + span, Fault::ResumeServer(server));
}

fn suspend(draft: &mut Draft, at: Duration) {
    let (node, span, clock_runs) = (draft.node(), span(draft), draft.coin());
    draft.at(at, Fault::Suspend { node: node.clone(), clock_runs });
    draft.at(at + span, Fault::Resume(node));
}

fn kill_agent(draft: &mut Draft, at: Duration) {
    let (node, span) = (draft.node(), draft.ms(50, 20_000));
    draft.at(at, Fault::KillAgent(node, span));
}

/// The kill bound has room for a guard that its supervisor starts again at once, and for no other.
fn guard_gap(draft: &mut Draft) -> Duration {
    let timing = &draft.config.timing;
    let parts = timing.guard_wake + timing.cgroup_kill + timing.unmount;
    let room = timing.kill_bound.minus(parts).ratio_down(1, 2).ms().max(1);
    draft.ms(0, room)
}

fn kill_guard(draft: &mut Draft, at: Duration) {
    let (node, gap) = (draft.node(), guard_gap(draft));
    draft.at(at, Fault::KillGuard(node, gap));
}

fn kill_both(draft: &mut Draft, at: Duration) {
    let (node, gap, span) = (draft.node(), guard_gap(draft), draft.ms(50, 10_000));
    draft.at(at, Fault::KillAgent(node.clone(), span));
    draft.at(at, Fault::KillGuard(node, gap));
}

fn loss(draft: &mut Draft, at: Duration) {
    let share = u32::try_from(draft.chance.between(50, 400)).unwrap_or(50);
    let span = span(draft);
    draft.at(at, Fault::Loss(share));
    draft.at(at + span, Fault::Loss(0));
}

fn delay(draft: &mut Draft, at: Duration) {
    let (late, span) = (draft.ms(200, 6000), span(draft));
    draft.at(at, Fault::Delay(late));
    draft.at(at + span, Fault::Delay(Duration::ZERO));
}

fn lost_answers(draft: &mut Draft, at: Duration) {
    let share = u32::try_from(draft.chance.between(50, 600)).unwrap_or(50);
    let span = span(draft);
    draft.at(at, Fault::LoseAnswers(share));
    draft.at(at + span, Fault::LoseAnswers(0));
}

fn stale_view(draft: &mut Draft, at: Duration) {
    let (server, late, span) = (draft.server(), draft.ms(200, 5000), span(draft));
    draft.at(at, Fault::StaleView(server, late));
    draft.at(at + span, Fault::StaleView(server, Duration::ZERO));
}

fn store_cut(draft: &mut Draft, at: Duration) {
    if draft.config.servers == 1 {
        return;
    }
    let (server, span, one_way) = (draft.server(), span(draft), draft.coin());
    let (server, store) = (Party::Server(server), Party::Store);
    draft.at(at, Fault::Cut(store.clone(), server.clone()));
    draft.at(at + span, Fault::Heal(store.clone(), server.clone()));
    if !one_way {
        draft.at(at, Fault::Cut(server.clone(), store.clone()));
        draft.at(at + span, Fault::Heal(server, store));
    }
}

fn any_human(draft: &mut Draft, at: Duration) {
    human(draft, at, None);
}

/// A human does something about `node`, or about anything.
pub(super) fn human(draft: &mut Draft, at: Duration, node: Option<NodeName>) {
    let node = match node {
        Some(node) => node,
        None => draft.node(),
    };
    let namespace = Namespace::from(NAMESPACE);
    let pod = Name::from(["db-0", "db-1", "db-0", "bare", "lone"][draft.chance.index(5)]);
    // Without three nodes nothing is guarded, and then a human's word counts at once, true or not.
    let is_guarded = draft.config.nodes.len() >= 3;
    let fault = match draft.chance.below(10) {
        0..3 => Fault::ForceDelete(namespace, pod),
        3 => Fault::DeletePod(namespace, pod),
        4 | 5 if is_guarded => {
            let effect = if draft.coin() { TaintEffect::NoExecute } else { TaintEffect::NoSchedule };
            Fault::Taint(node, Taint::new(annotation::OUT_OF_SERVICE, effect).with_value("human"))
        }
        6 if is_guarded => Fault::DeleteNode(node),
        7 => Fault::DropFinalizers(namespace, pod),
        8 => Fault::Untaint(node, annotation::OUT_OF_SERVICE.to_owned()),
        _ => {
            // There are volumes for two ordinals of the database and no more.
            let (name, most) = if draft.coin() { ("web", 5) } else { ("db", 2) };
            let count = u32::try_from(draft.chance.between(1, most)).unwrap_or(1);
            Fault::Scale(namespace, Name::from(name), count)
        }
    };
    draft.at(at, fault);
}

/// A mark that a human set stays until a human takes it away; at the end of the troubles one does.
pub(super) fn take_back_marks(draft: &mut Draft) {
    let calm = draft.calm;
    let mut marked: Vec<NodeName> = Vec::new();
    for (_, act) in &draft.acts {
        if let crate::run::Act::Fault(Fault::Taint(node, _)) = act {
            marked.push(node.clone());
        }
    }
    marked.sort();
    marked.dedup();
    for node in marked {
        draft.at(calm, Fault::Untaint(node, annotation::OUT_OF_SERVICE.to_owned()));
    }
}
