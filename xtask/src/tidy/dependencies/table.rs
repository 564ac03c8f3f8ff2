//! The dependency table itself. Every line is a decision: change it together with `ARCHITECTURE.md`.

/// A crate of this workspace.
pub(super) struct Crate {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// The workspace crates it may use.
    pub(super) uses: &'static [&'static str],
    /// The workspace crates that its tests may use as well.
    pub(super) tests_use: &'static [&'static str],
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Decides and does no I/O.
    Pure,
    /// Does I/O and decides nothing.
    Body,
    /// For developers; not part of the product.
    Dev,
}

/// A crate from outside.
pub(super) struct Outside {
    pub(super) name: &'static str,
    pub(super) used_by: &'static [&'static str],
    /// Only the tests of these crates may use it.
    pub(super) tests_of: &'static [&'static str],
    pub(super) why: &'static str,
}

pub(super) static CRATES: &[Crate] = &[
    Crate { name: "api", kind: Kind::Pure, uses: &[], tests_use: &[] },
    Crate { name: "store", kind: Kind::Pure, uses: &["api"], tests_use: &[] },
    Crate { name: "registry", kind: Kind::Pure, uses: &["api"], tests_use: &[] },
    Crate { name: "control", kind: Kind::Pure, uses: &["api"], tests_use: &["registry"] },
    Crate { name: "agent", kind: Kind::Pure, uses: &["api"], tests_use: &[] },
    Crate {
        name: "sim",
        kind: Kind::Pure,
        uses: &["agent", "api", "control", "registry", "store"],
        tests_use: &[],
    },
    Crate { name: "mainstay", kind: Kind::Body, uses: &["api", "sim"], tests_use: &[] },
    Crate { name: "xtask", kind: Kind::Dev, uses: &[], tests_use: &[] },
];

pub(super) static OUTSIDE: &[Outside] = &[
    Outside {
        name: "anyhow",
        used_by: &["mainstay", "xtask"],
        tests_of: &[],
        why: "errors that are only printed",
    },
    Outside { name: "clap", used_by: &["mainstay"], tests_of: &[], why: "the command line (decision 0005)" },
    Outside {
        name: "expect-test",
        used_by: &[],
        tests_of: &["registry", "control", "sim"],
        why: "expected text beside the test",
    },
    Outside { name: "jiff", used_by: &["api"], tests_of: &[], why: "RFC 3339 times (decision 0003)" },
    Outside { name: "proc-macro2", used_by: &["xtask"], tests_of: &[], why: "line numbers for `syn`" },
    Outside {
        name: "proptest",
        used_by: &[],
        tests_of: &["api", "store", "control", "agent"],
        why: "random worlds that shrink",
    },
    Outside {
        name: "rand_core",
        used_by: &["sim"],
        tests_of: &[],
        why: "the seeded generator's traits (decision 0004)",
    },
    Outside {
        name: "rand_xoshiro",
        used_by: &["sim"],
        tests_of: &[],
        why: "the seeded generator (decision 0004)",
    },
    Outside {
        name: "serde",
        used_by: &["api", "registry", "agent", "sim"],
        tests_of: &[],
        why: "views of objects (decision 0002)",
    },
    Outside {
        name: "serde_json",
        used_by: &["api", "registry", "sim", "mainstay"],
        tests_of: &["control"],
        why: "objects are JSON trees (decision 0002)",
    },
    Outside { name: "syn", used_by: &["xtask"], tests_of: &[], why: "tidy reads Rust as Rust" },
    Outside {
        name: "thiserror",
        used_by: &["store"],
        tests_of: &[],
        why: "typed errors without boilerplate",
    },
];

/// Crates that wait, read files, reach a network, ask the clock or roll real dice: hands of a body, never of a mind.
pub(super) static HANDS: &[&str] = &[
    "async-std",
    "chrono",
    "crossbeam",
    "futures-executor",
    "getrandom",
    "hyper",
    "libc",
    "mio",
    "nix",
    "num_cpus",
    "parking_lot",
    "pollster",
    "rand",
    "rayon",
    "reqwest",
    "rustix",
    "smol",
    "socket2",
    "tempfile",
    "tokio",
    "windows-sys",
];

// === impl Kind ===

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Pure => "pure",
            Kind::Body => "body",
            Kind::Dev => "dev",
        }
    }
}
