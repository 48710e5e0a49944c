//! The stand-in for environmentd.
//!
//! `args`, `sizes`, `listeners` and `config` say what it accepts, `leader`, `faults`, `routes`, `users` and `statements` decide, `access`,
//! `catalog` and `replicas` talk to Kubernetes, `api` and `sql` are its ports. This file is the main loop. There is no database in here.

mod access;
mod api;
mod args;
mod catalog;
mod config;
mod faults;
mod leader;
mod listeners;
mod replicas;
mod routes;
mod sizes;
mod sql;
mod state;
mod statements;
mod users;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Api, Client, Resource as _};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::End;
use crate::host::Host;
use crate::net::{self, asked_to_end, bind};
use catalog::{Catalog, Write};
use config::Config;
use faults::{Document, KEY};
use leader::{Boot, Deployment, Sight};
use state::{Command, State};

/// How often the clock is looked at.
const TICK: Duration = Duration::from_millis(100);
/// How often catalogue and faults are read.
const POLL: Duration = Duration::from_millis(500);
/// How many conflicts in a row are too many.
const ATTEMPTS: u32 = 20;

/// Runs until the process is fenced, promoted, asked to end, or fails.
pub(crate) async fn run(arguments: &[String], host: &Host) -> anyhow::Result<End> {
    let config = Config::load(arguments, host)?;
    replicas::check(&config.args)?;
    let mut environmentd = match Environmentd::boot(config, host).await? {
        Ok(environmentd) => environmentd,
        Err(end) => return Ok(end),
    };
    tokio::select! {
        end = environmentd.live() => end,
        ended = asked_to_end() => ended.map(|()| End::Exit(0)),
    }
}

/// A process that has found its place.
struct Environmentd<'a> {
    host: &'a Host,
    client: Client,
    namespace: String,
    catalog: Catalog,
    state: Arc<State>,
    commands: mpsc::UnboundedReceiver<Command>,
    ports: JoinSet<()>,
    stop: CancellationToken,
    started: Instant,
    open: bool,
}

// === impl Environmentd ===

impl<'a> Environmentd<'a> {
    /// Checks permissions, finds out from the catalogue what this process becomes, creates its clusterd, and opens the HTTP ports.
    async fn boot(config: Config, host: &'a Host) -> anyhow::Result<Result<Self, End>> {
        let started = Instant::now();
        let kubernetes = kube::Config::infer()
            .await
            .context("neither a kubeconfig nor a ServiceAccount")?;
        let namespace = host
            .variable("STANDIN_NAMESPACE")
            .map_or_else(|| kubernetes.default_namespace.clone(), str::to_owned);
        let client = Client::try_from(kubernetes)?;
        access::check(&client, &namespace).await?;
        let (prefix, generation) = (
            config.args.orchestrator_kubernetes_name_prefix.clone(),
            config.args.deploy_generation,
        );
        let set = stateful_set(&client, &namespace, &prefix, generation).await?;
        let inherited = set
            .as_ref()
            .and_then(|set| set.metadata.owner_references.clone())
            .unwrap_or_default();
        let inherited = inherited
            .into_iter()
            .map(|owner| OwnerReference {
                block_owner_deletion: None,
                ..owner
            })
            .collect();
        let catalog = Catalog::new(client.clone(), &namespace, &prefix, inherited);
        let leader = match find_place(&catalog, generation).await? {
            Boot::Leader { .. } => true,
            Boot::Standby => false,
            Boot::Fenced { by } => {
                info!(generation, by, "fenced at start");
                return Ok(Err(End::Exit(0)));
            }
        };
        info!(generation, leader, version = %config.version, "started");
        let owners: Vec<OwnerReference> = set.iter().filter_map(|set| set.owner_ref(&())).collect();
        replicas::ensure(&client, &namespace, &config.args, &owners).await?;
        if leader {
            replicas::remove_older(&client, &namespace, &config.args).await?;
        }
        let (sender, commands) = mpsc::unbounded_channel();
        let state = Arc::new(State::new(config, Deployment::new(generation, leader), sender));
        let stop = CancellationToken::new();
        let mut this = Self {
            host,
            client,
            namespace,
            catalog,
            state,
            commands,
            ports: JoinSet::new(),
            stop,
            started,
            open: false,
        };
        this.read_faults().await?;
        this.open_http().await?;
        Ok(Ok(this))
    }

    async fn live(&mut self) -> anyhow::Result<End> {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut polled = Instant::now();
        loop {
            tokio::select! {
                Some(Command::Promote) = self.commands.recv() => return self.promote().await,
                _ = tick.tick() => {}
            }
            self.pass_time().await?;
            if polled.elapsed() >= POLL {
                polled = Instant::now();
                self.read_faults().await?;
                if let Some(end) = self.read_catalog().await? {
                    return Ok(end);
                }
            }
        }
    }

    /// Opens the SQL ports and ends the catch-up when it is time for either.
    async fn pass_time(&mut self) -> anyhow::Result<()> {
        let since_start = self.started.elapsed();
        let (open, caught_up) = {
            let book = self.state.book();
            (book.faults().open(since_start), book.faults().caught_up(since_start))
        };
        if caught_up {
            self.state.deployment().caught_up();
        }
        if open && !self.open {
            self.open = true;
            self.open_sql().await?;
        }
        Ok(())
    }

    /// Writes this generation as leader and starts anew, with what was ordered to go wrong on the way.
    async fn promote(&mut self) -> anyhow::Result<End> {
        let generation = self.state.config.args.deploy_generation;
        let after = self.state.book().faults().after_promote.clone();
        let mut written = false;
        for _ in 0..ATTEMPTS {
            let (mut content, read) = self.catalog.load().await?;
            if let Some(by) = content.leader.filter(|leader| *leader > generation) {
                info!(generation, by, "fenced while promoting");
                self.close().await;
                return Ok(End::Exit(0));
            }
            let crashes = content.crashes.entry(generation).or_default();
            if *crashes < after.crash_before_durable {
                *crashes += 1;
                if self.catalog.store(&content, read).await? == Write::Done {
                    self.close().await;
                    bail!("crashed before the promotion was written, as ordered");
                }
                continue;
            }
            if *crashes == 0 {
                content.crashes.remove(&generation);
            }
            content.leader = Some(generation);
            if self.catalog.store(&content, read).await? == Write::Done {
                written = true;
                break;
            }
        }
        if !written {
            bail!("the catalogue could not be written: {ATTEMPTS} conflicts");
        }
        info!(generation, "promoted");
        self.close().await;
        sleep(Duration::from_millis(after.refuse_ms)).await;
        if after.crash {
            bail!("crashed after the promotion was written, as ordered");
        }
        Ok(End::Restart)
    }

    /// Lets the open requests end, then closes all ports.
    async fn close(&mut self) {
        self.stop.cancel();
        while self.ports.join_next().await.is_some() {}
    }

    async fn read_catalog(&self) -> anyhow::Result<Option<End>> {
        let generation = self.state.config.args.deploy_generation;
        let (content, _) = match self.catalog.load().await {
            Ok(loaded) => loaded,
            // An API server that is away is no reason to end; the real one only loses sight of its replicas then.
            Err(error) => {
                warn!(error = format!("{error:#}"), "cannot read the catalogue");
                return Ok(None);
            }
        };
        let sight = self.state.deployment().observe(content.leader);
        match sight {
            Sight::Fine => Ok(None),
            Sight::Fenced { by } => {
                info!(generation, by, "fenced");
                Ok(Some(End::Exit(0)))
            }
            Sight::Promoted => Ok(Some(End::Restart)),
            Sight::Lost => bail!(
                "the catalogue says leader {:?}, this is generation {generation}",
                content.leader
            ),
        }
    }

    /// Takes over faults. No `ConfigMap` means none; a `ConfigMap` that cannot be understood ends the process, for a test would wait in vain.
    async fn read_faults(&self) -> anyhow::Result<()> {
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), &self.namespace);
        let args = &self.state.config.args;
        let own = format!("{}faults", args.orchestrator_kubernetes_name_prefix);
        for name in [own.as_str(), "standin-faults"] {
            let found = match api.get_opt(name).await {
                Ok(found) => found,
                Err(error) => {
                    warn!(%error, name, "cannot read the faults");
                    return Ok(());
                }
            };
            let Some(map) = found else { continue };
            let text = map
                .data
                .as_ref()
                .and_then(|data| data.get(KEY))
                .with_context(|| format!("ConfigMap {name} has no key {KEY}"))?;
            let document = Document::parse(text).with_context(|| format!("ConfigMap {name}, key {KEY}"))?;
            self.take_faults(&document);
            return Ok(());
        }
        self.take_faults(&Document::default());
        Ok(())
    }

    fn take_faults(&self, document: &Document) {
        let faults = document.of(self.state.config.args.deploy_generation);
        if self.state.book().set(faults) {
            info!(?faults, "faults");
        }
    }

    async fn open_http(&mut self) -> anyhow::Result<()> {
        let args = &self.state.config.args;
        for listener in self.state.config.listeners.http.clone() {
            let socket = bind(self.host, &listener.addr).await?;
            let tls = self.acceptor(listener.tls)?;
            let handler = api::handler(listener, Arc::clone(&self.state));
            self.ports
                .spawn(crate::http::serve(socket, tls, handler, self.stop.clone()));
        }
        let pubsub = bind(self.host, &args.internal_persist_pubsub_listen_addr).await?;
        let stop = self.stop.clone();
        self.ports.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = async { while pubsub.accept().await.is_ok() {} } => {}
            }
        });
        if let (Some(path), Some(every)) = (&args.config_sync_file_path, args.config_sync_loop_interval) {
            let (path, state, stop) = (self.host.file(path), Arc::clone(&self.state), self.stop.clone());
            self.ports.spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = sync_parameters(path, every, &state) => {}
                }
            });
        }
        Ok(())
    }

    async fn open_sql(&mut self) -> anyhow::Result<()> {
        for listener in self.state.config.listeners.sql.clone() {
            let socket = bind(self.host, &listener.addr).await?;
            let tls = self.acceptor(listener.tls)?;
            self.ports.spawn(sql::serve(
                socket,
                listener,
                tls,
                Arc::clone(&self.state),
                self.stop.clone(),
            ));
        }
        info!("ready");
        Ok(())
    }

    fn acceptor(&self, tls: bool) -> anyhow::Result<Option<tokio_rustls::TlsAcceptor>> {
        let args = &self.state.config.args;
        match (tls, &args.tls_cert, &args.tls_key) {
            (true, Some(certificate), Some(key)) => {
                Ok(Some(net::acceptor(&self.host.file(certificate), &self.host.file(key))?))
            }
            _ => Ok(None),
        }
    }
}

/// Reads the catalogue until this process has its place in it.
async fn find_place(catalog: &Catalog, generation: u64) -> anyhow::Result<Boot> {
    for _ in 0..ATTEMPTS {
        let (mut content, read) = catalog.load().await?;
        let place = leader::boot(generation, content.leader);
        if place != (Boot::Leader { claim: true }) {
            return Ok(place);
        }
        content.leader = Some(generation);
        if catalog.store(&content, read).await? == Write::Done {
            return Ok(place);
        }
    }
    bail!("the catalogue could not be written: {ATTEMPTS} conflicts")
}

/// This generation's own `StatefulSet`, where there is one.
async fn stateful_set(
    client: &Client,
    namespace: &str,
    prefix: &str,
    generation: u64,
) -> anyhow::Result<Option<StatefulSet>> {
    let name = format!("{prefix}environmentd-{generation}");
    let api = Api::<StatefulSet>::namespaced(client.clone(), namespace);
    api.get_opt(&name)
        .await
        .with_context(|| format!("cannot read StatefulSet {name}"))
}

async fn sync_parameters(path: PathBuf, every: Duration, state: &State) {
    let mut tick = interval(every);
    loop {
        tick.tick().await;
        match crate::settings::parameters(&path) {
            Ok(parameters) => state.set_parameters(parameters),
            // The ConfigMap behind it is optional.
            Err(error) => warn!(error = format!("{error:#}"), "system parameters stay as they are"),
        }
    }
}
