//! A replica that does nothing but elect a leader with `LeaderElection::with_lease` of k8s-controller, as a peer of the operator in
//! `cargo e2e bench leadership`.
//!
//! It is started like the operator: KUBECONFIG, HOSTNAME as its identity, flags that it ignores, SIGTERM.

use std::future::pending;

use anyhow::Context as _;
use k8s_controller::LeaderElection;
use kube::Client;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // It can't have been installed before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut terminate = signal(SignalKind::terminate()).context("can't handle SIGTERM")?;
    let client = Client::try_default().await.context("can't find a cluster")?;
    let identity = std::env::var("HOSTNAME").context("HOSTNAME is not set")?;
    let namespace = client.default_namespace().to_owned();
    let election = LeaderElection::new(client, &namespace, "orchestratord", &identity);
    let campaign = async {
        loop {
            // Nothing is returned when leadership is lost: it campaigns again.
            let _: Option<()> = election.with_lease(pending()).await;
        }
    };
    tokio::select! {
        () = campaign => {}
        _ = terminate.recv() => election.release().await,
    }
    Ok(())
}
