//! Many runs on many threads, as if they were one after the other.
//!
//! Responsible for: spreading numbered jobs over threads and handing their results out in the order of their numbers.
//! Leaves to the caller what a job is.
//!
//! Invariants: what the caller sees depends on the jobs alone, not on how threads were scheduled. If it stops at a
//! result, results behind that one are thrown away even if they were ready. Only so many results wait for an earlier
//! one: a job that takes a minute must not let the others fill memory.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

/// Results that wait for an earlier one, per thread.
const AHEAD_MAX: u64 = 64;

/// Runs `job` for each number and gives `each` the results in order, until it breaks.
pub(crate) fn in_order<T: Send>(
    numbers: RangeInclusive<u64>,
    job: impl Fn(u64) -> T + Sync,
    mut each: impl FnMut(T) -> ControlFlow<()>,
) {
    let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let ahead = u64::try_from(threads).unwrap_or(1).saturating_mul(AHEAD_MAX);
    let line = Line::new(numbers, ahead);
    thread::scope(|scope| {
        let (sender, results) = mpsc::channel();
        for _ in 0..threads {
            let sender = sender.clone();
            let (line, job) = (&line, &job);
            scope.spawn(move || {
                let _end = EndOnPanic(line);
                while let Some(number) = line.next() {
                    // A receiver that is gone has seen enough.
                    if sender.send((number, job(number))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        for (number, result) in results {
            waiting.insert(number, result);
            while let Some(result) = waiting.remove(&line.wanted()) {
                if each(result).is_break() {
                    line.end();
                    return;
                }
                line.done();
            }
        }
    });
}

/// The numbers that are left, and how far the results were handed out.
struct Line {
    state: Mutex<State>,
    moved: Condvar,
    last: u64,
    ahead: u64,
}

struct State {
    /// What the next thread takes; nothing if all is taken.
    next: Option<u64>,
    /// The result that is handed out next.
    wanted: u64,
}

// === impl Line ===

impl Line {
    fn new(numbers: RangeInclusive<u64>, ahead: u64) -> Self {
        let (first, last) = numbers.into_inner();
        let state = State { next: (first <= last).then_some(first), wanted: first };
        Self { state: Mutex::new(state), moved: Condvar::new(), last, ahead }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No job runs while the lock is held: a panic leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a number. Waits while the results that are wanted are too far behind.
    fn next(&self) -> Option<u64> {
        let is_far = |state: &mut State| {
            state.next.is_some_and(|next| next.saturating_sub(state.wanted) >= self.ahead)
        };
        let mut state = self.moved.wait_while(self.state(), is_far).unwrap_or_else(PoisonError::into_inner);
        let number = state.next?;
        state.next = if number < self.last { Some(number + 1) } else { None };
        Some(number)
    }

    fn wanted(&self) -> u64 {
        self.state().wanted
    }

    /// The wanted result was handed out.
    fn done(&self) {
        let mut state = self.state();
        state.wanted = state.wanted.saturating_add(1);
        self.moved.notify_all();
    }

    /// Nothing more is wanted.
    fn end(&self) {
        self.state().next = None;
        self.moved.notify_all();
    }
}

/// A thread whose job panics has a result that never comes: nobody may wait for it.
struct EndOnPanic<'l>(&'l Line);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn all(numbers: RangeInclusive<u64>) -> Vec<u64> {
        let mut seen = Vec::new();
        in_order(
            numbers,
            |n| n,
            |n| {
                seen.push(n);
                ControlFlow::Continue(())
            },
        );
        seen
    }

    #[test]
    fn results_come_in_order() {
        let mut seen = Vec::new();
        // Early jobs take longest, so that they are ready last.
        let job = |n: u64| (0..(50 - n) * 10_000).fold(n, |a, b| a ^ (b & 1) ^ (b & 1));
        in_order(0..=49, job, |n| {
            seen.push(n);
            ControlFlow::Continue(())
        });
        assert_eq!(seen, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn the_last_number_of_all_is_the_last() {
        assert_eq!(all(u64::MAX - 2..=u64::MAX), [u64::MAX - 2, u64::MAX - 1, u64::MAX]);
        assert_eq!(all(u64::MAX..=u64::MAX), [u64::MAX]);
    }

    #[test]
    fn nothing_is_seen_behind_a_break() {
        let mut seen = Vec::new();
        in_order(
            7..=u64::MAX,
            |n| n,
            |n| {
                seen.push(n);
                if n == 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        );
        assert_eq!(seen, (7..=20).collect::<Vec<_>>());
    }

    #[test]
    fn a_slow_result_lets_only_so_many_wait() {
        let line = Line::new(0..=u64::MAX, 3);
        assert_eq!([line.next(), line.next(), line.next()], [Some(0), Some(1), Some(2)]);
        let taken = AtomicU64::new(0);
        thread::scope(|scope| {
            scope.spawn(|| taken.store(line.next().unwrap_or(0), Ordering::SeqCst));
            thread::sleep(std::time::Duration::from_millis(20));
            assert_eq!(taken.load(Ordering::SeqCst), 0, "the first result is still wanted");
            line.done();
        });
        assert_eq!(taken.load(Ordering::SeqCst), 3);
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_job_that_panics_is_waited_for_by_nobody() {
        let job = |n: u64| assert!(n > 0, "the first result never comes");
        in_order(0..=10_000, job, |()| ControlFlow::Continue(()));
    }
}
