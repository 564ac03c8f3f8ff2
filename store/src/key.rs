//! Keys, values and spans of keys: plain bytes with a type each.
//!
//! Responsible for: the two byte strings of the store, which are shared and never copied, and for the half-open
//! interval of keys that every read and every watch names. Leaves the meaning of the bytes to `registry`.
//!
//! Invariants: keys are ordered byte by byte; a [`Span`] is never reversed, so that an ordered map may be asked for
//! it without a check.
//!
//! The failure it exists for: a prefix of `pods/a` that also reads `pods/ab`, or one that ends in `0xff` and reads
//! to the end of the store. The end of a prefix is computed in one place.

use std::borrow::Borrow;
use std::fmt;
use std::ops::{Bound, Deref};
use std::sync::Arc;

/// The name of an entry. Cloning it shares the bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<[u8]>);

/// What an entry holds. Cloning it shares the bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(Arc<[u8]>);

/// The keys from `from` to before `until`, or to the end of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    from: Key,
    /// Absent: the span has no end.
    until: Option<Key>,
}

// === impl Key ===

impl Key {
    /// The first key behind this one: nothing fits between.
    #[must_use]
    pub fn successor(&self) -> Self {
        let mut bytes = Vec::with_capacity(self.0.len() + 1);
        bytes.extend_from_slice(&self.0);
        bytes.push(0);
        Self::from(bytes)
    }

    /// The first key behind all that start with this one; none if it consists of `0xff` only.
    fn prefix_end(&self) -> Option<Self> {
        let kept = self.0.iter().rposition(|byte| *byte != u8::MAX)? + 1;
        let mut bytes = self.0[..kept].to_vec();
        bytes[kept - 1] += 1;
        Some(Self::from(bytes))
    }
}

impl Deref for Key {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for Key {
    fn from(bytes: &[u8]) -> Self {
        Self(Arc::from(bytes))
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Self(Arc::from(text.as_bytes()))
    }
}

impl From<String> for Key {
    fn from(text: String) -> Self {
        Self(Arc::from(text.into_bytes()))
    }
}

impl From<Vec<u8>> for Key {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::from(bytes))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

// === impl Value ===

impl Value {
    /// The bytes, shared.
    #[must_use]
    pub fn share(&self) -> Arc<[u8]> {
        Arc::clone(&self.0)
    }
}

impl Deref for Value {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Arc<[u8]>> for Value {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self(bytes)
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self(Arc::from(bytes))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self(Arc::from(text.as_bytes()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self(Arc::from(text.into_bytes()))
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::from(bytes))
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

// === impl Span ===

impl Span {
    /// All keys.
    #[must_use]
    pub fn all() -> Self {
        Self { from: Key::from(""), until: None }
    }

    /// One key.
    #[must_use]
    pub fn one(key: impl Into<Key>) -> Self {
        let from = key.into();
        let until = Some(from.successor());
        Self { from, until }
    }

    /// All keys that start with `prefix`; the empty prefix is all keys.
    #[must_use]
    pub fn prefix(prefix: impl Into<Key>) -> Self {
        let from = prefix.into();
        let until = from.prefix_end();
        Self { from, until }
    }

    /// The keys from `from` to before `until`. A reversed pair names no key.
    #[must_use]
    pub fn between(from: impl Into<Key>, until: impl Into<Key>) -> Self {
        let from = from.into();
        let until = until.into().max(from.clone());
        Self { from, until: Some(until) }
    }

    /// The part of this span behind `key`.
    #[must_use]
    pub fn behind(&self, key: &Key) -> Self {
        let from = key.successor().max(self.from.clone());
        let until = self.until.as_ref().map(|until| until.clone().max(from.clone()));
        Self { from, until }
    }

    /// The first key that may be in the span.
    #[must_use]
    pub fn from(&self) -> &Key {
        &self.from
    }

    /// The first key behind the span; none if the span has no end.
    #[must_use]
    pub fn until(&self) -> Option<&Key> {
        self.until.as_ref()
    }

    /// Whether `key` is in the span.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        *key >= *self.from.0 && self.until.as_ref().is_none_or(|until| *key < *until.0)
    }

    /// The span as an ordered map wants it.
    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let until = self.until.as_ref().map_or(Bound::Unbounded, |until| Bound::Excluded(&**until));
        (Bound::Included(&*self.from), until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_ends_before_the_next_sibling() {
        let span = Span::prefix("pods/a/");
        assert!(span.contains(b"pods/a/") && span.contains(b"pods/a/\xff\xff"));
        assert!(!span.contains(b"pods/a") && !span.contains(b"pods/a0"));
    }

    #[test]
    fn prefix_of_largest_bytes_has_the_right_end() {
        let span = Span::prefix(&b"a\xff"[..]);
        assert_eq!(span.until(), Some(&Key::from("b")));
        let span = Span::prefix(&b"\xff\xff"[..]);
        assert_eq!(span.until(), None);
        assert!(span.contains(b"\xff\xff\x00") && !span.contains(b"\xff\xfe"));
    }

    #[test]
    fn one_key_is_one_key() {
        let span = Span::one("a");
        assert!(span.contains(b"a") && !span.contains(b"a\x00") && !span.contains(b"A"));
    }

    #[test]
    fn reversed_and_exhausted_spans_are_empty() {
        let span = Span::between("b", "a");
        assert!(!span.contains(b"a") && !span.contains(b"b"));
        let rest = Span::one("a").behind(&Key::from("a"));
        assert!(!rest.contains(b"a") && !rest.contains(b"a\x00"));
    }
}
