//! `cargo e2e`: a real Kubernetes on one machine, and the scenarios that prove orchestratord on it (docs/local-cluster.md).

mod args;
mod bench;
mod cache;
mod cargo;
mod clock;
mod cluster;
mod command;
mod demo;
mod environment;
mod errors;
mod images;
mod installation;
mod logs;
mod machine;
mod progress;
mod proxy;
mod scenarios;
mod tools;
mod verify;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser as _;

use args::{Args, Command};
use cache::Cache;
use cluster::{Cluster, Level};

fn main() -> ExitCode {
    match run(Args::parse().command) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {}", errors::describe(&error));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode> {
    cluster::level::check_instance()?;
    match command {
        Command::Up { level } => {
            cluster::up::up(level, &Cache::locate()?)?;
            progress::line(&format!(
                "try: cargo e2e kubectl --level {level} get all -A   (what runs: cargo e2e status; remove it: cargo e2e down)"
            ));
        }
        Command::Down { level } => cluster::remove(&level.map_or_else(|| Level::ALL.to_vec(), |level| vec![level]))?,
        Command::Status => {
            return Ok(if cluster::status::print(&Cache::locate()?)? {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(3)
            });
        }
        Command::Kubectl { level, arguments } => {
            let cluster = Cluster::attach(level.unwrap_or_else(Cluster::default_level), &Cache::locate()?)?;
            cluster.kubectl.become_it(&arguments)?;
        }
        Command::Logs {
            level,
            component,
            follow,
        } => {
            return logs::show(
                level.unwrap_or_else(Cluster::default_level),
                component.as_deref(),
                follow,
            );
        }
        Command::Test(selection) => return scenarios::run::test(&selection, &Cache::locate()?),
        Command::Bench(options) => bench::bench(&options, &Cache::locate()?)?,
        Command::Demo => demo::demo(&Cache::locate()?)?,
        Command::Verify(options) => return verify::verify(&options, &Cache::locate()?),
        Command::Forward { level, port, target } => {
            let cluster = Cluster::attach(level.unwrap_or_else(Cluster::default_level), &Cache::locate()?)?;
            cluster.forward(port, cluster.resolve(&target)?)?;
        }
        Command::Spawn(spawn) => spawn.become_it()?,
        Command::NodeOutside { plan } => cluster::node::boot::outside(&plan)?,
        Command::NodeInside { plan } => cluster::node::boot::inside(&plan)?,
    }
    Ok(ExitCode::SUCCESS)
}
