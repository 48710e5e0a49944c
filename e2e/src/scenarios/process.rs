//! Area `process`: command line, start, probes, end.

use std::time::Duration;

use anyhow::{Result, ensure};
use nix::sys::signal::Signal;

use super::context::Context;
use super::{Scenario, Sharing};
use crate::cluster::Level;

/// The scenarios of this area.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "process::a_missing_flag_is_not_told",
        level: Level::Api,
        sharing: Sharing::Shared,
        long: false,
        limit: Duration::from_mins(1),
        body: a_missing_flag_is_not_told,
    },
    Scenario {
        name: "process::a_probe_lies_or_a_signal_is_ignored",
        level: Level::Api,
        sharing: Sharing::Shared,
        long: false,
        limit: Duration::from_mins(2),
        body: a_probe_lies_or_a_signal_is_ignored,
    },
];

/// Without a required flag the process ends with the status of a usage error and names the flag (docs/reference/flags.md).
fn a_missing_flag_is_not_told(context: &mut Context) -> Result<()> {
    for missing in ["--cloud-provider", "--region", "--console-image-tag-default"] {
        let all = [
            "--cloud-provider=local",
            "--region=local",
            "--console-image-tag-default=v26.43.0",
        ];
        let flags: Vec<&str> = all.into_iter().filter(|flag| !flag.starts_with(missing)).collect();
        let mut replica = context.replica("replica-0").only_flags(&flags).start()?;
        let status = replica.wait(Duration::from_secs(20))?;
        let output = replica.output()?;
        ensure!(
            status.code() == Some(2),
            "without {missing} it ended with {status}, not 2: {output}"
        );
        ensure!(
            output.contains(missing),
            "its message does not name {missing}: {output}"
        );
    }
    Ok(())
}

/// Liveness and readiness are 200 in a running replica whether it leads or not, and SIGTERM ends it with status 0 (decisions L12, L13).
fn a_probe_lies_or_a_signal_is_ignored(context: &mut Context) -> Result<()> {
    let mut first = context.ready_replica("replica-0")?;
    let leader = context.holder(None, Duration::from_secs(30))?;
    ensure!(
        leader == first.name,
        "the only replica is {} and the holder is {leader}",
        first.name
    );
    let mut second = context.ready_replica("replica-1")?;
    for replica in [&first, &second] {
        for path in ["/healthz", "/readyz"] {
            let (status, body) = context.cluster.get(replica.metrics, path)?;
            ensure!(status == 200, "{path} of {} says {status}: {body}", replica.name);
        }
    }
    for replica in [&mut second, &mut first] {
        replica.signal(Signal::SIGTERM)?;
        let status = replica.wait(Duration::from_secs(16))?;
        ensure!(
            status.code() == Some(0),
            "{} ended with {status} after SIGTERM",
            replica.name
        );
    }
    Ok(())
}
