//! The components of the control plane and their flags.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;

use super::daemons::Daemons;
use super::kubectl::Kubectl;
use super::level::Level;
use super::network;
use crate::tools::Tools;

/// Waits are generous: on two busy cores everything takes several times as long as in a quiet moment.
pub(super) const PATIENCE: Duration = Duration::from_mins(2);

/// Starts etcd and the API server, and waits until the latter is ready, which includes that the bootstrap roles exist.
pub(super) fn start_api(level: Level, tools: &Tools, daemons: &mut Daemons, kubectl: &Kubectl) -> Result<()> {
    let netns = level.netns();
    daemons.start("etcd", &netns, &tools.path("etcd"), &etcd(level))?;
    let policy = level.folder().join("audit-policy.json");
    fs::write(&policy, audit_policy()).with_context(|| format!("writing {}", policy.display()))?;
    daemons.start(
        "kube-apiserver",
        &netns,
        &tools.path("kube-apiserver"),
        &api_server(level, &policy),
    )?;
    let address = SocketAddr::from(([172, 30, 0, 1], 6443));
    // First by a bare connection, which costs nothing while the two need every core.
    daemons.wait_for(
        "that the API server listens",
        PATIENCE,
        Duration::from_millis(50),
        || netns.run(|| Ok(TcpStream::connect(address)?)).ok(),
    )?;
    daemons.wait_for(
        "that the API server is ready",
        PATIENCE,
        Duration::from_millis(100),
        || kubectl.run(&["get", "--raw", "/readyz"]).ok(),
    )?;
    Ok(())
}

/// Starts the controllers, and the scheduler where there are nodes. Before the API server is ready both would end: their roles would not exist yet.
pub(super) fn start_controllers(level: Level, tools: &Tools, daemons: &mut Daemons) -> Result<()> {
    let netns = level.netns();
    daemons.start(
        "kube-controller-manager",
        &netns,
        &tools.path("kube-controller-manager"),
        &controller_manager(level),
    )?;
    if level.has_nodes() {
        daemons.start(
            "kube-scheduler",
            &netns,
            &tools.path("kube-scheduler"),
            &scheduler(level),
        )?;
    }
    Ok(())
}

fn etcd(level: Level) -> Vec<String> {
    let clients = "http://127.0.0.1:2379";
    let peers = "http://127.0.0.1:2380";
    vec![
        "--name=e2e".to_owned(),
        format!("--data-dir={}", level.folder().join("etcd").display()),
        // The data lives in memory anyway.
        "--unsafe-no-fsync".to_owned(),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=e2e={peers}"),
        "--log-level=warn".to_owned(),
    ]
}

fn api_server(level: Level, audit_policy: &Path) -> Vec<String> {
    let pki = level.pki();
    let file = |name: &str| pki.join(name).display().to_string();
    vec![
        "--etcd-servers=http://127.0.0.1:2379".to_owned(),
        "--bind-address=0.0.0.0".to_owned(),
        format!("--advertise-address={}", network::CONTROL_PLANE),
        "--secure-port=6443".to_owned(),
        format!("--service-cluster-ip-range={}", network::SERVICES),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        "--allow-privileged=true".to_owned(),
        // Webhooks named by a Service are called at its endpoints: there is no kube-proxy in this namespace.
        "--enable-aggregator-routing=true".to_owned(),
        format!("--client-ca-file={}", file("ca.crt")),
        format!("--tls-cert-file={}", file("apiserver.crt")),
        format!("--tls-private-key-file={}", file("apiserver.key")),
        format!("--kubelet-certificate-authority={}", file("ca.crt")),
        format!("--kubelet-client-certificate={}", file("apiserver-kubelet-client.crt")),
        format!("--kubelet-client-key={}", file("apiserver-kubelet-client.key")),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
        format!("--service-account-key-file={}", file("sa.pub")),
        format!("--service-account-signing-key-file={}", file("sa.key")),
        format!("--requestheader-client-ca-file={}", file("front-proxy-ca.crt")),
        "--requestheader-allowed-names=front-proxy-client".to_owned(),
        "--requestheader-username-headers=X-Remote-User".to_owned(),
        "--requestheader-group-headers=X-Remote-Group".to_owned(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
        format!("--proxy-client-cert-file={}", file("front-proxy-client.crt")),
        format!("--proxy-client-key-file={}", file("front-proxy-client.key")),
        format!("--audit-policy-file={}", audit_policy.display()),
        format!("--audit-log-path={}", level.audit_log().display()),
        // The log is what scenarios judge by: an event must be there when its request has been answered, and none may be rotated away.
        "--audit-log-mode=blocking".to_owned(),
        "--audit-log-maxsize=4096".to_owned(),
        "--profiling=false".to_owned(),
        "--v=1".to_owned(),
    ]
}

fn controller_manager(level: Level) -> Vec<String> {
    let pki = level.pki();
    let file = |name: &str| pki.join(name).display().to_string();
    let mut arguments = component(level, "kube-controller-manager");
    arguments.extend([
        "--use-service-account-credentials=true".to_owned(),
        format!("--service-account-private-key-file={}", file("sa.key")),
        format!("--root-ca-file={}", file("ca.crt")),
        format!("--cluster-signing-cert-file={}", file("ca.crt")),
        format!("--cluster-signing-key-file={}", file("ca.key")),
        format!("--requestheader-client-ca-file={}", file("front-proxy-ca.crt")),
        "--node-monitor-period=2s".to_owned(),
        "--node-monitor-grace-period=20s".to_owned(),
    ]);
    arguments
}

fn scheduler(level: Level) -> Vec<String> {
    component(level, "kube-scheduler")
}

/// Flags that both have.
fn component(level: Level, name: &str) -> Vec<String> {
    let kubeconfig = level.pki().join(format!("{name}.kubeconfig"));
    let kubeconfig = kubeconfig.display();
    vec![
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        "--authentication-tolerate-lookup-failure=true".to_owned(),
        "--leader-elect=false".to_owned(),
        // The default of 20 a second makes the start of two dozen controllers last five.
        "--kube-api-qps=500".to_owned(),
        "--kube-api-burst=1000".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        "--profiling=false".to_owned(),
        "--v=1".to_owned(),
    ]
}

/// Who did what to which object, and for Leases the objects themselves.
fn audit_policy() -> String {
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            { "level": "None", "nonResourceURLs": ["/readyz*", "/livez*", "/healthz*", "/openapi*", "/version"] },
            { "level": "RequestResponse", "resources": [{ "group": "coordination.k8s.io", "resources": ["leases"] }] },
            { "level": "Metadata" },
        ],
    })
    .to_string()
}
