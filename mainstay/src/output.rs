//! What goes to stdout and stderr.
//!
//! Responsible for: one way to print, [`say!`], and the end of the process where nobody can hear it any more. A reader
//! that went away (`| head`) is no error and gets no word; a full disk is one.

use std::fmt;
use std::io::{self, ErrorKind, Write as _};
use std::process;

/// The output could not be written.
const LOST_OUTPUT: i32 = 1;
/// What a shell says of a process that wrote into a closed pipe.
const CLOSED_PIPE: i32 = 141;

/// Prints a line to stdout.
macro_rules! say {
    ($($text:tt)*) => { $crate::output::line(format_args!($($text)*)) };
}

/// Prints a line to stdout, or ends the process.
pub(crate) fn line(text: fmt::Arguments<'_>) {
    if let Err(error) = writeln!(io::stdout(), "{text}") {
        lost(&error);
    }
}

/// Says one sentence on stderr. Line breaks and control characters in it are shown, not sent to the terminal.
pub(crate) fn complain(why: &str) {
    let mut sentence = String::new();
    for c in why.chars() {
        if c.is_control() { sentence.extend(c.escape_default()) } else { sentence.push(c) }
    }
    // Where stderr is gone, the exit code says it alone.
    let _ = writeln!(io::stderr(), "mainstay: {sentence}");
}

fn lost(error: &io::Error) -> ! {
    if error.kind() == ErrorKind::BrokenPipe {
        process::exit(CLOSED_PIPE);
    }
    complain(&format!("cannot write the output: {error}"));
    process::exit(LOST_OUTPUT)
}
