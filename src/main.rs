//! The binary `orchestratord`: `run` says what happens in which order.

use std::process::ExitCode;

fn main() -> ExitCode {
    orchestratord::run::run()
}
