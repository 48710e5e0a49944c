//! The binary `orchestratord`: `run` says what happens in which order.

use std::process::ExitCode;

use clap::Parser as _;
use orchestratord::{args::Args, run};

fn main() -> ExitCode {
    // The one provider of cryptography for all TLS. It can't have been installed before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match Args::try_parse() {
        Ok(args) => run::run(args),
        Err(error) => run::usage(&error),
    }
}
