//! Which of the possible nodes is best.
//!
//! Responsible for: a number per node. Spreading the pods of one owner counts most, so that the loss of a node takes as
//! few of them as can be; then soft taints, then room. Among equals the order of a hash of node and pod decides: it is
//! the same for everybody who asks and different for every pod.

use api::taint::{TaintEffect, first_untolerated};
use api::view::Node;

use super::board::{Board, Room, SCORED};
use super::filter::Wish;
use crate::workload::hash;

/// Best score of one aspect, as upstream.
const FULL: i64 = 100;
/// Upstream's weight of soft taints.
const TAINTS: i64 = 3;
/// Upstream's weight of topology spread is 2; here nothing else spreads, so it outweighs the soft taints.
const SPREAD: i64 = 4;
/// What a pod that asks for nothing is taken to need, so that such pods do not all go to one node: 0.1 CPU, 200 MiB.
const LEAST: [i64; SCORED.len()] = [100, 200 * 1024 * 1024 * 1000];

/// The best node, if there is one.
pub(super) fn best(board: &mut Board<'_>, wish: &Wish<'_>, possible: &[usize]) -> Option<usize> {
    if let [only] = possible {
        return Some(*only);
    }
    let owner = wish.pod.metadata.controller().map(|o| o.uid.clone());
    let siblings = |room: &Room| owner.as_ref().and_then(|uid| room.by_owner.get(uid).copied()).unwrap_or(0);
    let beside: Vec<i64> = possible.iter().map(|at| siblings(board.room(*at))).collect();
    let most = beside.iter().copied().max().unwrap_or(0).max(1);
    let score = |(at, beside): (&usize, i64)| {
        let spread = FULL - beside * FULL / most;
        let total =
            SPREAD * spread + TAINTS * soft(wish, board.nodes[*at]) + least_allocated(board.room(*at), wish);
        (total, *at)
    };
    let scored: Vec<(i64, usize)> = possible.iter().zip(beside).map(score).collect();
    let top = scored.iter().map(|(total, _)| *total).max()?;
    let equals = scored.into_iter().filter(|(total, _)| *total == top).map(|(_, at)| at);
    let uid = wish.pod.metadata.uid.as_str();
    equals.min_by_key(|at| hash(&[board.nodes[*at].metadata.name.as_str(), uid]))
}

/// Full if no taint asks to stay away.
fn soft(wish: &Wish<'_>, node: &Node) -> i64 {
    let tolerations = &wish.pod.spec.tolerations;
    let taint = first_untolerated(&node.spec.taints, tolerations, &[TaintEffect::PreferNoSchedule]);
    if taint.is_none() { FULL } else { 0 }
}

/// `LeastAllocated`: the share that stays free, mean of CPU and memory.
fn least_allocated(room: &Room, wish: &Wish<'_>) -> i64 {
    let shares = SCORED.iter().zip(LEAST).zip(room.has).map(|((name, least), has)| {
        let needs = wish.requests.get(*name).copied().unwrap_or(least);
        let free = room.free.get(*name).copied().unwrap_or(0).saturating_sub(needs).max(0);
        if has == 0 {
            0
        } else {
            i64::try_from(i128::from(free) * i128::from(FULL) / i128::from(has)).unwrap_or(0)
        }
    });
    shares.sum::<i64>() / 2
}
