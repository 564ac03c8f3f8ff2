//! Chance from one seed.
//!
//! Responsible for: the only source of chance in a run, and every way to draw from it. Leaves to nobody else to draw:
//! a library's range algorithm may change with its version, and then every seed would be another run
//! (docs/decisions/0004-seeded-generator.md).

use api::Duration;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256StarStar;

/// A seeded generator.
#[derive(Clone, Debug)]
pub struct Chance(Xoshiro256StarStar);

impl Chance {
    /// The generator of that seed.
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256StarStar::seed_from_u64(seed))
    }

    /// 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from 0 to before `n`; 0 if `n` is 0. The bias of the multiplication is below `n` / 2^64.
    pub fn below(&mut self, n: u64) -> u64 {
        let wide = u128::from(self.word()) * u128::from(n);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        debug_assert!(low <= high, "a range is not reversed");
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// An index of a list of `len` things; 0 if it is empty.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }

    /// True `n` times in a thousand.
    pub fn per_mille(&mut self, n: u32) -> bool {
        n > 0 && self.below(1000) < u64::from(n)
    }

    /// A span from `low` to `high`, both included, in whole milliseconds.
    pub fn span(&mut self, low: Duration, high: Duration) -> Duration {
        Duration::from_ms(self.between(low.ms(), high.ms().max(low.ms())))
    }
}
