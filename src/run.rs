//! The composition root: reads top to bottom as the start-up order.
//!
//! Two runtimes: leadership has a thread of its own, this process's main thread, so that nothing delays a renewal;
//! everything else runs on the workers.

use std::{num::NonZero, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context as _;
use clap::Parser as _;
use futures::FutureExt as _;
use kube::Client;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Mutex, watch};
use tower::layer::util::Identity;

use crate::{
    args::{Args, Config},
    clock::{Clock, Moment},
    controllers::{balancer, console, materialize},
    gate::{Own, Predecessors},
    kubernetes::{
        client::{self, Bounds},
        retry::{self, Verdict},
    },
    leadership::{Candidacy, FencedClient, LeaderTask, Leadership, Signals},
    telemetry::{self, Board, Metrics, logging, server},
    webhook::{
        certificates::SelfManaged,
        reachable,
        registration::{self, Guard, RegistrationError},
        start::Webhook,
    },
};

/// How long tasks may take to end when the process ends.
const RUNTIME_BOUND: Duration = Duration::from_millis(500);
/// The least number of worker threads: a controller that never yields must leave some to the others.
const LEAST_WORKERS: usize = 4;
/// Exit codes from here on mean that a second signal ended the process: nothing is waited for any more.
const FORCED: u8 = 128;
/// Pauses between attempts to register the CRDs, which are repeated without end (decision W8).
const REGISTRATION: retry::Bounds = retry::Bounds {
    first_pause: Duration::from_millis(250),
    longest_pause: Duration::from_secs(10),
    total: None,
};
/// How often an outage during the start-up is logged at most.
const OUTAGE_LOGGED_EVERY: Duration = Duration::from_mins(1);

/// Runs the operator, as the command line says, to its end.
pub fn run() -> ExitCode {
    match run_to_the_end() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            report_fatal(&error);
            ExitCode::FAILURE
        }
    }
}

fn run_to_the_end() -> anyhow::Result<u8> {
    // Signals first: from here on none is lost, and none ends the process before its shutdown.
    let leadership_runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .context("can't start a runtime")?;
    let signals = leadership_runtime
        .block_on(async { Signals::install() })
        .context("can't handle signals")?;
    // The one provider of cryptography for all TLS. It can't have been installed before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return Ok(usage(&error)),
    };
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let workers = Builder::new_multi_thread()
        .worker_threads(cores.max(LEAST_WORKERS))
        .enable_all()
        .build()
        .context("can't start a runtime")?;
    let code = operate(args, &leadership_runtime, signals, &workers);
    // Neither a task that never yields nor a look-up of a name that hangs holds up the end.
    workers.shutdown_timeout(RUNTIME_BOUND);
    leadership_runtime.shutdown_timeout(RUNTIME_BOUND);
    code
}

/// Prints what clap has to say: help and version with status 0, usage errors with status 2.
fn usage(error: &clap::Error) -> u8 {
    // There is nobody to tell that the terminal is gone.
    let _ = error.print();
    u8::try_from(error.exit_code()).unwrap_or(2)
}

/// Everything between the arguments and the exit code.
fn operate(args: Args, leadership_runtime: &Runtime, signals: Signals, workers: &Runtime) -> anyhow::Result<u8> {
    let kubernetes_context = args.process.kubernetes_context.clone();
    let config = Config::new(args, std::env::var("HOSTNAME").ok().as_deref())?;
    if config.node_upgrades.is_some() {
        // Silence would let GKE drain the nodes of environments that somebody relies on being moved in time.
        anyhow::bail!(
            "--enable-gcp-node-upgrade-rollout-trigger: this version has no watcher of node upgrades yet; leave the flag \
             out (chart: operator.cloudProvider.providers.gcp.nodeUpgradeRolloutTrigger.enabled=false)"
        );
    }
    let traces = workers.block_on(async { logging::init(&config.telemetry) })?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        identity = config.identity,
        "orchestratord starts"
    );

    let clock = Clock::boottime();
    let board = Board::new(config.identity.clone(), clock.clone(), Metrics::new(clock.clone())?);
    serve(workers, &config, &board)?;
    let webhook = match &config.webhook {
        Some(webhook) => Some(Webhook::start(workers.handle(), webhook, board.metrics(), &clock)?),
        None => None,
    };

    let leadership = Leadership {
        clock: clock.clone(),
        workers: workers.handle().clone(),
        observer: Arc::new(board.clone()),
        webhook: webhook.as_ref().map(|webhook| webhook.drain.clone()),
        seed: rand::random(),
    };
    let startup = async move {
        let candidacy = start_up(&kubernetes_context, config, webhook, &board, &clock).await;
        candidacy.inspect_err(report_fatal)
    };
    let code = leadership_runtime.block_on(leadership.run(signals, startup));

    if code < FORCED {
        traces.shutdown();
    }
    Ok(code)
}

/// Serves metrics, probes and the status page until the workers end.
fn serve(workers: &Runtime, config: &Config, board: &Board) -> Result<(), telemetry::Error> {
    let _in_runtime = workers.enter();
    let metrics = server::listen("--metrics-listen-address", config.metrics_listen_address)?;
    let status = server::listen("--profiling-listen-address", config.profiling_listen_address)?;
    workers.spawn(server::serve_metrics(metrics, board.clone()));
    workers.spawn(server::serve_status(status, board.clone()));
    Ok(())
}

/// Everything between the first moment and the first campaign. It may wait for the API server without end.
async fn start_up(
    kubernetes_context: &str,
    config: Config,
    webhook: Option<Webhook>,
    board: &Board,
    clock: &Clock,
) -> anyhow::Result<Candidacy> {
    board.starting("looking for the Kubernetes configuration");
    let kubernetes = client::configuration(kubernetes_context).await?;
    let config = Arc::new(config.in_namespace(&kubernetes.default_namespace));
    tracing::info!(namespace = config.operator_namespace, server = %kubernetes.cluster_url, "found the Kubernetes configuration");
    let client = client::build(&kubernetes)?;
    let blocked = register(&client, &config, webhook, board, clock).await?;
    let own = Own {
        names: std::iter::once(config.identity.clone())
            .chain(config.hostname.clone())
            .collect(),
        shows_election: config.identity_is_given,
    };
    let labels = &config.operator_pod_labels;
    let predecessors = Predecessors::new(client, &config.operator_namespace, labels, own, clock.clone());

    let for_the_lease = kubernetes.clone();
    let (clock, metrics) = (clock.clone(), board.metrics().clone());
    Ok(Candidacy {
        identity: config.identity.clone(),
        namespace: config.operator_namespace.clone(),
        lease_client: Box::new(move || Ok(client::build_with(&for_the_lease, Bounds::LEASE, &Identity::new())?)),
        leader_client: Arc::new(move |fence| Ok(client::build_with(&kubernetes, Bounds::DEFAULT, &fence)?)),
        gate: Some(Arc::new(move |_| {
            let (predecessors, blocked) = (predecessors.clone(), blocked.clone());
            async move {
                predecessors.ended().await;
                no_rival(blocked).await;
            }
            .boxed()
        })),
        tasks: Arc::new(move |_, client| leader_tasks(&client, &config, &clock, &metrics)),
    })
}

/// Registers the CRDs, through any outage, and keeps them from then on. Tells whether another release's webhook serves
/// them.
async fn register(
    client: &Client,
    config: &Config,
    webhook: Option<Webhook>,
    board: &Board,
    clock: &Clock,
) -> anyhow::Result<watch::Receiver<bool>> {
    let options = registration::Options {
        registrant: registration::Registrant {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: clock.timestamp(),
            namespace: config.operator_namespace.clone(),
        },
        conversion: config.webhook.as_ref().map(|webhook| registration::Conversion {
            service_name: webhook.service_name.clone(),
            service_namespace: webhook.service_namespace.clone(),
            service_port: webhook.service_port,
        }),
        additional_columns: config.additional_crd_columns.clone(),
    };
    let (own, sightings, found) = match webhook {
        Some(Webhook {
            own, sightings, found, ..
        }) => (Some(own), sightings, found),
        None => (None, watch::Sender::default(), None),
    };
    if let (Some(found), Some(webhook)) = (found, &config.webhook) {
        let secret = webhook.cert_secret.clone().unwrap_or_default();
        let namespace = config.operator_namespace.clone();
        let issuing = SelfManaged::new(
            client.clone(),
            clock.clone(),
            namespace,
            secret,
            webhook.dns_name(),
            found,
        );
        tokio::spawn(issuing.run());
    }
    let (blocked, is_blocked) = watch::channel(false);
    let draining = board.clone();
    let mut links = registration::Links {
        own,
        sightings,
        blocked,
        draining: Arc::new(move || draining.is_draining()),
    };
    if let Some(own) = &mut links.own {
        board.starting("looking for the webhook's certificate");
        // It fails only when the process ends.
        let _ = own.wait_for(Option::is_some).await;
    }
    board.starting("registering the CRDs");
    let guard = Mutex::new(Guard::new(client.clone(), options, clock.clone(), links));
    let mut logged: Option<Moment> = None;
    let judge = |error: &RegistrationError, attempt| {
        if error.is_fatal() {
            return Verdict::GiveUp;
        }
        let text = chain(error);
        board.starting(format!("registering the CRDs, after {attempt} failed attempts: {text}"));
        let now = clock.now();
        if logged.is_none_or(|logged| now.saturating_since(logged) >= OUTAGE_LOGGED_EVERY) {
            logged = Some(now);
            tracing::warn!(attempt, error = text, "can't register the CRDs yet; trying again");
        }
        Verdict::Retry
    };
    retry::retry(REGISTRATION, async || guard.lock().await.register().await, judge).await?;
    tokio::spawn(guard.into_inner().run());
    Ok(is_blocked)
}

/// Waits until no other release's webhook serves the CRD (decision W9).
async fn no_rival(mut blocked: watch::Receiver<bool>) {
    if *blocked.borrow() {
        tracing::error!("the controllers don't start while the webhook of another release serves the CRD");
    }
    // It fails only when the process ends.
    let _ = blocked.wait_for(|blocked| !blocked).await;
}

/// The leader's work: one task per controller.
fn leader_tasks(client: &FencedClient, config: &Arc<Config>, clock: &Clock, metrics: &Metrics) -> Vec<LeaderTask> {
    let gauge = metrics.clone();
    let needs_update = materialize::NeedsUpdate::new(move |resources| gauge.set_needs_update(resources));
    let observer = Some(metrics.reconcile_observer());
    let balancer = balancer::run(client.clone(), config.clone(), clock.clone(), observer.clone());
    let console = console::run(client.clone(), config.clone(), clock.clone(), observer.clone());
    let materialize = materialize::run(client.clone(), config.clone(), clock.clone(), needs_update, observer);
    let mut tasks = vec![
        ("materialize", materialize.boxed()),
        ("balancer", balancer.boxed()),
        ("console", console.boxed()),
    ];
    if config.webhook.is_some() {
        tasks.push((
            "webhook-reachable",
            reachable::watch(client.client(), metrics.clone()).boxed(),
        ));
    }
    #[cfg(feature = "failpoints")]
    tasks.extend(crate::failpoints::leader_tasks());
    tasks
}

/// An error with its causes, in one line.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[expect(
    clippy::print_stderr,
    reason = "the last word of a process whose log may not be set up"
)]
fn report_fatal(error: &anyhow::Error) {
    eprintln!("orchestratord: fatal: {error:#}");
}
