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
    Crate { name: "engine", kind: Kind::Body, uses: &["api", "store"], tests_use: &[] },
    Crate { name: "server", kind: Kind::Body, uses: &["api", "engine", "registry", "store"], tests_use: &[] },
    Crate { name: "mainstay", kind: Kind::Body, uses: &["api", "engine", "server", "sim"], tests_use: &[] },
    Crate { name: "compat", kind: Kind::Dev, uses: &[], tests_use: &[] },
    Crate { name: "xtask", kind: Kind::Dev, uses: &[], tests_use: &[] },
];

pub(super) static OUTSIDE: &[Outside] = &[
    Outside {
        name: "anyhow",
        used_by: &["mainstay", "xtask"],
        tests_of: &["compat"],
        why: "errors that are only printed",
    },
    Outside {
        name: "base64",
        used_by: &["server"],
        tests_of: &[],
        why: "Secrets, tokens, certificates in documents",
    },
    Outside {
        name: "bytes",
        used_by: &["server"],
        tests_of: &[],
        why: "bodies that are shared and not copied",
    },
    Outside { name: "clap", used_by: &["mainstay"], tests_of: &[], why: "the command line (decision 0005)" },
    Outside {
        name: "expect-test",
        used_by: &[],
        tests_of: &["registry", "control", "sim"],
        why: "expected text beside the test",
    },
    Outside { name: "flate2", used_by: &["server"], tests_of: &[], why: "gzip of large answers" },
    Outside { name: "http", used_by: &["server"], tests_of: &[], why: "words of HTTP" },
    Outside {
        name: "http-body-util",
        used_by: &["server"],
        tests_of: &[],
        why: "bodies of requests and answers",
    },
    Outside { name: "hyper", used_by: &["server"], tests_of: &[], why: "HTTP/1.1 and HTTP/2" },
    Outside { name: "hyper-util", used_by: &["server"], tests_of: &[], why: "both on one port" },
    Outside { name: "jiff", used_by: &["api"], tests_of: &[], why: "RFC 3339 times (decision 0003)" },
    Outside { name: "k8s-openapi", used_by: &[], tests_of: &["compat"], why: "typed objects of a client" },
    Outside { name: "kube", used_by: &[], tests_of: &["compat"], why: "a client that people use" },
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
    Outside { name: "rcgen", used_by: &["server"], tests_of: &[], why: "certificates" },
    Outside { name: "redb", used_by: &["engine"], tests_of: &[], why: "the embedded engine" },
    Outside { name: "ring", used_by: &["server"], tests_of: &[], why: "signatures of tokens" },
    Outside { name: "rustix", used_by: &["engine", "server"], tests_of: &[], why: "file locks and modes" },
    Outside { name: "rustls", used_by: &["server"], tests_of: &[], why: "TLS" },
    Outside {
        name: "serde",
        used_by: &["api", "registry", "agent", "server", "sim"],
        tests_of: &[],
        why: "views of objects (decision 0002)",
    },
    Outside { name: "serde-saphyr", used_by: &["server"], tests_of: &[], why: "YAML bodies" },
    Outside {
        name: "serde_json",
        used_by: &["api", "registry", "server", "sim", "mainstay"],
        tests_of: &["control", "compat"],
        why: "objects are JSON trees (decision 0002)",
    },
    Outside { name: "syn", used_by: &["xtask"], tests_of: &[], why: "tidy reads Rust as Rust" },
    Outside {
        name: "tempfile",
        used_by: &[],
        tests_of: &["compat", "engine", "server"],
        why: "directories that go by themselves",
    },
    Outside {
        name: "thiserror",
        used_by: &["engine", "server", "store"],
        tests_of: &[],
        why: "typed errors without boilerplate",
    },
    Outside {
        name: "tokio",
        used_by: &["engine", "server"],
        tests_of: &["compat"],
        why: "the async runtime of the bodies",
    },
    Outside { name: "tokio-rustls", used_by: &["server"], tests_of: &[], why: "TLS on sockets" },
    Outside { name: "tracing", used_by: &["server"], tests_of: &[], why: "structured logs" },
    Outside {
        name: "x509-parser",
        used_by: &["server"],
        tests_of: &[],
        why: "who a client certificate names",
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
