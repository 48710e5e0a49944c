//! The composition root: reads top to bottom as the start-up order.
//!
//! Two runtimes: leadership has a thread of its own, this process's main thread, so that nothing delays a renewal;
//! everything else runs on the workers.

use std::{process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context as _;
use futures::FutureExt as _;
use kube::Client;
use tokio::runtime::{Builder, Runtime};
use tower::layer::util::Identity;

use crate::{
    args::{Args, Config},
    clock::{Clock, Moment},
    controllers::{balancer, console, materialize},
    kubernetes::{
        client::{self, Bounds},
        retry::{self, Verdict},
    },
    leadership::{Candidacy, FencedClient, LeaderTask, Leadership, Signals},
    telemetry::{self, Board, Metrics, logging, server},
    webhook::registration::{self, RegistrationError, register_crds},
};

/// How long tasks may take to end when the process ends.
const RUNTIME_BOUND: Duration = Duration::from_millis(500);
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

/// Runs the operator to its end.
pub fn run(args: Args) -> ExitCode {
    match run_to_the_end(args) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            report_fatal(&error);
            ExitCode::FAILURE
        }
    }
}

/// Prints what clap has to say: help and version with status 0, usage errors with status 2.
pub fn usage(error: &clap::Error) -> ExitCode {
    // There is nobody to tell that the terminal is gone.
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

fn run_to_the_end(args: Args) -> anyhow::Result<u8> {
    // Signals first: from here on none is lost, and none ends the process before its shutdown.
    let leadership_runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .context("can't start a runtime")?;
    let signals = leadership_runtime
        .block_on(async { Signals::install() })
        .context("can't handle signals")?;

    let kubernetes_context = args.process.kubernetes_context.clone();
    let config = Config::new(args, std::env::var("HOSTNAME").ok().as_deref())?;
    let workers = Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("can't start a runtime")?;
    let traces = workers.block_on(async { logging::init(&config.telemetry) })?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        identity = config.identity,
        "orchestratord starts"
    );

    let clock = Clock::boottime();
    let board = Board::new(config.identity.clone(), clock.clone(), Metrics::new(clock.clone())?);
    serve(&workers, &config, &board)?;
    refuse_what_is_not_there_yet(&config)?;

    let leadership = Leadership {
        clock: clock.clone(),
        workers: workers.handle().clone(),
        observer: Arc::new(board.clone()),
        webhook: None,
        seed: rand::random(),
    };
    let startup = async move {
        let candidacy = start_up(&kubernetes_context, config, &board, &clock).await;
        candidacy.inspect_err(report_fatal)
    };
    let code = leadership_runtime.block_on(leadership.run(signals, startup));

    if code < FORCED {
        traces.shutdown();
    }
    workers.shutdown_timeout(RUNTIME_BOUND);
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

fn refuse_what_is_not_there_yet(config: &Config) -> anyhow::Result<()> {
    anyhow::ensure!(
        config.webhook.is_none(),
        "--install-v1-crd is not supported yet: this version has no conversion webhook; start it without that flag"
    );
    Ok(())
}

/// Everything between the first moment and the first campaign. It may wait for the API server without end.
async fn start_up(kubernetes_context: &str, config: Config, board: &Board, clock: &Clock) -> anyhow::Result<Candidacy> {
    board.starting("looking for the Kubernetes configuration");
    let kubernetes = client::configuration(kubernetes_context).await?;
    let config = Arc::new(config.in_namespace(&kubernetes.default_namespace));
    tracing::info!(namespace = config.operator_namespace, server = %kubernetes.cluster_url, "found the Kubernetes configuration");
    let registrant = registration::Registrant {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: clock.timestamp(),
        namespace: config.operator_namespace.clone(),
    };
    register(&client::build(&kubernetes)?, &config, registrant, board, clock).await?;

    let for_the_lease = kubernetes.clone();
    let (clock, metrics) = (clock.clone(), board.metrics().clone());
    Ok(Candidacy {
        identity: config.identity.clone(),
        namespace: config.operator_namespace.clone(),
        lease_client: Box::new(move || Ok(client::build_with(&for_the_lease, Bounds::LEASE, &Identity::new())?)),
        leader_client: Arc::new(move |fence| Ok(client::build_with(&kubernetes, Bounds::DEFAULT, &fence)?)),
        gate: None,
        tasks: Arc::new(move |_, client| leader_tasks(&client, &config, &clock, &metrics)),
    })
}

/// Registers the CRDs, through any outage.
async fn register(
    client: &Client,
    config: &Config,
    registrant: registration::Registrant,
    board: &Board,
    clock: &Clock,
) -> anyhow::Result<()> {
    let options = registration::Options {
        registrant,
        conversion: None,
        additional_columns: config.additional_crd_columns.clone(),
    };
    board.starting("registering the CRDs");
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
    Ok(retry::retry(REGISTRATION, || register_crds(client, &options), judge).await?)
}

/// The leader's work: one task per controller.
fn leader_tasks(client: &FencedClient, config: &Arc<Config>, clock: &Clock, metrics: &Metrics) -> Vec<LeaderTask> {
    let gauge = metrics.clone();
    let needs_update = materialize::NeedsUpdate::new(move |resources| gauge.set_needs_update(resources));
    let observer = Some(metrics.reconcile_observer());
    let balancer = balancer::run(client.clone(), config.clone(), clock.clone(), observer.clone());
    let console = console::run(client.clone(), config.clone(), clock.clone(), observer.clone());
    let materialize = materialize::run(client.clone(), config.clone(), clock.clone(), needs_update, observer);
    vec![
        ("materialize", materialize.boxed()),
        ("balancer", balancer.boxed()),
        ("console", console.boxed()),
    ]
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
