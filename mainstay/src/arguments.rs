//! The command line.
//!
//! Responsible for: flags, their help and their limits. Leaves to the commands what they mean.
//!
//! Invariant: what is wrong with the arguments is said in one sentence.

use std::path::PathBuf;

use api::flaw::Flaw;
use api::timing::profile::Profile;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// A Kubernetes-compatible cluster in one binary that survives the death of its machines.
#[derive(Debug, Parser)]
#[command(name = "mainstay", version, disable_help_subcommand = true, arg_required_else_help = false)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a virtual cluster through faults and judge what happens
    Sim(Sim),
    /// Show in a minute what happens when the node with the database dies, here and on stock Kubernetes
    Demo,
    /// Measure
    #[command(subcommand, arg_required_else_help = false)]
    Bench(Bench),
    /// Print the version
    Version,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// How fast the simulator is: decisions and virtual seconds per second
    Sim(BenchSim),
}

#[derive(Args, Debug)]
pub(crate) struct BenchSim {
    /// How many seeds
    #[arg(long, value_name = "N", default_value_t = 200, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: u64,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = examples_and_mutations())]
pub(crate) struct Sim {
    /// How many seeds; 100, or 1 with --scenario
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: Option<u64>,
    /// The first seed; 1, or the scenario's own
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub(crate) from: Option<u64>,
    /// Run this scenario file instead of random faults
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,
    /// The times that the cluster runs on: default, fast or kubernetes. A scenario says its own
    #[arg(long, value_name = "NAME", default_value = "default", conflicts_with = "scenario", value_parser = profile)]
    pub(crate) profile: &'static Profile,
    /// Leave this safeguard out; `list` names all, --help explains them
    #[arg(long, value_name = "NAME", value_parser = mutation)]
    pub(crate) mutate: Option<Mutation>,
    /// Print every event, not only the last ones of a run in which something was found
    #[arg(long)]
    pub(crate) trace: bool,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    /// Run one large cluster of so many nodes instead, and let it lose one
    #[arg(long, value_name = "N", conflicts_with_all = ["scenario", "seeds", "from", "mutate", "trace"],
        allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(3..=100_000))]
    pub(crate) nodes: Option<u32>,
    /// With --nodes: so many pods
    #[arg(long, value_name = "N", requires = "nodes", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) pods: Option<u32>,
}

const EXAMPLES: &str = "Examples:
  mainstay sim --seeds 1000                        a thousand random runs
  mainstay sim --from 4711 --seeds 1 --trace       one run, with every event
  mainstay sim --scenario story.txt                a story from a file
  mainstay sim --mutate list                       the safeguards that can be left out
  mainstay sim --mutate c5-amnesia --seeds 2000    leave one out: the oracles must notice
  mainstay sim --nodes 1000 --pods 10000           one large cluster that loses a node

Exit codes: 0 nothing was found, 1 the output could not be written, 2 the arguments made no sense, 3 something happened
that must never happen, 4 something did not happen in time.";

fn examples_and_mutations() -> String {
    let width = Flaw::ALL.iter().map(|(_, name, _)| name.len()).max().unwrap_or(0);
    let mut text = format!("{EXAMPLES}\n\nSafeguards that --mutate can leave out, and what is wrong then:");
    for (_, name, wrong) in Flaw::ALL {
        text += &format!("\n  {name:<width$}  {wrong}");
    }
    text
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Lines for people
    Text,
    /// One object
    Json,
}

/// What `--mutate` asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mutation {
    List,
    Leave(Flaw),
}

fn profile(name: &str) -> Result<&'static Profile, String> {
    Profile::named(name).map_err(|error| error.to_string())
}

fn mutation(name: &str) -> Result<Mutation, String> {
    if name == "list" {
        return Ok(Mutation::List);
    }
    let flaw = Flaw::named(name).map(Mutation::Leave);
    flaw.ok_or_else(|| format!("there is no mutation {name:?}; `--mutate list` names all"))
}

/// What is wrong with the arguments, in one sentence: what clap says before its tips and its usage.
pub(crate) fn sentence(error: &clap::Error) -> String {
    let text = error.to_string();
    let behind = ["\n\n  tip:", "\n\nUsage:", "\n\nFor more information"];
    let end = behind.iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
    let words: Vec<&str> = text[..end].split_whitespace().collect();
    let sentence = words.join(" ");
    sentence.strip_prefix("error: ").unwrap_or(&sentence).to_owned()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn what_is_wrong_is_one_sentence() {
        let wrong = |words: &[&str]| sentence(&Arguments::try_parse_from(words).unwrap_err());
        for words in [
            &["mainstay", "sim", "--seeds", "x"][..],
            &["mainstay", "sim", "--seeds", "0"],
            &["mainstay", "sim", "--profile", "x"],
            &["mainstay", "sim", "--mutate", "x"],
            &["mainstay", "sim", "--nodes", "10", "--seeds", "1"],
            &["mainstay", "sim", "--profile", "a\n\nb"],
            &["mainstay", "simm"],
            &["mainstay", "bench"],
            &["mainstay"],
        ] {
            let sentence = wrong(words);
            assert!(!sentence.contains("Usage") && !sentence.contains("tip:"), "{words:?}: {sentence}");
            assert!(!sentence.is_empty() && !sentence.contains('\n'), "{words:?}: {sentence}");
        }
    }
}
