//! The parts of `ci` that run the simulator of the release build.
//!
//! Seeds and scenarios must be clean. A mutation breaks one rule on purpose and must be *caught*: an oracle that
//! never speaks is not trusted. What a mutated run prints is a finding by design, so it goes to a file under the
//! target directory and is shown only if the mutation was not caught.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::Outcome;
use crate::command::{self, Ended};

/// How many lines of a log say enough about why a run went wrong.
const TAIL_LINES: usize = 50;

pub(super) fn seeds(arguments: &[&str], limit: Duration) -> Result<Outcome> {
    Ok(outcome(clean(arguments, limit)?.into_iter().collect(), "runs"))
}

pub(super) fn scenarios(limit: Duration) -> Result<Outcome> {
    let start = Instant::now();
    let mut failed = Vec::new();
    for file in scenario_files(&command::root())? {
        let file = file.to_string_lossy();
        let arguments = ["--scenario", &*file, "--seeds", "1"];
        failed.extend(clean(&arguments, limit.saturating_sub(start.elapsed()))?);
    }
    Ok(outcome(failed, "scenarios"))
}

pub(super) fn mutations(seeds: &str, limit: Duration) -> Result<Outcome> {
    let start = Instant::now();
    let mut missed = Vec::new();
    for name in mutation_names()? {
        let began = Instant::now();
        let arguments = ["--mutate", &*name, "--seeds", seeds];
        let (path, log) = log(&name)?;
        let ended = command::simulate(
            command::simulator(&arguments)?,
            Some(&log),
            limit.saturating_sub(start.elapsed()),
        )?;
        let is_caught = matches!(ended, Ended::Unsafe | Ended::Stuck);
        let verdict = if is_caught { "caught" } else { "NOT CAUGHT" };
        println!("{name:<24} {verdict}: {} in {}", ended.words(), command::human(began.elapsed()));
        if !is_caught {
            println!("{}", tail(&fs::read_to_string(&path)?));
            missed.push(name);
        }
    }
    Ok(outcome(missed, "mutations"))
}

/// Runs the simulator and names the run if it was not clean.
fn clean(arguments: &[&str], limit: Duration) -> Result<Option<String>> {
    let simulator = command::simulator(arguments)?;
    let shown = command::shown(&simulator);
    println!("$ {shown}");
    let ended = command::simulate(simulator, None, limit)?;
    Ok((ended != Ended::Clean).then(|| format!("{shown} ({})", ended.words())))
}

fn outcome(failed: Vec<String>, what: &str) -> Outcome {
    match failed.as_slice() {
        [] => Outcome::Passed,
        failed => Outcome::Failed(format!("{what}: {}", failed.join(", "))),
    }
}

/// The scenario files in the order of their names. None at all is an error: the part would pass by doing nothing.
fn scenario_files(root: &Path) -> Result<Vec<PathBuf>> {
    let directory = Path::new("sim/scenarios");
    let entries =
        fs::read_dir(root.join(directory)).with_context(|| format!("reading {}", directory.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let file = directory.join(entry?.file_name());
        files.extend(Some(file).filter(|file| file.extension().is_some_and(|extension| extension == "txt")));
    }
    files.sort();
    if files.is_empty() {
        bail!("there is no scenario file in {}", directory.display());
    }
    Ok(files)
}

/// The mutations that the simulator knows, by its own word.
fn mutation_names() -> Result<Vec<String>> {
    let mut simulator = command::simulator(&["--mutate", "list"])?;
    let output = simulator.output().with_context(|| format!("starting {}", command::shown(&simulator)))?;
    let names = first_column(&String::from_utf8_lossy(&output.stdout));
    if !output.status.success() || names.is_empty() {
        bail!("the simulator lists no mutation: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(names)
}

fn first_column(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn log(name: &str) -> Result<(PathBuf, File)> {
    let directory = command::target_dir()?.join("mutations");
    fs::create_dir_all(&directory).with_context(|| format!("creating {}", directory.display()))?;
    let path = directory.join(format!("{name}.log"));
    let file = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
    Ok((path, file))
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_first_column() {
        assert_eq!(first_column("amnesia  C5: forgets\nlost-close\n\n"), ["amnesia", "lost-close"]);
    }

    #[test]
    fn a_tail_is_the_end() {
        let text = (1..=60).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
        assert!(tail(&text).starts_with("11\n") && tail(&text).ends_with("\n60"));
        assert_eq!(tail("one"), "one");
    }

    #[test]
    fn a_failed_part_names_what_failed() {
        assert!(matches!(outcome(Vec::new(), "mutations"), Outcome::Passed));
        let Outcome::Failed(why) = outcome(vec!["amnesia".to_owned()], "mutations") else {
            panic!("must fail")
        };
        assert_eq!(why, "mutations: amnesia");
    }
}
