//! The program: parse, dispatch, exit code.

use std::process::ExitCode;

use clap::Parser;
use underfire::cli::{Cli, Exit, complain, dispatch};

fn main() -> ExitCode {
    let exit = dispatch(Cli::parse(), quit).unwrap_or_else(|error| {
        complain(&error);
        Exit::Usage
    });
    ExitCode::from(exit as u8)
}

fn quit(exit: Exit) -> ! {
    #[expect(clippy::exit, reason = "a second interrupt ends the process at once")]
    std::process::exit(exit as i32)
}
