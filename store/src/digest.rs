//! A digest of a store's state: two replicas that agree have the same one.
//!
//! Responsible for: one number per state, stable over machines, builds and releases. Leaves to the callers when it is
//! compared: the simulator after every step, a live cluster with every snapshot.
//!
//! Invariants: the digest depends on the state only, never on the way there. It is a sum of one hash per entry, so
//! that a write costs the bytes of that write and not the size of the store.
//!
//! Written by hand: the hasher of the standard library promises no stability between releases, and replicas of two
//! releases are compared during an upgrade. It finds errors, it does not resist an attacker; whoever can choose
//! values to collide can write to the store anyway.

use std::fmt;

/// The digest of a state. Printed as hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub u64);

/// Collects words into a hash: multiply and fold the high half down, eight bytes at a time. A byte at a time (FNV-1a)
/// was the larger part of a write with values of two KiB.
#[derive(Clone, Copy)]
pub(crate) struct Hash(u64);

/// The offset of FNV-1a: any odd-looking start does, zero would hide leading zeros.
const START: u64 = 0xcbf2_9ce4_8422_2325;
/// An odd number with well-spread bits (from the 64-bit finalizer of MurmurHash3).
const FACTOR: u64 = 0xff51_afd7_ed55_8ccd;

// === impl Digest ===

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

// === impl Hash ===

impl Hash {
    pub(crate) const fn new() -> Self {
        Self(START)
    }

    #[must_use]
    pub(crate) const fn number(self, number: u64) -> Self {
        let mixed = (self.0 ^ number).wrapping_mul(FACTOR);
        Self(mixed ^ (mixed >> 32))
    }

    /// The length goes first, so that bytes cannot move from one string to the next unseen.
    #[must_use]
    pub(crate) fn bytes(self, bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut hash = self.number(bytes.len() as u64);
        for word in words {
            hash = hash.number(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash.number(u64::from_le_bytes(last))
    }

    /// Mixed once more: the hashes are summed, and a sum of poorly mixed numbers forgets their high bits.
    pub(crate) const fn finish(self) -> u64 {
        self.number(START).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_never_change() {
        let hash = |bytes: &[u8]| Digest(Hash::new().bytes(bytes).finish()).to_string();
        assert_eq!(hash(b""), "c169018b7a4def73");
        assert_eq!(hash(b"a"), "8f9ac36348683bb7");
        assert_eq!(hash(b"pods/default/db-0"), "d886fc742902cebb");
    }

    #[test]
    fn boundaries_and_zeros_count() {
        let pair = |a: &[u8], b: &[u8]| Hash::new().bytes(a).bytes(b).finish();
        assert_ne!(pair(b"ab", b"c"), pair(b"a", b"bc"));
        assert_ne!(pair(b"a", b""), pair(b"a\0", b""));
    }
}
