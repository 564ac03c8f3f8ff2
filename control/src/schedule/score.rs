//! Which of the possible nodes is best.
//!
//! Responsible for: a number per node. Spreading the pods of one owner counts most, so that the loss of a node takes as
//! few of them as can be; then soft taints, then room. Among equals the order of a hash of node and pod decides: it is
//! the same for everybody who asks and different for every pod.

use std::cmp::Reverse;

use api::taint::{TaintEffect, first_untolerated};
use api::view::Node;

use super::board::{Board, milli};
use super::filter::Wish;
use crate::workload::hash;
use crate::world::Seen;

/// Best score of one aspect, as upstream.
const FULL: i64 = 100;
/// Upstream's weight of soft taints.
const TAINTS: i64 = 3;
/// Upstream's weight of topology spread is 2; here nothing else spreads, so it outweighs the soft taints.
const SPREAD: i64 = 4;
/// What a pod that asks for nothing is taken to need, so that such pods do not all go to one node: 0.1 CPU, 200 MiB.
const LEAST: [(&str, i64); 2] = [("cpu", 100), ("memory", 200 * 1024 * 1024 * 1000)];

/// The best node, if there is one.
pub(super) fn best<'n>(
    board: &mut Board<'_>,
    wish: &Wish<'_>,
    possible: &[&'n Seen<Node>],
) -> Option<&'n Seen<Node>> {
    if let [only] = possible {
        return Some(only);
    }
    let owner = wish.pod.metadata.controller().map(|o| o.uid.clone());
    let mut siblings =
        |node: &Node| owner.as_ref().and_then(|uid| board.room(node).by_owner.get(uid).copied()).unwrap_or(0);
    let beside: Vec<i64> = possible.iter().map(|n| siblings(n)).collect();
    let most = beside.iter().copied().max().unwrap_or(0).max(1);
    let scored = possible.iter().zip(beside).map(|(node, beside)| {
        let spread = FULL - beside * FULL / most;
        let total = SPREAD * spread + TAINTS * soft(wish, node) + least_allocated(board, wish, node);
        let tie = hash(&[node.metadata.name.as_str(), wish.pod.metadata.uid.as_str()]);
        (Reverse(total), tie, *node)
    });
    scored.min_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1))).map(|(_, _, node)| node)
}

/// Full if no taint asks to stay away.
fn soft(wish: &Wish<'_>, node: &Node) -> i64 {
    let tolerations = &wish.pod.spec.tolerations;
    let taint = first_untolerated(&node.spec.taints, tolerations, &[TaintEffect::PreferNoSchedule]);
    if taint.is_none() { FULL } else { 0 }
}

/// `LeastAllocated`: the share that stays free, mean of CPU and memory.
fn least_allocated(board: &mut Board<'_>, wish: &Wish<'_>, node: &Node) -> i64 {
    let room = board.room(node);
    let share = |(name, least): &(&str, i64)| {
        let has = node.status.allocatable.get(*name).map_or(0, |q| milli(*q));
        let taken = room.requests.get(*name).copied().unwrap_or(0);
        let needs = wish.requests.get(*name).copied().unwrap_or(*least);
        let free = has.saturating_sub(taken).saturating_sub(needs).max(0);
        if has == 0 {
            0
        } else {
            i64::try_from(i128::from(free) * i128::from(FULL) / i128::from(has)).unwrap_or(0)
        }
    };
    LEAST.iter().map(share).sum::<i64>() / 2
}
