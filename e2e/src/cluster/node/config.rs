//! The files a node's daemons read. JSON where the reader takes YAML.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::json;

use super::Plan;
use crate::cluster::network;

/// The image of the containers that hold pods' namespaces.
pub(crate) const PAUSE_IMAGE: &str = "localhost/pause:1";

/// Writes all of them below the node's `etc`.
pub(super) fn write(plan: &Plan) -> Result<()> {
    let etc = plan.node.folder(plan.level).join("etc");
    for (name, content) in [
        ("containerd.toml", containerd(&etc)),
        ("cni/10-e2e.conflist", cni(plan)),
        ("resolv.conf", String::new()),
        ("kubelet.yaml", kubelet(plan, &etc)),
        ("kube-proxy.yaml", kube_proxy(plan)),
    ] {
        let path = etc.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        }
        fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// `restrict_oom_score_adj`: without `CAP_SYS_RESOURCE` no container could be given a lower score than its parent's.
fn containerd(etc: &Path) -> String {
    let cni = etc.join("cni");
    let cni = cni.display();
    let off: Vec<String> = [
        "snapshotter.v1.aufs",
        "snapshotter.v1.btrfs",
        "snapshotter.v1.zfs",
        "snapshotter.v1.devmapper",
        "tracing.processor.v1.otlp",
        "internal.v1.tracing",
    ]
    .iter()
    .map(|name| format!("\"io.containerd.{name}\""))
    .collect();
    format!(
        r#"version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
disabled_plugins = [{off}]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{cni}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
"#,
        off = off.join(", "),
    )
}

/// Each pod hangs on the node by a cable of its own and is reached by routes.
fn cni(plan: &Plan) -> String {
    json!({
        "cniVersion": "1.0.0",
        "name": "e2e",
        "plugins": [{
            "type": "ptp",
            "ipMasq": false,
            "mtu": 1500,
            "ipam": {
                "type": "host-local",
                "ranges": [[{ "subnet": plan.node.pod_cidr() }]],
                "routes": [{ "dst": "0.0.0.0/0" }],
                "dataDir": "/run/cni-ipam",
            },
        }],
    })
    .to_string()
}

fn kubelet(plan: &Plan, etc: &Path) -> String {
    let pki = plan.level.pki();
    let name = plan.node.name();
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": true, "cacheTTL": "2m" },
            "x509": { "clientCAFile": pki.join("ca.crt") },
        },
        "authorization": { "mode": "Webhook" },
        "tlsCertFile": pki.join(format!("{name}.crt")),
        "tlsPrivateKeyFile": pki.join(format!("{name}.key")),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", plan.node.cgroup(plan.level)),
        "failCgroupV1": false,
        "failSwapOn": false,
        "clusterDNS": [network::DNS_SERVICE],
        "clusterDomain": "cluster.local",
        "resolvConf": etc.join("resolv.conf"),
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        // The disk behind is a tmpfs of ours; pressure on it is no matter of the node.
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
            "imagefs.inodesFree": "0%",
        },
        // No image can be fetched again.
        "imageGCHighThresholdPercent": 100,
        "imageMinimumGCAge": "24h",
        "makeIPTablesUtilChains": false,
        "volumePluginDir": plan.node.folder(plan.level).join("volume-plugins"),
        "nodeStatusUpdateFrequency": "4s",
        "nodeLeaseDurationSeconds": 20,
        "syncFrequency": "30s",
        "registerNode": true,
    })
    .to_string()
}

/// Settings of connection tracking are zero because they belong to the initial namespace and cannot be written from a node's.
fn kube_proxy(plan: &Plan) -> String {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": { "kubeconfig": plan.level.pki().join("kube-proxy.kubeconfig") },
        "clusterCIDR": network::PODS,
        "hostnameOverride": plan.node.name(),
        "bindAddress": plan.node.address(),
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "conntrack": { "maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s" },
    })
    .to_string()
}
