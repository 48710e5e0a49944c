//! One connection of a replica: its requests one after the other, each with what happens to it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustls::{ClientConnection, ServerConnection, StreamOwned};
use serde_json::Value;
use socket2::SockRef;

use super::http::{Framing, Head, Messages, Piece};
use super::journal::Entry;
use super::rules::{Answer, Fault, Target};
use super::{Network, Shared};
use crate::clock::{Stopwatch, pause};

/// The API server as seen from the cluster's namespace.
const API_SERVER: ([u8; 4], u16) = ([172, 30, 0, 1], 6443);

/// A socket that notes when the first byte of a request comes.
struct Tap {
    socket: TcpStream,
    clock: Stopwatch,
    first_byte: Option<Duration>,
}

type Client = Messages<StreamOwned<ServerConnection, Tap>>;
type Server = Messages<StreamOwned<ClientConnection, TcpStream>>;

/// One connection under way.
struct Connection<'a> {
    shared: &'a Shared,
    number: u64,
    client: Client,
    server: Option<Server>,
}

/// What becomes of a connection after a request.
enum Next {
    /// It takes the next one.
    Request,
    /// It is closed.
    Close,
    /// It is reset.
    Reset,
}

/// Serves a connection to its end.
pub(super) fn serve(shared: &Arc<Shared>, socket: TcpStream) {
    let number = shared.connections.fetch_add(1, Ordering::Relaxed);
    match shared.network() {
        Network::Open => {}
        Network::Closed => return reset(&socket),
        Network::Silent => return shared.wait_for_healing(),
    }
    // The proxy must not add delays of its own.
    let _ = socket.set_nodelay(true);
    shared.register(number, &socket);
    let tls = shared.certificates.accept();
    let (Some(tls), Ok(handle)) = (tls, socket.try_clone()) else {
        return;
    };
    let tap = Tap {
        socket,
        clock: shared.clock,
        first_byte: None,
    };
    let mut connection = Connection {
        shared,
        number,
        client: Messages::new(StreamOwned::new(tls, tap)),
        server: None,
    };
    let next = connection.run();
    // From here on only this thread has the socket, so that closing it takes effect at once.
    shared.forget(number);
    if let Ok(Next::Reset) = next {
        reset(&handle);
    }
}

/// Makes closing the socket a reset.
fn reset(socket: &TcpStream) {
    let _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
}

// === impl Connection ===

impl Connection<'_> {
    fn run(&mut self) -> io::Result<Next> {
        // The bytes of the handshake belong to no request.
        while self.client.stream.conn.is_handshaking() {
            let stream = &mut self.client.stream;
            stream.conn.complete_io(&mut stream.sock)?;
        }
        loop {
            self.client.stream.sock.first_byte = None;
            let early = self.client.has_leftovers();
            let Some(head) = self.client.head()? else {
                return Ok(Next::Close);
            };
            let first_byte = match self.client.stream.sock.first_byte {
                Some(first_byte) if !early => first_byte,
                _ => self.shared.clock.elapsed(),
            };
            let body = self.client.body(head.framing(Framing::Length(0)))?;
            match self.request(first_byte, &head, &body)? {
                Next::Request => {}
                end => return Ok(end),
            }
        }
    }

    fn request(&mut self, first_byte: Duration, head: &Head, body: &Piece) -> io::Result<Next> {
        let mut words = head.first_line.split(' ').map(str::to_owned);
        let target = Target {
            method: words.next().unwrap_or_default(),
            uri: words.next().unwrap_or_default(),
        };
        let entry = self.shared.journal.add(Entry {
            first_byte,
            target: target.clone(),
            fault: None,
            status: None,
        });
        if self.shared.network() == Network::Silent {
            self.shared.wait_for_healing();
            return Ok(Next::Close);
        }
        let fault = self.shared.fault(&target);
        let name = fault.as_ref().map(Fault::name);
        self.shared.journal.change(entry, |entry| entry.fault = name);
        match &fault {
            Some(Fault::Swallow) => {
                self.shared.wait_for_healing();
                return Ok(Next::Close);
            }
            Some(Fault::Reset) => return Ok(Next::Reset),
            Some(Fault::Answer(answer)) => {
                self.shared
                    .journal
                    .change(entry, |entry| entry.status = Some(answer.status));
                self.answer(answer)?;
                return Ok(Next::Request);
            }
            Some(Fault::Delay(time)) => pause(*time),
            Some(Fault::Meanwhile(work)) => work(),
            Some(Fault::Mute | Fault::DelayAnswer(_) | Fault::DropAnswer | Fault::Rewrite(_)) | None => {}
        }
        let answer = self.pass_on(head, body)?;
        match fault {
            Some(Fault::DropAnswer) => {
                // Only once the API server has done it.
                self.read_to_the_end(&answer)?;
                return Ok(Next::Reset);
            }
            Some(Fault::DelayAnswer(time)) => pause(time),
            Some(Fault::Rewrite(rewrite)) => {
                let body = self.read_to_the_end(&answer)?;
                let body = rewrite(serde_json::from_slice(&body.content).unwrap_or(Value::Null));
                let head = answer.with_length(body.len());
                self.shared
                    .journal
                    .change(entry, |entry| entry.status = Some(head.status()));
                self.send(&head.bytes())?;
                self.send(body.as_bytes())?;
                return Ok(Next::Request);
            }
            _ => {}
        }
        self.shared
            .journal
            .change(entry, |entry| entry.status = Some(answer.status()));
        self.carry(&target, &answer)
    }

    /// Sends a request to the API server and waits for the head of its answer.
    fn pass_on(&mut self, head: &Head, body: &Piece) -> io::Result<Head> {
        self.drop_stale_server();
        let server = match &mut self.server {
            Some(server) => server,
            none => none.insert(connect(self.shared, self.number)?),
        };
        let mut bytes = head.bytes();
        bytes.extend(&body.raw);
        server.stream.write_all(&bytes)?;
        server.stream.flush()?;
        server.head()?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Gives up a connection that the API server has closed while nothing was asked, as it may.
    fn drop_stale_server(&mut self) {
        let is_stale = self.server.as_ref().is_some_and(|server| {
            let socket = &server.stream.sock;
            let _ = socket.set_nonblocking(true);
            // Nothing to read is as it should be; an end, or the alert before it, is not.
            let stale = !matches!(socket.peek(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock);
            let _ = socket.set_nonblocking(false);
            stale
        });
        // TLS 1.3 sends session tickets after the handshake, which look the same: a new connection does no harm.
        if is_stale {
            self.server = None;
        }
    }

    /// Carries an answer as it comes.
    fn carry(&mut self, target: &Target, answer: &Head) -> io::Result<Next> {
        self.send(&answer.bytes())?;
        let mut framing = answer_framing(answer);
        let until_close = framing == Framing::Close;
        loop {
            let server = self.server.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            let Some(piece) = server.piece(&mut framing)? else {
                return Ok(if until_close { Next::Close } else { Next::Request });
            };
            if self.shared.is_silenced(target) {
                self.shared.wait_for_healing();
                return Ok(Next::Close);
            }
            self.send(&piece.raw)?;
        }
    }

    fn read_to_the_end(&mut self, answer: &Head) -> io::Result<Piece> {
        let server = self.server.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        server.body(answer_framing(answer))
    }

    fn answer(&mut self, answer: &Answer) -> io::Result<()> {
        let mut headers = vec!["Content-Type: application/json".to_owned()];
        headers.extend(answer.headers.iter().cloned());
        let head = Head {
            first_line: format!("HTTP/1.1 {} Fault", answer.status),
            headers,
        };
        self.send(&head.with_length(answer.body.len()).bytes())?;
        self.send(answer.body.as_bytes())
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.client.stream.write_all(bytes)?;
        self.client.stream.flush()
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            let _ = server.stream.sock.shutdown(Shutdown::Both);
        }
    }
}

/// Answers without a body have a status that says so.
fn answer_framing(answer: &Head) -> Framing {
    match answer.status() {
        100..200 | 204 | 304 => Framing::Length(0),
        _ => answer.framing(Framing::Close),
    }
}

fn connect(shared: &Shared, connection: u64) -> io::Result<Server> {
    let tls = shared.certificates.connect().ok_or(io::ErrorKind::Other)?;
    let socket = TcpStream::connect_timeout(&SocketAddr::from(API_SERVER), Duration::from_secs(5))?;
    socket.set_nodelay(true)?;
    shared.register(connection, &socket);
    Ok(Messages::new(StreamOwned::new(tls, socket)))
}

// === impl Tap ===

impl Read for Tap {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.socket.read(buffer)?;
        if length > 0 && self.first_byte.is_none() {
            self.first_byte = Some(self.clock.elapsed());
        }
        Ok(length)
    }
}

impl Write for Tap {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.socket.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}
