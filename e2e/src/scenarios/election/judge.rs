//! What must hold in every scenario, whatever was done to it.

use anyhow::{Result, ensure};
use serde_json::Value;

use super::LEASE_DURATION;
use super::ledger::{Ledger, holder_of};
use crate::cluster::audit::Event;

/// Verbs that replicas may use on Leases (decision L8).
const VERBS: [&str; 5] = ["get", "list", "watch", "create", "update"];

/// Whatever replicas asked about the Lease was well formed, and none took it from a holder that had not been silent for its whole duration.
pub(super) fn election(ledger: &Ledger<'_>) -> Result<()> {
    for event in ledger.lease_requests()? {
        if ledger.replica(&event).is_some() {
            well_formed(&event)?;
        }
    }
    let mut spec = Value::Null;
    let mut holder = String::new();
    let mut changed = i128::MIN;
    for event in ledger.writes()? {
        let received = event.received()?;
        if event.verb() == "delete" {
            (spec, holder) = (Value::Null, String::new());
            continue;
        }
        let taken = holder_of(&event);
        if ledger.replica(&event).is_some() && !holder.is_empty() && !taken.is_empty() && taken != holder {
            ensure!(
                received - changed >= LEASE_DURATION,
                "{taken} took the Lease from {holder} when it had been silent for {} µs: {}",
                received - changed,
                event.line()
            );
        }
        taken.clone_into(&mut holder);
        if event.response()["spec"] != spec {
            spec = event.response()["spec"].clone();
            changed = received;
        }
    }
    Ok(())
}

fn well_formed(event: &Event) -> Result<()> {
    ensure!(
        VERBS.contains(&event.verb()),
        "a replica used the verb {} on Leases: {}",
        event.verb(),
        event.line()
    );
    ensure!(
        !matches!(event.code(), 400 | 422),
        "the API server refused what a replica sent: {}",
        event.line()
    );
    if !matches!(event.verb(), "create" | "update") {
        return Ok(());
    }
    let sent = event.request();
    if event.verb() == "update" {
        for field in ["resourceVersion", "uid"] {
            let value = sent["metadata"][field].as_str().unwrap_or_default();
            ensure!(!value.is_empty(), "an update without {field}: {}", event.line());
        }
    }
    for field in ["acquireTime", "renewTime"] {
        if let Some(time) = sent["spec"][field].as_str() {
            let digits = time.rsplit_once('.').map(|(_, digits)| digits.trim_end_matches('Z').len());
            ensure!(digits == Some(6), "{field} is {time}, without exactly six digits: {}", event.line());
        }
    }
    let duration = &sent["spec"]["leaseDurationSeconds"];
    ensure!(
        duration.is_null() || *duration == 15,
        "leaseDurationSeconds is {duration}: {}",
        event.line()
    );
    Ok(())
}
