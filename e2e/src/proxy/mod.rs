//! A network between one replica and the API server that breaks where it is told to.
//!
//! It ends TLS with the API server's own certificate and opens it anew behind, so it sees each request with its verb and URL while the replica's own
//! token passes through. Faults are those of real networks and servers: silence, delay, resets, lost answers, wrong answers. What it has seen is its log,
//! which says of each request when its first byte came. Plain HTTP/1.1, which is what the operator speaks.

mod connection;
mod http;
mod journal;
mod rules;
mod tls;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::clock::Stopwatch;
use crate::cluster::Level;
use crate::machine::netns::NetNamespace;
pub(crate) use journal::{Entry, Journal};
pub(crate) use rules::{Answer, Fault, Matcher, lease, lease_writes, watches};
use rules::{Rule, Target};
use tls::Certificates;

/// What happens to everything, below HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// It works.
    Open,
    /// Connections are accepted, nothing is carried in either direction, nobody is told.
    Silent,
    /// Connections are closed at once, as by a server that is not there.
    Closed,
}

/// One network. It ends with the value.
pub(crate) struct Proxy {
    address: SocketAddr,
    netns: NetNamespace,
    shared: Arc<Shared>,
}

/// What the threads of the connections share.
struct Shared {
    clock: Stopwatch,
    certificates: Certificates,
    journal: Journal,
    connections: AtomicU64,
    ended: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    network: Network,
    rules: Vec<Rule>,
    /// Counts up whenever a fault ends, so that whoever waits in one can tell.
    healed: u64,
    sockets: Vec<(u64, TcpStream)>,
}

// === impl Proxy ===

impl Proxy {
    /// Opens one in the network namespace of a cluster.
    pub(crate) fn open(level: Level) -> Result<Self> {
        let netns = level.netns();
        let listener = netns.run(|| TcpListener::bind("127.0.0.1:0").context("opening a proxy"))?;
        let address = listener.local_addr().context("opening a proxy")?;
        let clock = Stopwatch::start();
        let shared = Arc::new(Shared {
            clock,
            certificates: Certificates::of(level)?,
            journal: Journal::default(),
            connections: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            state: Mutex::new(State {
                network: Network::Open,
                rules: Vec::new(),
                healed: 0,
                sockets: Vec::new(),
            }),
            changed: Condvar::new(),
        });
        let (inside, accepting) = (netns.clone(), Arc::clone(&shared));
        thread::spawn(move || {
            // The threads of the connections inherit the namespace, and with it the way to the API server.
            if inside.enter().is_ok() {
                accept(&listener, &accepting);
            }
        });
        Ok(Self { address, netns, shared })
    }

    /// What a replica behind it takes for the API server.
    pub(crate) fn server(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The time of this proxy, as in its log.
    pub(crate) fn now(&self) -> Duration {
        self.shared.clock.elapsed()
    }

    /// From now on the fault happens to each request that matches, until [`Proxy::heal`].
    pub(crate) fn inject(&self, matcher: Matcher, fault: Fault) {
        self.add(Rule::new(matcher, fault, None));
    }

    /// The fault happens to the next `times` requests that match.
    pub(crate) fn inject_times(&self, times: u64, matcher: Matcher, fault: Fault) {
        self.add(Rule::new(matcher, fault, Some(times)));
    }

    fn add(&self, rule: Rule) {
        self.shared.lock().rules.push(rule);
        self.shared.changed.notify_all();
    }

    /// Changes what happens to everything.
    pub(crate) fn set(&self, network: Network) {
        let mut state = self.shared.lock();
        let before = std::mem::replace(&mut state.network, network);
        if before == network {
            return;
        }
        state.healed += u64::from(network == Network::Open);
        // Silence is not noticed. Everything else ends what was open.
        if network != Network::Silent {
            state.close_all();
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Ends all faults. Requests that are held in one are lost with their connections; later ones pass.
    pub(crate) fn heal(&self) {
        self.shared.lock().rules.clear();
        self.set(Network::Open);
        self.shared.lock().healed += 1;
        self.shared.changed.notify_all();
    }

    /// What it has seen so far.
    pub(crate) fn journal(&self) -> &Journal {
        &self.shared.journal
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        self.shared.lock().close_all();
        self.shared.changed.notify_all();
        // Wakes the thread that accepts.
        let _ = self.netns.run(|| Ok(TcpStream::connect(self.address)?));
    }
}

// === impl Shared ===

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    fn network(&self) -> Network {
        self.lock().network
    }

    /// Notes a socket, so that it can be closed from elsewhere.
    fn register(&self, connection: u64, socket: &TcpStream) {
        if let Ok(clone) = socket.try_clone() {
            self.lock().sockets.push((connection, clone));
        }
    }

    fn forget(&self, connection: u64) {
        self.lock().sockets.retain(|(number, _)| *number != connection);
    }

    /// What happens to this request.
    fn fault(&self, target: &Target) -> Option<Fault> {
        let mut state = self.lock();
        state.rules.iter_mut().find_map(|rule| rule.apply(target))
    }

    /// Whether an answer that has begun, such as a watch, has fallen silent. Uses up no rule.
    fn is_silenced(&self, target: &Target) -> bool {
        let state = self.lock();
        state.network == Network::Silent || state.rules.iter().any(|rule| rule.silences(target))
    }

    /// Waits until the present fault has ended.
    fn wait_for_healing(&self) {
        let mut state = self.lock();
        let healed = state.healed;
        while state.healed == healed && !self.has_ended() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

// === impl State ===

impl State {
    fn close_all(&mut self) {
        for (_, socket) in self.sockets.drain(..) {
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming().map_while(Result::ok) {
        if shared.has_ended() {
            return;
        }
        let shared = Arc::clone(shared);
        thread::spawn(move || connection::serve(&shared, client));
    }
}
