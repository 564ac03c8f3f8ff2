//! What the machine says about this process.

use std::fs;

/// The most memory that this process had, in KiB; `None` where the system does not say.
pub(crate) fn rss_max_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// `n` per second, if they took `ms`.
pub(crate) fn per_second(n: u64, ms: u64) -> u64 {
    n.saturating_mul(1000) / ms.max(1)
}
