//! Development tasks, called as `cargo xtask TASK`. Not part of the product.
//!
//! - `ci [PART...]`: everything that a change must pass, in the order of what fails soonest;
//! - `tidy`: the rules of the house that a compiler does not know;
//! - `soak --hours N | --minutes N`: the simulator on seeds that nobody has seen.

use std::process::ExitCode;

use anyhow::Result;

mod ci;
mod command;
mod soak;
mod tidy;

const USAGE: &str = "\
usage: cargo xtask ci [PART...]                    all parts, or the named ones
       cargo xtask ci --list                       the parts and their budgets
       cargo xtask tidy [--list]                   the rules of the house
       cargo xtask soak --hours N | --minutes N    simulate onward from a seed taken from the time";

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let is_clean = match arguments.as_slice() {
        ["ci", "--list"] => done(ci::list),
        ["ci", parts @ ..] if parts.iter().all(|part| ci::is_part(part)) => ci::run(parts)?,
        ["tidy"] => tidy::run(&command::root())? == 0,
        ["tidy", "--list"] => done(tidy::list),
        ["soak", unit, count] => match soak::span(unit, count) {
            Some(span) => soak::run(span)?,
            None => return Ok(usage()),
        },
        ["help" | "--help" | "-h"] => done(|| println!("{USAGE}")),
        _ => return Ok(usage()),
    };
    Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Carries out what cannot fail.
fn done(act: impl FnOnce()) -> bool {
    act();
    true
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}
