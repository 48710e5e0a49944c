//! A door from the machine into a cluster's network namespace, on the machine's loopback only.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::Cluster;
use super::network;
use crate::machine::netns::NetNamespace;
use crate::progress::line;

// === impl Cluster ===

impl Cluster {
    /// Where a target can be reached from the control plane's namespace: `HOST:PORT` as it is, `SERVICE.NAMESPACE:PORT` by the first ready endpoint, since
    /// no kube-proxy translates a Service's address there.
    pub(crate) fn resolve(&self, target: &str) -> Result<SocketAddr> {
        if let Ok(address) = target.parse() {
            return Ok(address);
        }
        let (service, port) = target
            .rsplit_once(':')
            .with_context(|| format!("`{target}` is neither ADDRESS:PORT nor SERVICE.NAMESPACE:PORT"))?;
        let (name, namespace) = service.split_once('.').unwrap_or((service, "default"));
        let selector = format!("kubernetes.io/service-name={name}");
        let slices = self.kubectl.json(&[
            "get",
            "endpointslices",
            "--namespace",
            namespace,
            "--selector",
            &selector,
        ])?;
        let ready = slices["items"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten());
        let address = ready
            .filter(|endpoint| endpoint["conditions"]["ready"] != false)
            .find_map(|endpoint| endpoint["addresses"][0].as_str());
        let address =
            address.with_context(|| format!("the Service {name} in namespace {namespace} has no ready endpoint"))?;
        format!("{address}:{port}")
            .parse()
            .with_context(|| format!("`{address}:{port}` is no address"))
    }

    /// Forwards connections until the program is ended.
    pub(crate) fn forward(&self, port: u16, target: SocketAddr) -> Result<()> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).with_context(|| format!("listening on 127.0.0.1:{port}"))?;
        line(&format!(
            "127.0.0.1:{port} leads to {target} in {} (the control plane is {}); Ctrl-C ends it",
            self.level,
            network::CONTROL_PLANE
        ));
        for client in listener.incoming() {
            let client = client.context("accepting a connection")?;
            let netns = self.level.netns();
            thread::spawn(move || {
                if let Err(error) = serve(&netns, client, target) {
                    line(&format!("a connection to {target} failed: {error:#}"));
                }
            });
        }
        Ok(())
    }
}

/// Carries bytes both ways until both sides have ended. A socket belongs to the namespace in which it was opened, wherever it is used later.
fn serve(netns: &NetNamespace, client: TcpStream, target: SocketAddr) -> Result<()> {
    let server = netns.run(|| Ok(TcpStream::connect_timeout(&target, Duration::from_secs(5))?))?;
    let (mut to_server, mut from_server) = (server.try_clone()?, server);
    let (mut to_client, mut from_client) = (client.try_clone()?, client);
    let upstream = thread::spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    });
    let _ = io::copy(&mut from_server, &mut to_client);
    let _ = to_client.shutdown(Shutdown::Write);
    let _ = upstream.join();
    Ok(())
}
