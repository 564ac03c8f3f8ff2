//! `resource.Quantity`: exact amounts of CPU, memory and everything else that is counted.
//!
//! Responsible for: reading every form that Kubernetes accepts (`0.5`, `100m`, `1e3`, `1.5Gi`), printing the canonical
//! form, exact arithmetic and comparison. Leaves to `registry`: which resource may have which amount. Leaves to
//! `control`: adding up what a node has left.
//!
//! Invariants: no floats; an amount is a whole number of nanos; what is finer was rounded away from zero, so that who
//! asks for something gets something. Two quantities are equal if their amounts are, however they were written. A
//! canonical text reads back as the same amount.
//!
//! The failure it is for: `"0.1"` and `"100m"` taken for different requests, `"1Gi"` for a thousand million bytes, or
//! a sum of requests that loses a milli per pod until a node is overfilled.
//!
//! Differences from upstream, on purpose: amounts beyond 10^27 and texts beyond 37 digits are refused where upstream
//! computes with numbers of any length; a text without any digit (`+`, `.`) is refused where upstream reads 0; the
//! canonical form is always printed, while upstream gives some texts back as they came (`+1`, `1.001`, `1E3`).

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};
use std::str::FromStr;

use serde::de::{self, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Nanos in one unit.
const NANOS: i128 = 1_000_000_000;

/// Nanos in one milli.
const NANOS_PER_MILLI: i128 = 1_000_000;

/// The greatest amount either way: a billion exa. Far beyond every cluster, and a hundred times below what the integer
/// holds, so that the sum of two amounts cannot overflow before it is cut to this.
const NANOS_MAX: i128 = 10_i128.pow(36);

/// Upstream caps a binary amount here (2^63 - 1 units) when it reads one.
const BINARY_MAX: i128 = i64::MAX as i128 * NANOS;

/// Significant digits of a text. 37 digits times the units of one suffix step still fit the integer; half as many
/// would refuse `0.123456789012345678901`, which upstream reads.
const DIGITS_MAX: usize = 37;

/// Bytes of a text: an attacker's megabyte of zeros is not worth reading.
const TEXT_MAX: usize = 128;

/// Which family of suffixes a quantity was written with, and is printed with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// `n u m k M G T P E` and no suffix: powers of 1000.
    #[default]
    DecimalSi,
    /// `Ki Mi Gi Ti Pi Ei`: powers of 1024.
    BinarySi,
    /// `e3`, `E-6`.
    DecimalExponent,
}

/// An amount and the family of suffixes that it is printed with.
#[derive(Clone, Copy, Default)]
pub struct Quantity {
    /// Between `-NANOS_MAX` and `NANOS_MAX`.
    nanos: i128,
    format: Format,
}

/// Why a text is no quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The text, cut if long.
    pub text: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What can be wrong with the text of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Nothing there.
    Empty,
    /// Not a sign, digits with at most one point, and a suffix.
    Shape,
    /// The suffix is none that Kubernetes has.
    Suffix,
    /// More text or more digits than are read.
    Long,
    /// Beyond the greatest amount.
    Large,
}

// === impl Quantity ===

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0, format: Format::DecimalSi };

    /// `units` whole units.
    pub const fn from_value(units: i64, format: Format) -> Self {
        Self { nanos: units as i128 * NANOS, format }
    }

    /// `milli` thousandths of a unit.
    pub const fn from_milli(milli: i64, format: Format) -> Self {
        Self { nanos: milli as i128 * NANOS_PER_MILLI, format }
    }

    /// In whole units, rounded away from zero; an amount beyond 64 bits is cut to the greatest.
    pub fn value(self) -> i64 {
        clamp_i64(div_away(self.nanos, NANOS))
    }

    /// In thousandths of a unit, rounded away from zero; an amount beyond 64 bits is cut to the greatest.
    pub fn milli(self) -> i64 {
        clamp_i64(div_away(self.nanos, NANOS_PER_MILLI))
    }

    /// The same amount rounded away from zero to whole thousandths, as upstream does where it counts CPU.
    #[must_use]
    pub fn rounded_to_milli(self) -> Self {
        Self { nanos: div_away(self.nanos, NANOS_PER_MILLI) * NANOS_PER_MILLI, ..self }
    }

    /// The same amount rounded away from zero to whole units.
    #[must_use]
    pub fn rounded_to_unit(self) -> Self {
        Self { nanos: div_away(self.nanos, NANOS) * NANOS, ..self }
    }

    /// The family of suffixes it is printed with.
    pub const fn format(self) -> Format {
        self.format
    }

    /// True if there is nothing.
    pub const fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// True if it is less than nothing.
    pub const fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Reads the text of a quantity.
    ///
    /// # Errors
    /// The text is no quantity, or one beyond the limits.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        read(text).map_err(|problem| ParseError { text: text.chars().take(TEXT_MAX).collect(), problem })
    }

    /// A sum keeps the suffixes of its first part, unless that is zero.
    fn sum(self, other: Self, nanos: i128) -> Self {
        let format = if self.is_zero() { other.format } else { self.format };
        Self { nanos: nanos.clamp(-NANOS_MAX, NANOS_MAX), format }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

impl Add for Quantity {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.sum(other, self.nanos + other.nanos)
    }
}

impl Sub for Quantity {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.sum(other, self.nanos - other.nanos)
    }
}

impl Neg for Quantity {
    type Output = Self;
    fn neg(self) -> Self {
        Self { nanos: -self.nanos, ..self }
    }
}

impl AddAssign for Quantity {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Quantity {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for Quantity {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::ZERO, Add::add)
    }
}

impl FromStr for Quantity {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

// === reading ===

/// The parts of a text: sign, digits before and after the point, suffix.
struct Parts<'t> {
    negative: bool,
    whole: &'t str,
    fraction: &'t str,
    suffix: &'t str,
}

fn read(text: &str) -> Result<Quantity, Problem> {
    if text.is_empty() {
        return Err(Problem::Empty);
    }
    if text.len() > TEXT_MAX {
        return Err(Problem::Long);
    }
    let parts = split(text)?;
    let (format, power) = suffix(parts.suffix)?;
    let (mantissa, places) = digits(parts.whole, parts.fraction)?;
    let (nanos, format) = match format {
        Format::BinarySi => binary(mantissa, places, power),
        Format::DecimalSi | Format::DecimalExponent => (decimal(mantissa, places, power)?, format),
    };
    if nanos > NANOS_MAX {
        return Err(Problem::Large);
    }
    Ok(Quantity { nanos: if parts.negative { -nanos } else { nanos }, format })
}

fn split(text: &str) -> Result<Parts<'_>, Problem> {
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(number);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let without_digits = whole.is_empty() && fraction.is_empty();
    if without_digits || fraction.contains('.') {
        return Err(Problem::Shape);
    }
    Ok(Parts { negative, whole, fraction, suffix })
}

/// The family of a suffix and its power: of 2 for the binary ones, of 10 for the others.
fn suffix(text: &str) -> Result<(Format, i64), Problem> {
    let si = |power| Ok((Format::DecimalSi, power));
    let binary = |power| Ok((Format::BinarySi, power));
    match text {
        "n" => si(-9),
        "u" => si(-6),
        "m" => si(-3),
        "" => si(0),
        "k" => si(3),
        "M" => si(6),
        "G" => si(9),
        "T" => si(12),
        "P" => si(15),
        "E" => si(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => {
            let power = text.strip_prefix(['e', 'E']).ok_or(Problem::Suffix)?;
            Ok((Format::DecimalExponent, power.parse::<i64>().map_err(|_| Problem::Suffix)?))
        }
    }
}

/// All digits as one number, and how many of them stand after the point.
fn digits(whole: &str, fraction: &str) -> Result<(i128, i64), Problem> {
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    if whole.len() + fraction.len() > DIGITS_MAX {
        return Err(Problem::Long);
    }
    let mantissa = whole.bytes().chain(fraction.bytes()).fold(0_i128, |n, b| n * 10 + i128::from(b - b'0'));
    let places = i64::try_from(fraction.len()).map_err(|_| Problem::Long)?;
    Ok((mantissa, places))
}

/// `mantissa / 10^places * 10^power` in nanos, rounded up.
fn decimal(mantissa: i128, places: i64, power: i64) -> Result<i128, Problem> {
    if mantissa == 0 {
        return Ok(0);
    }
    let shift = power.saturating_sub(places).saturating_add(9);
    let scale = u32::try_from(shift.unsigned_abs()).ok().and_then(|s| 10_i128.checked_pow(s));
    match (scale, shift >= 0) {
        (Some(scale), true) => mantissa.checked_mul(scale).ok_or(Problem::Large),
        (Some(scale), false) => Ok(div_away(mantissa, scale)),
        (None, true) => Err(Problem::Large),
        // The divisor is beyond every mantissa: something, but less than a nano.
        (None, false) => Ok(1),
    }
}

/// `mantissa / 10^places * 2^power` in nanos, rounded up and capped as upstream caps it. What is less than one unit
/// becomes a decimal amount.
fn binary(mantissa: i128, places: i64, power: i64) -> (i128, Format) {
    let places = u32::try_from(places).unwrap_or(0);
    let divisor = 10_i128.pow(places.saturating_sub(9));
    let scale = 10_i128.pow(9_u32.saturating_sub(places));
    // Doubling quotient and remainder apart keeps every bit, where the product would not fit.
    let mut whole = mantissa / divisor;
    let mut rest = mantissa % divisor;
    for _ in 0..power {
        whole = (2 * whole + 2 * rest / divisor).min(BINARY_MAX);
        rest = 2 * rest % divisor;
    }
    let nanos = whole.saturating_mul(scale).saturating_add(i128::from(rest > 0)).min(BINARY_MAX);
    let format = if (1..NANOS).contains(&nanos) { Format::DecimalSi } else { Format::BinarySi };
    (nanos, format)
}

fn div_away(n: i128, by: i128) -> i128 {
    n / by + (n % by).signum()
}

fn clamp_i64(n: i128) -> i64 {
    i64::try_from(n).unwrap_or(if n < 0 { i64::MIN } else { i64::MAX })
}

// === printing ===

const BINARY_SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// The canonical form: no fraction, the greatest suffix that loses nothing.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        let size = self.nanos.abs();
        // Small and fractional amounts are decimal even where the binary family was asked for; and so is what a sum
        // made greater than a binary text may say.
        let binary = self.format == Format::BinarySi
            && size % NANOS == 0
            && (1024 * NANOS..=BINARY_MAX).contains(&size);
        if binary {
            let (number, steps) = shortest(self.nanos / NANOS, 1024, BINARY_SUFFIXES.len() - 1);
            return write!(f, "{number}{}", BINARY_SUFFIXES[steps]);
        }
        let (number, steps) = shortest(self.nanos, 1000, usize::MAX);
        match (self.format, steps) {
            (_, 3) => write!(f, "{number}"),
            (Format::DecimalSi | Format::BinarySi, 0..=9) => {
                write!(f, "{number}{}", ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"][steps])
            }
            // There is no decimal suffix beyond E: the exponent says it.
            (_, 0..3) => write!(f, "{number}e-{}", 9 - 3 * steps),
            (_, _) => write!(f, "{number}e{}", 3 * steps - 9),
        }
    }
}

/// `number` with as many factors `base` taken out as it has, but not more than `steps_max`.
fn shortest(mut number: i128, base: i128, steps_max: usize) -> (i128, usize) {
    let mut steps = 0;
    while steps < steps_max && number % base == 0 {
        number /= base;
        steps += 1;
    }
    (number, steps)
}

impl fmt::Debug for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

// === impl ParseError ===

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.problem {
            Problem::Empty => "it is empty",
            Problem::Shape => "it must be an optional sign, digits with at most one point, and a suffix",
            Problem::Suffix => {
                "its suffix must be one of n u m k M G T P E Ki Mi Gi Ti Pi Ei, or e and a whole number"
            }
            Problem::Long => "it must have at most 37 significant digits and 128 characters",
            Problem::Large => "it must not be beyond 1e27",
        };
        write!(f, "{:?} is no quantity: {what}", self.text)
    }
}

impl std::error::Error for ParseError {}

// === serde ===

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Written)
    }
}

/// JSON has a quantity as a text (blanks around it are forgiven), as a number, or as null, which is zero.
struct Written;

impl Visitor<'_> for Written {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity as a text or a number")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
        Quantity::parse(text.trim()).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, n: i64) -> Result<Quantity, E> {
        Ok(Quantity::from_value(n, Format::DecimalSi))
    }

    fn visit_u64<E: de::Error>(self, n: u64) -> Result<Quantity, E> {
        Ok(Quantity { nanos: i128::from(n) * NANOS, format: Format::DecimalSi })
    }

    /// No arithmetic: the shortest text of the number is what the client wrote.
    fn visit_f64<E: de::Error>(self, n: f64) -> Result<Quantity, E> {
        Quantity::parse(&n.to_string()).map_err(|_| E::invalid_value(Unexpected::Float(n), &self))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Quantity, E> {
        Ok(Quantity::ZERO)
    }
}

#[cfg(test)]
mod tests;
