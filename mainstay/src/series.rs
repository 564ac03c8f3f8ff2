//! Many runs on many threads, as if they were one after the other.
//!
//! Responsible for: spreading numbered jobs over threads and handing their results out in the order of their numbers.
//! Leaves to the caller what a job is.
//!
//! Invariant: what the caller sees depends on the jobs alone, not on how threads were scheduled. If it stops at a
//! result, results behind that one are thrown away even if they were ready.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

/// Results that wait for an earlier one, per thread. A job that takes a minute must not let the others fill memory.
const AHEAD_MAX: usize = 64;

/// Runs `job` for each number and gives `each` the results in order, until it breaks.
pub(crate) fn in_order<T: Send>(
    numbers: Range<u64>,
    job: impl Fn(u64) -> T + Sync,
    mut each: impl FnMut(T) -> ControlFlow<()>,
) {
    let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let next = AtomicU64::new(numbers.start);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (sender, results) = mpsc::sync_channel(threads * AHEAD_MAX);
        for _ in 0..threads {
            let sender = sender.clone();
            let (next, stop, job, end) = (&next, &stop, &job, numbers.end);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    // A receiver that is gone has seen enough.
                    if number >= end || sender.send((number, job(number))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut wanted = numbers.start;
        for (number, result) in results {
            waiting.insert(number, result);
            while let Some(result) = waiting.remove(&wanted) {
                wanted += 1;
                if each(result).is_break() {
                    stop.store(true, Ordering::Relaxed);
                    return;
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order() {
        let mut seen = Vec::new();
        // Early jobs take longest, so that they are ready last.
        let job = |n: u64| (0..(50 - n) * 10_000).fold(n, |a, b| a ^ (b & 1) ^ (b & 1));
        in_order(0..50, job, |n| {
            seen.push(n);
            ControlFlow::Continue(())
        });
        assert_eq!(seen, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn nothing_is_seen_behind_a_break() {
        let mut seen = Vec::new();
        in_order(
            7..u64::MAX,
            |n| n,
            |n| {
                seen.push(n);
                if n == 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        );
        assert_eq!(seen, (7..=20).collect::<Vec<_>>());
    }
}
