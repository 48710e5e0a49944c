//! A network between one replica and the API server that a scenario can break.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::context::Context;
use crate::machine::netns::NetNamespace;

/// Forwards connections to the API server until it is cut. Ends with the program.
pub(crate) struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    cut: AtomicBool,
    connections: Mutex<Vec<TcpStream>>,
}

// === impl Proxy ===

impl Proxy {
    /// Opens one in the cluster's network namespace.
    pub(crate) fn open(context: &Context) -> Result<Self> {
        let netns = context.cluster.level.netns();
        let listener = netns.run(|| TcpListener::bind("127.0.0.1:0").context("opening a proxy"))?;
        let address = listener.local_addr().context("opening a proxy")?;
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (netns, state) = (netns.clone(), Arc::clone(&shared));
                thread::spawn(move || serve(&netns, &state, &client));
            }
        });
        Ok(Self { address, state })
    }

    /// What a replica behind it takes for the API server.
    pub(crate) fn server(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Nothing gets through any more, in either direction, and nobody is told: connections stay open and silent.
    pub(crate) fn cut(&self) {
        self.state.cut.store(true, Ordering::SeqCst);
    }

    /// New connections work again; those from before are closed.
    pub(crate) fn heal(&self) {
        self.state.cut.store(false, Ordering::SeqCst);
        for connection in self
            .state
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
        {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

fn serve(netns: &NetNamespace, state: &Arc<State>, client: &TcpStream) {
    let server = netns.run(|| {
        Ok(TcpStream::connect_timeout(
            &SocketAddr::from(([172, 30, 0, 1], 6443)),
            Duration::from_secs(5),
        )?)
    });
    let Ok(server) = server else { return };
    // The proxy must not add delays of its own.
    let _ = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
    let clones = || {
        Ok::<_, io::Error>((
            client.try_clone()?,
            server.try_clone()?,
            client.try_clone()?,
            server.try_clone()?,
        ))
    };
    let Ok((client_end, server_end, client_again, server_again)) = clones() else {
        return;
    };
    state
        .connections
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .extend([client_end, server_end]);
    let upstream = Arc::clone(state);
    let (from_client, to_server) = (client_again, server_again);
    thread::spawn(move || carry(&upstream, &from_client, &to_server));
    carry(state, &server, client);
}

/// Carries bytes one way; while the network is cut they are lost.
fn carry(state: &State, mut from: &TcpStream, mut to: &TcpStream) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if state.cut.load(Ordering::SeqCst) {
            continue;
        }
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    if !state.cut.load(Ordering::SeqCst) {
        let _ = to.shutdown(Shutdown::Write);
    }
}
