//! A machine's clock: wrong by an offset, at a rate of its own, and perhaps stopped.
//!
//! Responsible for: virtual time to local time and back. Leaves to the machine when the clock stops.
//!
//! Invariant: local time never goes back.

use api::{Duration, Time};

const MILLION: u64 = 1_000_000;

/// See the module's header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// At this virtual time …
    virtual_base: Time,
    /// … it showed this.
    local_base: Time,
    /// Local microseconds per virtual second.
    rate: u64,
    stopped: bool,
}

impl Clock {
    /// A clock that shows `local` at `now` and is off by `ppm` parts per million, faster or slower.
    pub(crate) fn new(now: Time, local: Time, ppm: u32, fast: bool) -> Self {
        let ppm = u64::from(ppm).min(MILLION / 2);
        let rate = if fast { MILLION + ppm } else { MILLION - ppm };
        Self { virtual_base: now, local_base: local, rate, stopped: false }
    }

    /// What it shows.
    pub(crate) fn local(&self, now: Time) -> Time {
        if self.stopped {
            return self.local_base;
        }
        self.local_base + now.since(self.virtual_base).ratio_down(self.rate, MILLION)
    }

    /// The first virtual moment at which it shows `local` or more.
    pub(crate) fn virtual_of(&self, local: Time) -> Time {
        self.virtual_base + local.since(self.local_base).ratio_up(MILLION, self.rate)
    }

    /// The machine stands still and does not count that.
    pub(crate) fn stop(&mut self, now: Time) {
        self.local_base = self.local(now);
        self.virtual_base = now;
        self.stopped = true;
    }

    /// It goes on.
    pub(crate) fn go(&mut self, now: Time) {
        if self.stopped {
            self.virtual_base = now;
            self.stopped = false;
        }
    }
}

/// How far a clock may be off at the start. Nothing may depend on two machines agreeing about the time of day.
pub(crate) const OFFSET_MAX: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_is_never_early() {
        for (ppm, fast) in [(0, true), (10_000, true), (10_000, false), (7, false)] {
            let clock = Clock::new(Time::from_ms(1000), Time::from_ms(5000), ppm, fast);
            for local in [5000, 5001, 5999, 123_457] {
                let at = clock.virtual_of(Time::from_ms(local));
                assert!(clock.local(at) >= Time::from_ms(local));
                assert!(clock.local(at.back(Duration::from_ms(2))) < Time::from_ms(local) || local == 5000);
            }
        }
    }

    #[test]
    fn a_stopped_clock_counts_nothing() {
        let mut clock = Clock::new(Time::from_ms(0), Time::from_ms(0), 0, true);
        clock.stop(Time::from_ms(100));
        assert_eq!(clock.local(Time::from_ms(900)), Time::from_ms(100));
        clock.go(Time::from_ms(1000));
        assert_eq!(clock.local(Time::from_ms(1001)), Time::from_ms(101));
    }
}
