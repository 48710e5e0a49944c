//! Running cargo from a program that cargo runs.

use std::env;
use std::process::Command;

use crate::cache::{Cache, repository};

/// What `cargo run` tells the program about the package that it runs. Build scripts look at some of these variables: left in
/// place, they would have the dependencies compiled anew in turn by this program's cargo and by the one in a shell.
const OF_THE_RUNNING_PACKAGE: [&str; 5] = [
    "CARGO_PKG_",
    "CARGO_MANIFEST_",
    "CARGO_CRATE_",
    "CARGO_BIN_",
    "CARGO_PRIMARY_",
];

/// `cargo` in this workspace, with its output where the cluster's own builds are, so that nothing is compiled twice.
pub(crate) fn cargo(cache: &Cache) -> Command {
    let mut command = Command::new("cargo");
    command
        .current_dir(repository())
        .env("CARGO_TARGET_DIR", cache.cargo_target())
        .env_remove("CARGO")
        .env_remove("OUT_DIR");
    for (name, _) in env::vars_os() {
        if OF_THE_RUNNING_PACKAGE
            .iter()
            .any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
        {
            command.env_remove(name);
        }
    }
    command
}
