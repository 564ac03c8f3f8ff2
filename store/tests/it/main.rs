//! The tests of the store, as one binary: linking is the slow part.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests are tests; the setting covers only #[test]"
)]

mod cases;
mod conformance;
mod model;
mod window;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a future to its end. On one thread, whoever waits without having been woken waits for ever: that is found at
/// once and not by a time limit.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let woken = Arc::new(Woken(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut future = pin!(future);
    while woken.0.swap(false, Ordering::Relaxed) {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
    }
    panic!("it waits and nobody will wake it");
}
