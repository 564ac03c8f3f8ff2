//! Commands that the tasks run: always at the root of the workspace, always with the output passed on as it comes.
//!
//! Holds the contract of `mainstay sim` that the tasks rely on: its arguments and its exit codes.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// How one run of `mainstay sim` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Exit 0: no oracle spoke.
    Clean,
    /// Exit 3: something happened that must never happen.
    Unsafe,
    /// Exit 4: something did not happen in time.
    Stuck,
    /// Any other exit: bad arguments, a panic, a signal.
    Broken,
    /// It did not end within its limit and was killed.
    Overdue,
}

/// How often a running command is looked at. Short beside any part, long beside the cost of looking.
const POLL: Duration = Duration::from_millis(50);

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Where cargo puts what it builds.
pub(crate) fn target_dir() -> Result<PathBuf> {
    let named = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    // A relative name is meant from where the user stands, not from the root.
    std::path::absolute(&named).with_context(|| format!("finding {}", named.display()))
}

/// A cargo command at the root, with the target directory of this run.
pub(crate) fn cargo(arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    command.args(arguments).current_dir(root()).env("CARGO_TARGET_DIR", target_dir()?);
    Ok(command)
}

/// Runs a command to its end with its output passed on. True if it succeeded.
pub(crate) fn succeeds(mut command: Command) -> Result<bool> {
    println!("$ {}", shown(&command));
    let status = command.status().with_context(|| format!("starting {}", shown(&command)))?;
    Ok(status.success())
}

/// Whether a command is there and answers. Its output is nobody's business.
pub(crate) fn answers(mut command: Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

/// A command `mainstay sim` of the release build.
pub(crate) fn simulator(arguments: &[&str]) -> Result<Command> {
    let binary = target_dir()?.join("release").join("mainstay");
    if !binary.exists() {
        bail!("there is no release build of mainstay: run `cargo build --release` first");
    }
    let mut command = Command::new(binary);
    command.arg("sim").args(arguments).current_dir(root()).stdin(Stdio::null());
    Ok(command)
}

/// Runs a simulator command, its output passed on or written to `log`, and ends it if it takes longer than `limit`.
pub(crate) fn simulate(mut command: Command, log: Option<&File>, limit: Duration) -> Result<Ended> {
    if let Some(log) = log {
        command.stdout(log.try_clone()?).stderr(log.try_clone()?);
    }
    let child = command.spawn().with_context(|| format!("starting {}", shown(&command)))?;
    Ok(wait_at_most(child, limit)?.map_or(Ended::Overdue, Ended::of))
}

/// The command line as a person would type it.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// `5m07s`, `12.3s`.
pub(crate) fn human(span: Duration) -> String {
    match span.as_secs() {
        seconds @ 60.. => format!("{}m{:02}s", seconds / 60, seconds % 60),
        seconds => format!("{seconds}.{}s", span.subsec_millis() / 100),
    }
}

// === impl Ended ===

impl Ended {
    fn of(status: ExitStatus) -> Ended {
        match status.code() {
            Some(0) => Ended::Clean,
            Some(3) => Ended::Unsafe,
            Some(4) => Ended::Stuck,
            Some(_) | None => Ended::Broken,
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Ended::Clean => "clean",
            Ended::Unsafe => "safety violated",
            Ended::Stuck => "liveness violated",
            Ended::Broken => "broken: neither clean nor a finding",
            Ended::Overdue => "overdue and killed",
        }
    }
}

/// How a child ended, or nothing if it had to be killed.
fn wait_at_most(mut child: Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() >= limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn exit_codes_keep_their_meaning() {
        let ends = |script| simulate(shell(script), None, Duration::from_secs(60)).unwrap();
        let found = ["exit 0", "exit 2", "exit 3", "exit 4", "exit 101", "kill -9 $$"].map(ends);
        let expected =
            [Ended::Clean, Ended::Broken, Ended::Unsafe, Ended::Stuck, Ended::Broken, Ended::Broken];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_command_that_hangs_is_ended() {
        let ended = simulate(shell("exec sleep 600"), None, Duration::from_millis(1)).unwrap();
        assert_eq!(ended, Ended::Overdue);
    }

    #[test]
    fn spans_read_well() {
        let found = [0, 12_345, 59_999, 60_000, 307_000].map(|ms| human(Duration::from_millis(ms)));
        assert_eq!(found, ["0.0s", "12.3s", "59.9s", "1m00s", "5m07s"]);
    }

    #[test]
    fn commands_are_shown_without_their_directories() {
        let mut command = Command::new("a/b/mainstay");
        command.args(["sim", "--seeds", "5"]);
        assert_eq!(shown(&command), "mainstay sim --seeds 5");
    }
}
