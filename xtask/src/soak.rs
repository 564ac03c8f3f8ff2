//! `cargo xtask soak`: the simulator on seeds that nobody has seen, for as long as one likes.
//!
//! CI runs the same seeds every time, so that it fails only for a reason in the change. Looking for what nobody
//! thought of is this task's work: it starts at a seed taken from the time and walks onward, one profile after the
//! other, until the time is up. A batch that finds something does not end the walk. The report names every batch,
//! and for each that was not clean the command that repeats it.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};

use crate::command::{self, Ended};

/// Seeds in one batch: a few seconds to a minute, so that the end comes close to the time asked for.
const BATCH: u64 = 2000;
/// A batch that takes this long hangs.
const BATCH_LIMIT: Duration = Duration::from_secs(20 * 60);
/// Seeds per second of time that the start moves on. More than a machine simulates in a second, so that two walks
/// begun one after the other do not meet.
const SEEDS_PER_SECOND: u64 = 100_000;

static PROFILES: &[&str] = &["default", "fast", "kubernetes"];

/// One run of the simulator.
struct Batch {
    from: u64,
    profile: &'static str,
    ended: Ended,
    took: Duration,
}

/// The time asked for by `--hours N` or `--minutes N`.
pub(crate) fn span(unit: &str, count: &str) -> Option<Duration> {
    let seconds_each = match unit {
        "--hours" => 3600,
        "--minutes" => 60,
        _ => return None,
    };
    let count: u64 = count.parse().ok().filter(|count| *count > 0)?;
    count.checked_mul(seconds_each).map(Duration::from_secs)
}

/// Walks for `span`. True if every batch was clean.
pub(crate) fn run(span: Duration) -> Result<bool> {
    if !command::succeeds(command::cargo(&["build", "--release", "--locked"])?)? {
        return Ok(false);
    }
    let began = SystemTime::now().duration_since(UNIX_EPOCH).context("reading the time")?.as_secs();
    let directory = command::target_dir()?.join("soak").join(began.to_string());
    fs::create_dir_all(&directory).with_context(|| format!("creating {}", directory.display()))?;
    let start = Instant::now();
    let mut batches = Vec::new();
    let froms = (0..).map(|nth: u64| began.wrapping_mul(SEEDS_PER_SECOND).wrapping_add(nth * BATCH));
    for (from, profile) in froms.zip(PROFILES.iter().cycle()) {
        if start.elapsed() >= span {
            break;
        }
        let batch = simulate(&directory, from, profile)?;
        println!("{}", batch.line());
        batches.push(batch);
        // Written after every batch: a walk that is cut short keeps what it has seen.
        write_report(&directory, &batches)?;
    }
    println!("report: {}", report_path(&directory).display());
    Ok(batches.iter().all(|batch| batch.ended == Ended::Clean))
}

fn simulate(directory: &Path, from: u64, profile: &'static str) -> Result<Batch> {
    let path = directory.join(format!("{from}.log"));
    let log = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
    let start = Instant::now();
    let arguments = arguments(from, profile);
    let simulator = command::simulator(&arguments.iter().map(String::as_str).collect::<Vec<_>>())?;
    let ended = command::simulate(simulator, Some(&log), BATCH_LIMIT)?;
    if ended == Ended::Clean {
        fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
    }
    Ok(Batch { from, profile, ended, took: start.elapsed() })
}

fn arguments(from: u64, profile: &str) -> [String; 6] {
    ["--from", &from.to_string(), "--seeds", &BATCH.to_string(), "--profile", profile].map(str::to_owned)
}

fn report_path(directory: &Path) -> PathBuf {
    directory.join("report.md")
}

fn write_report(directory: &Path, batches: &[Batch]) -> Result<()> {
    let path = report_path(directory);
    fs::write(&path, report(batches)).with_context(|| format!("writing {}", path.display()))
}

fn report(batches: &[Batch]) -> String {
    let bad: Vec<&Batch> = batches.iter().filter(|batch| batch.ended != Ended::Clean).collect();
    let took: Duration = batches.iter().map(|batch| batch.took).sum();
    let mut text = String::from("# Soak\n\n| profile | batches | not clean |\n|---|---|---|\n");
    for profile in PROFILES {
        let count =
            |of: &mut dyn Iterator<Item = &Batch>| of.filter(|batch| batch.profile == *profile).count();
        let (all, bad) = (count(&mut batches.iter()), count(&mut bad.iter().copied()));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {profile} | {all} | {bad} |");
    }
    let _ = writeln!(text, "\nBatches of {BATCH} seeds, {} in all.\n", command::human(took));
    for batch in bad {
        let again = arguments(batch.from, batch.profile).join(" ");
        let _ =
            writeln!(text, "- {}: `mainstay sim {again}`, log in `{}.log`", batch.ended.words(), batch.from);
    }
    text
}

// === impl Batch ===

impl Batch {
    fn line(&self) -> String {
        let Batch { from, profile, ended, took } = self;
        format!("{from:<20} {profile:<11} {:>8}  {}", command::human(*took), ended.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_hours_or_minutes() {
        assert_eq!(span("--hours", "2"), Some(Duration::from_secs(7200)));
        assert_eq!(span("--minutes", "5"), Some(Duration::from_secs(300)));
        for (unit, count) in [("--days", "1"), ("--hours", "0"), ("--hours", "x"), ("--hours", "-1")] {
            assert_eq!(span(unit, count), None);
        }
    }

    #[test]
    fn a_report_says_how_to_repeat() {
        let batch = |from, ended| Batch { from, profile: "fast", ended, took: Duration::from_secs(2) };
        let text = report(&[batch(7, Ended::Clean), batch(2007, Ended::Unsafe)]);
        assert!(text.contains("| fast | 2 | 1 |"), "{text}");
        let again =
            "- safety violated: `mainstay sim --from 2007 --seeds 2000 --profile fast`, log in `2007.log`";
        assert!(text.contains(again), "{text}");
    }
}
