#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
//! Whole replicas against the stand-in for an API server: signals, terms, shutdown.

use std::sync::Mutex;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use kube::client::Body;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tower::{BoxError, Layer as _, service_fn};

use super::super::standin::{ApiServer, Line};
use super::super::{FencedClient, LeaderTask, Observer, Permit, Transition, WebhookDrain};
use super::*;
use crate::clock::{Clock, Moment};

type Work = Arc<dyn Fn(Permit, FencedClient) -> Vec<LeaderTask> + Send + Sync>;

/// What happened, in order.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn write(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn position(&self, line: &str) -> usize {
        let lines = self.lines();
        lines
            .iter()
            .position(|known| known == line)
            .unwrap_or_else(|| panic!("{line:?} is not in {lines:#?}"))
    }
}

impl Observer for Diary {
    fn transition(&self, transition: &Transition) {
        self.write(format!("{}→{} {}", transition.from, transition.to, transition.cause));
    }
    fn is_leader(&self, leads: bool) {
        self.write(format!("is_leader {leads}"));
    }
    fn reset_leader_gauges(&self) {
        self.write("reset_leader_gauges");
    }
    fn renewal(&self, _took: Duration) {}
    fn renewed_at(&self, _at: Option<Moment>) {}
    fn holder(&self, _holder: Option<&str>) {}
    fn task_left_behind(&self, task: &'static str) {
        self.write(format!("left behind {task}"));
    }
}

/// A webhook that ends at once, or never.
struct Webhook {
    diary: Diary,
    hangs: bool,
}

impl WebhookDrain for Webhook {
    fn linger(&self) {
        self.diary.write("linger");
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.diary.write("close");
        if self.hangs {
            std::future::pending().boxed()
        } else {
            std::future::ready(()).boxed()
        }
    }
}

/// Writes to the diary when it is dropped: a task that was aborted and has really gone.
struct Bell(Diary, &'static str);

impl Drop for Bell {
    fn drop(&mut self) {
        self.0.write(self.1);
    }
}

struct World {
    clock: Clock,
    server: ApiServer,
    diary: Diary,
}

struct Replica {
    line: Line,
    signals: mpsc::UnboundedSender<Termination>,
    end: JoinHandle<u8>,
}

/// A replica to be started, with a choice of parts.
struct Parts {
    identity: &'static str,
    webhook: Option<Arc<dyn WebhookDrain>>,
    work: Work,
    gate: Option<super::super::Gate>,
    connection_hangs: bool,
}

impl World {
    fn new() -> Self {
        let clock = Clock::tokio();
        World {
            server: ApiServer::new(&clock),
            clock,
            diary: Diary::default(),
        }
    }

    /// Work that runs until it is aborted.
    fn forever(&self) -> Work {
        let diary = self.diary.clone();
        Arc::new(move |permit, _client| {
            diary.write(format!("start of term {}", permit.term()));
            let bell = Bell(diary.clone(), "end of a task");
            let task = async move {
                let _bell = bell;
                std::future::pending::<()>().await;
            };
            vec![("materialize", task.boxed())]
        })
    }

    fn parts(&self) -> Parts {
        Parts {
            identity: "pod-1",
            webhook: None,
            work: self.forever(),
            gate: None,
            connection_hangs: false,
        }
    }

    fn webhook(&self, hangs: bool) -> Arc<dyn WebhookDrain> {
        Arc::new(Webhook {
            diary: self.diary.clone(),
            hangs,
        })
    }

    fn leadership(&self, webhook: Option<Arc<dyn WebhookDrain>>, workers: Handle) -> Leadership {
        Leadership {
            clock: self.clock.clone(),
            workers,
            observer: Arc::new(self.diary.clone()),
            webhook,
            seed: 3,
        }
    }

    fn candidacy(parts: &Parts, line: &Line) -> Candidacy {
        let line = line.clone();
        let hangs = parts.connection_hangs;
        Candidacy {
            identity: parts.identity.to_owned(),
            namespace: "ns".to_owned(),
            lease_client: Box::new(move || Ok(line.client())),
            leader_client: Arc::new(move |fence| {
                let connection = service_fn(move |_: Request<Body>| async move {
                    if hangs {
                        std::future::pending::<()>().await;
                    }
                    Ok::<_, BoxError>(Response::new(Body::from(b"{}".to_vec())))
                });
                Ok(kube::Client::new(fence.layer(connection), "ns"))
            }),
            gate: parts.gate.clone(),
            tasks: parts.work.clone(),
        }
    }

    fn start(&self, parts: Parts) -> Replica {
        let line = self.server.line();
        let candidacy = Self::candidacy(&parts, &line);
        self.start_with(parts.webhook, line, async move { Ok(candidacy) })
    }

    fn start_with(
        &self,
        webhook: Option<Arc<dyn WebhookDrain>>,
        line: Line,
        startup: impl Future<Output = anyhow::Result<Candidacy>> + Send + 'static,
    ) -> Replica {
        let (signals, receiver) = mpsc::unbounded_channel();
        let leadership = self.leadership(webhook, Handle::current());
        let end = tokio::task::spawn_local(leadership.run(Signals::from_channel(receiver), startup));
        Replica { line, signals, end }
    }

    fn seconds(&self) -> f64 {
        self.clock.now().since_start().as_secs_f64()
    }
}

impl Replica {
    fn signal(&self) {
        self.signals.send(Termination::Sigterm).unwrap();
    }

    async fn end(self) -> u8 {
        self.end.await.unwrap()
    }
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_leader_that_is_told_to_end_releases_and_exits_with_0() {
    let world = World::new();
    let replica = world.start(world.parts());
    seconds(5).await;
    assert_eq!(world.server.holder().as_deref(), Some("pod-1"));
    replica.signal();
    assert_eq!(replica.end().await, 0);
    assert_eq!(world.server.holder(), None);
    assert!(world.seconds() < 5.1, "nothing had to be waited for");
    let expected = [
        "Starting→Candidate ready",
        "is_leader true",
        "Candidate→Leader acquired",
        "start of term 0",
        "is_leader false",
        "reset_leader_gauges",
        "Leader→Releasing signal",
        "end of a task",
        "Releasing→Exited released",
    ];
    assert_eq!(world.diary.lines(), expected);
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn the_webhook_lingers_after_the_release_and_then_closes() {
    let world = World::new();
    let replica = world.start(Parts {
        webhook: Some(world.webhook(false)),
        ..world.parts()
    });
    seconds(5).await;
    replica.signal();
    seconds(1).await;
    assert_eq!(world.server.holder(), None, "the release does not wait for the webhook");
    assert_eq!(replica.end().await, 0);
    let phases = [
        "Leader→Releasing signal",
        "Releasing→Lingering released",
        "Lingering→Closing linger_over",
        "Closing→Exited closed",
    ];
    assert!(phases.map(|phase| world.diary.position(phase)).is_sorted());
    assert!(
        (10.0..10.1).contains(&world.seconds()),
        "lingers for 5 s, ended at {}",
        world.seconds()
    );
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_shutdown_ends_within_15_seconds_whatever_hangs() {
    let world = World::new();
    let replica = world.start(Parts {
        webhook: Some(world.webhook(true)),
        ..world.parts()
    });
    seconds(5).await;
    replica.line.cut();
    replica.signal();
    assert_eq!(replica.end().await, 0);
    assert!(
        world.seconds() <= 20.001,
        "ended {} s after the signal",
        world.seconds() - 5.0
    );
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_write_that_is_still_open_keeps_the_lease_from_being_released() {
    let world = World::new();
    let writer: Work = Arc::new(|_permit, client| {
        let write = async move {
            let api = Api::<ConfigMap>::namespaced(client.client(), "ns");
            let _ = api.create(&PostParams::default(), &ConfigMap::default()).await;
            std::future::pending::<()>().await;
        };
        vec![("materialize", write.boxed())]
    });
    let replica = world.start(Parts {
        work: writer,
        connection_hangs: true,
        ..world.parts()
    });
    seconds(1).await;
    replica.signal();
    assert_eq!(replica.end().await, 0);
    assert_eq!(world.server.holder().as_deref(), Some("pod-1"), "the Lease expires");
    assert!(world.seconds() <= 6.001);
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_standby_ends_without_a_write() {
    let world = World::new();
    world
        .server
        .edit(|lease| lease["spec"] = json!({"holderIdentity": "pod-0", "renewTime": "2026-01-01T00:00:00.000000Z"}));
    let replica = world.start(Parts {
        webhook: Some(world.webhook(false)),
        ..world.parts()
    });
    seconds(5).await;
    replica.signal();
    assert_eq!(replica.end().await, 0);
    assert!(
        world
            .server
            .seen()
            .iter()
            .all(|seen| ["get", "list", "watch"].contains(&seen.verb))
    );
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_signal_cuts_a_start_up_that_waits() {
    let world = World::new();
    let waiting = std::future::pending();
    let replica = world.start_with(None, world.server.line(), waiting);
    seconds(60).await;
    replica.signal();
    assert_eq!(replica.end().await, 0);
    assert!(world.seconds() < 60.1);
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_start_up_that_fails_exits_with_1() {
    let world = World::new();
    let replica = world.start_with(None, world.server.line(), async { anyhow::bail!("no such flag") });
    assert_eq!(replica.end().await, 1);
    assert_eq!(world.diary.lines(), ["Starting→Exited startup_failed"]);
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_second_signal_exits_at_once_without_a_release() {
    let world = World::new();
    let replica = world.start(Parts {
        webhook: Some(world.webhook(true)),
        ..world.parts()
    });
    seconds(5).await;
    replica.line.cut();
    replica.signal();
    seconds(1).await;
    replica.signals.send(Termination::Sigint).unwrap();
    assert_eq!(replica.end().await, 130);
    assert!(world.seconds() < 6.1);
    assert_eq!(world.server.holder().as_deref(), Some("pod-1"));
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_lost_term_ends_the_tasks_and_a_later_one_starts_them_anew() {
    let world = World::new();
    let replica = world.start(world.parts());
    seconds(5).await;
    world
        .server
        .edit(|lease| lease["spec"]["holderIdentity"] = json!("not-a-real-candidate"));
    seconds(3).await;
    let lost = world.diary.position("end of a task");
    assert!(world.diary.position("is_leader false") < lost);
    assert!(!replica.end.is_finished(), "the process goes on");
    seconds(20).await;
    assert_eq!(
        (world.server.holder().as_deref(), world.server.transitions()),
        (Some("pod-1"), Some(1))
    );
    assert!(world.diary.position("start of term 1") > lost);
    replica.signal();
    assert_eq!(replica.end().await, 0);
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_task_that_ends_or_panics_ends_the_process_with_1_after_a_release() {
    for panics in [false, true] {
        let world = World::new();
        let work: Work = Arc::new(move |_permit, _client| {
            let task = async move {
                tokio::time::sleep(Duration::from_secs(3)).await;
                assert!(!panics, "as the test wants it");
            };
            vec![("balancer", task.boxed())]
        });
        let replica = world.start(Parts {
            work,
            webhook: Some(world.webhook(false)),
            ..world.parts()
        });
        assert_eq!(replica.end().await, 1);
        assert_eq!(world.server.holder(), None);
        world.diary.position("Leader→Releasing task_ended");
        world.diary.position("linger");
    }
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn the_controllers_wait_for_the_gate() {
    let world = World::new();
    let open = Arc::new(tokio::sync::Notify::new());
    let gate: super::super::Gate = Arc::new({
        let open = open.clone();
        move |_permit| {
            let open = open.clone();
            async move { open.notified().await }.boxed()
        }
    });
    let replica = world.start(Parts {
        gate: Some(gate),
        ..world.parts()
    });
    seconds(120).await;
    assert_eq!(world.server.holder().as_deref(), Some("pod-1"), "it leads all the same");
    assert!(!world.diary.lines().contains(&"start of term 0".to_owned()));
    open.notify_one();
    seconds(1).await;
    world.diary.position("start of term 0");
    replica.signal();
    assert_eq!(replica.end().await, 0);
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_gate_that_panics_starts_no_controllers_and_ends_the_replica() {
    let world = World::new();
    let gate: super::super::Gate = Arc::new(|_permit| async { panic!("a fault of the gate") }.boxed());
    let replica = world.start(Parts {
        gate: Some(gate),
        ..world.parts()
    });
    assert_eq!(replica.end().await, 1);
    assert_eq!(world.server.holder(), None);
    assert!(!world.diary.lines().contains(&"start of term 0".to_owned()));
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_release_waits_for_writes_of_a_term_that_was_lost_before() {
    // The Lease is deleted: the leader loses its term with a write open, and creates a new Lease at once. The signal
    // comes while the old write is still open.
    let world = World::new();
    let writer: Work = Arc::new(|_permit, client| {
        let write = async move {
            let api = Api::<ConfigMap>::namespaced(client.client(), "ns");
            let _ = api.create(&PostParams::default(), &ConfigMap::default()).await;
            std::future::pending::<()>().await;
        };
        vec![("materialize", write.boxed())]
    });
    let replica = world.start(Parts {
        work: writer,
        connection_hangs: true,
        ..world.parts()
    });
    seconds(1).await;
    world.server.delete();
    world
        .server
        .until(|seen| seen.iter().filter(|seen| seen.verb == "create").count() == 2)
        .await;
    replica.signal();
    assert_eq!(replica.end().await, 0);
    assert_eq!(world.server.holder().as_deref(), Some("pod-1"), "the Lease expires");
}

/// In real time, on real threads: a controller that never yields delays neither the renewals nor the release.
#[test]
fn a_controller_that_never_yields_delays_neither_renewal_nor_release() {
    let workers = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let own = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let clock = Clock::boottime();
    let world = World {
        server: ApiServer::new(&clock),
        clock,
        diary: Diary::default(),
    };
    let freed = Arc::new(std::sync::Barrier::new(2));
    let work: Work = Arc::new({
        let freed = freed.clone();
        move |_permit, _client| {
            let freed = freed.clone();
            let stuck = async move {
                freed.wait();
            };
            vec![("materialize", stuck.boxed())]
        }
    });
    let line = world.server.line();
    let candidacy = World::candidacy(&Parts { work, ..world.parts() }, &line);
    let (signals, receiver) = mpsc::unbounded_channel();
    let leadership = world.leadership(None, workers.handle().clone());
    let run = leadership.run(Signals::from_channel(receiver), async move { Ok(candidacy) });
    let (code, ()) = own.block_on(async {
        tokio::join!(run, async {
            world
                .server
                .until(|seen| seen.iter().filter(|seen| seen.verb == "update").count() == 2)
                .await;
            signals.send(Termination::Sigterm).unwrap();
        })
    });
    assert_eq!(code, 0);
    assert_eq!(world.server.holder(), None, "released");
    world.diary.position("left behind materialize");
    freed.wait();
}
