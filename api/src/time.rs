//! Time as minds see it: whole milliseconds, handed in as an argument.
//!
//! Responsible for: the two types [`Time`] and [`Duration`], their arithmetic, and the RFC 3339 texts that
//! Kubernetes objects carry. Leaves to bodies: where the time comes from. A body anchors [`Time`] on the wall
//! clock when its process starts and then advances it with a monotonic clock, so that a jump of the wall clock
//! neither fires nor loses a deadline.
//!
//! Invariants: no floats; no negative durations; arithmetic saturates instead of wrapping, because a saturated
//! deadline is late (patience) and a wrapped one is early (an unproven death).

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment: milliseconds since 1970-01-01T00:00:00Z by the clock of the process that states it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A span of time in milliseconds; on the wire a number of milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Duration(u64);

// === impl Time ===

impl Time {
    /// The epoch; also "never heard", which is earlier than everything.
    pub const ZERO: Self = Self(0);
    /// Later than everything that will happen.
    pub const MAX: Self = Self(u64::MAX);

    /// The moment `ms` milliseconds after the epoch.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the epoch.
    pub const fn ms(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was; zero if it is still to come.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// This moment moved back by `by`, not before the epoch.
    pub const fn back(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(by.0))
    }

    /// The text of `metav1.Time`: RFC 3339 in UTC with whole seconds.
    pub fn to_rfc3339(self) -> String {
        self.timestamp().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// The text of `metav1.MicroTime`: RFC 3339 in UTC with six fractional digits.
    pub fn to_rfc3339_micro(self) -> String {
        self.timestamp().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
    }

    /// Reads either text; anything finer than a millisecond is cut off.
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let at: jiff::Timestamp = text.parse().ok()?;
        u64::try_from(at.as_millisecond()).ok().map(Self)
    }

    fn timestamp(self) -> jiff::Timestamp {
        let ms = i64::try_from(self.0).unwrap_or(i64::MAX);
        jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.0)
    }
}

impl Add<Duration> for Time {
    type Output = Self;
    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by.0))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, by: Duration) {
        *self = *self + by;
    }
}

/// Objects carry times as RFC 3339 texts: whole seconds where it is whole, else six digits, so that nothing is lost.
impl Serialize for Time {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let whole = self.0.is_multiple_of(1000);
        s.serialize_str(&if whole { self.to_rfc3339() } else { self.to_rfc3339_micro() })
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(d)?;
        Self::parse_rfc3339(&text)
            .ok_or_else(|| serde::de::Error::custom(format!("not an RFC 3339 time: {text:?}")))
    }
}

// === impl Duration ===

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than everything.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// A span of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1000))
    }

    /// The span in milliseconds.
    pub const fn ms(self) -> u64 {
        self.0
    }

    /// The span in whole seconds, cut off.
    pub const fn secs(self) -> u64 {
        self.0 / 1000
    }

    /// Both spans, one after the other.
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// What is left after `other`; zero if it is longer.
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `n` times this span.
    pub const fn times(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }

    /// `num / den` of this span, rounded up: a deadline must never be early.
    pub const fn ratio_up(self, num: u64, den: u64) -> Self {
        saturated((self.0 as u128 * num as u128).div_ceil(den as u128))
    }

    /// `num / den` of this span, rounded down.
    pub const fn ratio_down(self, num: u64, den: u64) -> Self {
        saturated(self.0 as u128 * num as u128 / den as u128)
    }
}

/// The span of so many milliseconds, or the longest there is.
#[allow(clippy::cast_possible_truncation, reason = "the bound is tested; `try_from` is not const")]
const fn saturated(ms: u128) -> Duration {
    if ms > u64::MAX as u128 { Duration::MAX } else { Duration(ms as u64) }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_multiple_of(1000) { write!(f, "{}s", self.0 / 1000) } else { write!(f, "{}ms", self.0) }
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.plus(other)
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.minus(other)
    }
}
