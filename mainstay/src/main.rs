//! The one binary: what a user types, and the bodies around the minds.
//!
//! Responsible for: reading the command line, threads, files, output, exit codes. Leaves every decision to the pure
//! crates; of those it has the virtual cluster today.

#[macro_use]
mod output;

mod arguments;
mod bench;
mod demo;
mod machine;
mod scale;
mod series;
mod simulate;

use std::process::ExitCode;

use clap::Parser as _;

use arguments::{Arguments, Bench, Command};

/// The arguments made no sense.
const BAD_ARGUMENTS: u8 = 2;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) if !error.use_stderr() => {
            // The help or the version was asked for. A reader that went away is no error.
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        Err(error) => return refuse(&arguments::sentence(&error)),
    };
    let done = match arguments.command {
        Command::Sim(options) => simulate::run(&options),
        Command::Demo => demo::run(),
        Command::Bench(Bench::Sim(options)) => bench::run(&options),
        Command::Version => {
            say!("mainstay {}", env!("CARGO_PKG_VERSION"));
            Ok(0)
        }
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => refuse(&format!("{error:#}")),
    }
}

fn refuse(why: &str) -> ExitCode {
    output::complain(why);
    ExitCode::from(BAD_ARGUMENTS)
}
