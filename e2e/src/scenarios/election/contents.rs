//! What stands in the Lease: misread it, and two replicas lead at once or none ever does.

use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::kit::{Content, Patience, contents};
use super::ledger::{Ledger, transitions_of};
use super::stage::{Player, SOON};
use super::{Body, Context, LEASE_DURATION, TAKE_OVER, judge};
use crate::cluster::audit::Event;

/// Each content is found at the start, and appears while a replica leads and another waits. All at the same time, each in a namespace of its own.
pub(super) const SCENARIO: Body = |context| {
    let context = &*context;
    let failures: Vec<String> = thread::scope(|scope| {
        let running: Vec<_> = contents("replica-0")
            .into_iter()
            .enumerate()
            .map(|(index, content)| {
                let (cluster, operator) = (&context.cluster, context.operator.as_path());
                scope.spawn(move || {
                    let name = format!("{}-{index}", context.namespace);
                    let limit = Duration::from_secs(200);
                    Context::run(&name, limit, cluster, operator, |context| {
                        let result = found_at_the_start_and_later(context, &content);
                        if content.decorated {
                            // Else the namespace could not be removed. It has failed if the finalizer is gone already.
                            let _ = remove_finalizer(context);
                        }
                        result
                    })
                    .with_context(|| content.name)
                })
            })
            .collect();
        running
            .into_iter()
            .filter_map(|thread| match thread.join() {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(format!("{error:#}")),
                Err(_) => Some("a panic".to_owned()),
            })
            .collect()
    });
    if failures.is_empty() {
        return Ok(());
    }
    bail!("{} of the contents:\n  {}", failures.len(), failures.join("\n  "))
};

fn found_at_the_start_and_later(context: &Context, given: &Content) -> Result<()> {
    let ledger = Ledger::of(context);
    let owner = owner(context, given)?;
    context
        .cluster
        .kubectl
        .apply(&manifest(context, given, &owner).to_string())?;
    if given.deleted {
        delete(context)?;
    }
    let first = Player::start(context, "replica-0")?;
    let acquired = ledger.wait_for_acquisition("the first replica leads", Duration::from_mins(1), 0)?;
    check(given, &acquired, given.at_start, first_look(&ledger)?, &owner)?;
    if given.deleted {
        recreated_after_the_finalizer_goes(context, &ledger, &acquired)?;
    }

    let mut second = Player::start(context, "replica-1")?;
    second.wait_until_it_watches(context)?;
    let before = ledger.acquisitions()?.len();
    write_over(context, given, &owner)?;
    let written = ledger.writes()?;
    let written = written
        .iter()
        .rfind(|event| ledger.replica(event).is_none())
        .context("the outsider's write is not in the audit log")?;
    if given.in_steady_state == Patience::TermGoesOn {
        ledger.wait_for_renewal("replica-0", SOON)?;
        let last = ledger.acquisitions()?;
        ensure!(last.len() == before, "the term ended: {}", last[before].line());
        recreated_after_the_finalizer_goes(context, &ledger, written)?;
    } else {
        let acquired = ledger.wait_for_acquisition("a replica leads again", TAKE_OVER, before)?;
        check(given, &acquired, given.in_steady_state, written.received()?, &owner)?;
    }
    for mut player in [first, second] {
        player.replica.must_run()?;
    }
    if given.in_steady_state == Patience::None {
        // What looks like a release ends a term at once.
        return Ok(());
    }
    judge::election(&ledger)
}

/// Whether an acquisition came when it may, and what it left.
fn check(given: &Content, acquired: &Event, patience: Patience, since: i128, owner: &Value) -> Result<()> {
    let waited = acquired.received()? - since;
    match patience {
        Patience::LeaseDuration => ensure!(
            waited >= LEASE_DURATION,
            "it was taken after {waited} µs: {}",
            acquired.line()
        ),
        Patience::None | Patience::TermGoesOn => ensure!(
            waited < LEASE_DURATION,
            "it was free, and was taken only after {waited} µs: {}",
            acquired.line()
        ),
    }
    if let Some(transitions) = given.transitions {
        ensure!(
            transitions_of(acquired) == Some(transitions),
            "leaseTransitions is not {transitions}: {}",
            acquired.line()
        );
    }
    if given.decorated {
        let metadata = &acquired.response()["metadata"];
        let kept = metadata["labels"]["test/label"] == "kept"
            && metadata["annotations"]["test/annotation"] == "kept"
            && metadata["ownerReferences"] == *owner
            && metadata["finalizers"] == json!(["test/hold"]);
        ensure!(kept, "metadata was lost: {}", acquired.line());
    }
    Ok(())
}

/// When a replica first asked for the Lease.
fn first_look(ledger: &Ledger<'_>) -> Result<i128> {
    let requests = ledger.lease_requests()?;
    let first = requests.iter().find(|event| ledger.replica(event).is_some());
    first.context("no replica looked at the Lease")?.received()
}

/// Once the finalizer is removed the object vanishes, and the leader makes a new one.
fn recreated_after_the_finalizer_goes(context: &Context, ledger: &Ledger<'_>, old: &Event) -> Result<()> {
    remove_finalizer(context)?;
    let uid = |event: &Event| event.response()["metadata"]["uid"].clone();
    context.wait_for("the Lease is made anew", TAKE_OVER, || {
        let acquired = ledger.acquisitions()?;
        Ok(acquired
            .last()
            .is_some_and(|event| uid(event) != uid(old) && transitions_of(event) == Some(0))
            .then_some(()))
    })
}

fn remove_finalizer(context: &Context) -> Result<()> {
    patch(context, &json!({ "metadata": { "finalizers": null } }))
}

/// Changes the Lease as a person would.
fn patch(context: &Context, patch: &Value) -> Result<()> {
    let arguments = ["patch", "lease", "orchestratord", "--namespace", &context.namespace];
    let patch = patch.to_string();
    context
        .kubectl(&[&arguments[..], &["--type=merge", "-p", &patch]].concat())
        .map(drop)
}

/// The owner in a decorated Lease must exist, else the garbage collector removes it.
fn owner(context: &Context, given: &Content) -> Result<Value> {
    if !given.decorated {
        return Ok(Value::Null);
    }
    context.kubectl(&["create", "configmap", "owner", "--namespace", &context.namespace])?;
    let owner = context.json(&["get", "configmap", "owner", "--namespace", &context.namespace])?;
    Ok(json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"] }]))
}

fn manifest(context: &Context, given: &Content, owner: &Value) -> Value {
    let mut metadata = json!({ "name": "orchestratord", "namespace": context.namespace });
    if given.decorated {
        decorate(&mut metadata, owner);
    }
    json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": given.spec })
}

fn decorate(metadata: &mut Value, owner: &Value) {
    metadata["labels"] = json!({ "test/label": "kept" });
    metadata["annotations"] = json!({ "test/annotation": "kept" });
    metadata["finalizers"] = json!(["test/hold"]);
    metadata["ownerReferences"] = owner.clone();
}

/// Gives a Lease that a replica holds this content, in one write.
fn write_over(context: &Context, given: &Content, owner: &Value) -> Result<()> {
    let mut spec = json!({
        "holderIdentity": null, "leaseDurationSeconds": null, "acquireTime": null, "renewTime": null,
        "leaseTransitions": null,
    });
    for (key, value) in given.spec.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    let mut patch = json!({});
    if given.decorated {
        patch["metadata"] = json!({});
        decorate(&mut patch["metadata"], owner);
    }
    if !given.deleted {
        patch["spec"] = spec;
    }
    self::patch(context, &patch)?;
    if given.deleted {
        delete(context)?;
    }
    Ok(())
}

fn delete(context: &Context) -> Result<()> {
    context
        .kubectl(&[
            "delete",
            "lease",
            "orchestratord",
            "--namespace",
            &context.namespace,
            "--wait=false",
        ])
        .map(drop)
}
