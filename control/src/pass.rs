//! Passes: moments at which stock Kubernetes looks at everything, and we look at what is due.
//!
//! Responsible for: the timetable of loops with a period (node monitor, pod collection). It begins with this process,
//! as upstream's loops do; a key that is due between two passes waits for the next one. Leaves to each controller what
//! a pass is about.
//!
//! Invariant: computed from the world alone, so that a decision made late is the same decision.

use api::{Duration, Time};

use crate::world::World;

/// The first pass at or after `at`.
pub(crate) fn from(world: &World, period: Duration, at: Time) -> Time {
    let start = world.started();
    if at <= start || period == Duration::ZERO {
        return at.max(start);
    }
    start + period.times(at.since(start).ms().div_ceil(period.ms()))
}

/// The first pass later than `at`.
pub(crate) fn after(world: &World, period: Duration, at: Time) -> Time {
    from(world, period, at + Duration::from_ms(1))
}

/// The last pass at or before `at`; the start, if there was none.
pub(crate) fn last(world: &World, period: Duration, at: Time) -> Time {
    let start = world.started();
    if period == Duration::ZERO {
        return at.max(start);
    }
    start + period.times(at.since(start).ms() / period.ms())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Story, duration, time};

    #[test]
    fn passes_are_counted_from_the_start() {
        let story = Story::read("started 3s\nnow 100s");
        let (world, period) = (&story.world, duration("5s"));
        assert_eq!(from(world, period, time("1s")), time("3s"));
        assert_eq!(from(world, period, time("8s")), time("8s"));
        assert_eq!(from(world, period, time("8001ms")), time("13s"));
        assert_eq!(after(world, period, time("8s")), time("13s"));
        assert_eq!(last(world, period, time("12s")), time("8s"));
    }
}
