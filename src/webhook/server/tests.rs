//! Against real sockets on loopback.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::net::{Ipv4Addr, SocketAddr};

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;
use crate::clock::Clock;
use crate::webhook::certificates::testing::{self, NAME, hours, now};
use crate::webhook::certificates::{Pair, Resolver};

/// A server on a port of its own, and what its clients need.
struct Fixture {
    address: SocketAddr,
    authority: CertificateDer<'static>,
    readiness: StickyReadiness,
    drain: Arc<dyn WebhookDrain>,
    metrics: Metrics,
}

type Connection = TlsStream<TcpStream>;

/// Long enough never to matter in a test that does not mean them.
const PATIENT: Limits = Limits {
    handshake: Duration::from_mins(1),
    head: Duration::from_mins(1),
    read: Duration::from_mins(1),
    ..Limits::PRODUCTION
};

/// Short enough to wait for.
const SHORT: Duration = Duration::from_millis(50);

impl Fixture {
    async fn start(limits: Limits) -> Self {
        let ca = testing::ca("ca", hours(9000));
        let pair = Pair::read(&ca.material(hours(9000)), NAME, now()).unwrap();
        let resolver = Arc::new(Resolver::default());
        resolver.serve(pair.key);
        let authority = pair.authorities.iter().next().unwrap().1.der.clone();
        Self::with(resolver, authority, limits).await
    }

    async fn with(resolver: Arc<Resolver>, authority: CertificateDer<'static>, limits: Limits) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let metrics = Metrics::new(Clock::boottime()).unwrap();
        let readiness = StickyReadiness::not_yet("the CRD lacks the authority");
        let server = Server::new(resolver, readiness.clone(), metrics.clone(), limits).unwrap();
        let fixture = Self {
            address: listener.local_addr().unwrap(),
            authority,
            readiness,
            drain: server.drain(),
            metrics,
        };
        server.start(listener);
        fixture
    }

    async fn connect(&self) -> Connection {
        self.try_connect(&[&TLS13, &TLS12]).await.unwrap()
    }

    async fn try_connect(&self, versions: &[&'static rustls::SupportedProtocolVersion]) -> std::io::Result<Connection> {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let tcp = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from(NAME).unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, tcp).await
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let mut connection = self.connect().await;
        send(&mut connection, "GET", path, "", b"").await;
        let answer = receive(&mut connection).await.unwrap();
        (answer.status, answer.body)
    }

    fn converted(&self) -> bool {
        let text = self.metrics.render().unwrap();
        text.contains("orchestratord_webhook_requests_total{outcome=\"converted\"} 1\n")
    }
}

struct Received {
    status: u16,
    head: String,
    body: String,
}

async fn send(connection: &mut Connection, method: &str, path: &str, headers: &str, body: &[u8]) {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n{headers}\r\n",
        body.len()
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.write_all(body).await.unwrap();
}

async fn post(connection: &mut Connection, body: &[u8]) -> Option<Received> {
    send(
        connection,
        "POST",
        "/convert?timeout=30s",
        "Content-Type: application/json\r\n",
        body,
    )
    .await;
    receive(connection).await
}

/// The next answer; none if the connection is closed before.
async fn receive(connection: &mut Connection) -> Option<Received> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if connection.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1).unwrap();
    let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
    while bytes.len() < end + length {
        assert!(connection.read_buf(&mut bytes).await.unwrap() > 0, "{head}");
    }
    Some(Received {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        body: String::from_utf8(bytes.split_off(end)).unwrap(),
        head,
    })
}

/// Waits until the server has closed the connection.
async fn closed(mut stream: impl tokio::io::AsyncRead + Unpin) {
    let mut rest = Vec::new();
    // However it is closed, it is.
    let _ = stream.read_to_end(&mut rest).await;
}

fn review(objects: usize) -> Vec<u8> {
    let object = |index: usize| {
        json!({
            "apiVersion": "materialize.cloud/v1alpha1", "kind": "Materialize",
            "metadata": {"name": format!("mz-{index}")}, "spec": {"environmentdExtraArgs": ["x".repeat(1000)]},
        })
    };
    let objects: Vec<_> = (0..objects).map(object).collect();
    let request = json!({"uid": "u", "desiredAPIVersion": "materialize.cloud/v1", "objects": objects});
    serde_json::to_vec(&json!({"apiVersion": "a", "kind": "b", "request": request})).unwrap()
}

fn assert_converted(answer: &Received, objects: usize) {
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    let converted = body["response"]["convertedObjects"].as_array().unwrap();
    assert_eq!((answer.status, converted.len()), (200, objects), "{}", answer.head);
    for (index, object) in converted.iter().enumerate() {
        assert_eq!(object["metadata"]["name"], format!("mz-{index}"));
        assert_eq!(object["apiVersion"], "materialize.cloud/v1");
    }
}

#[tokio::test]
async fn reviews_are_converted_over_both_versions_of_tls_on_connections_that_stay() {
    let fixture = Fixture::start(PATIENT).await;
    for version in [&TLS12, &TLS13] {
        let mut connection = fixture.try_connect(&[version]).await.unwrap();
        assert_eq!(connection.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
        for objects in [0, 1, 3] {
            let answer = post(&mut connection, &review(objects)).await.unwrap();
            assert_converted(&answer, objects);
            assert!(answer.head.contains("content-type: application/json\r\n"));
            assert!(!answer.head.contains("connection: close"));
        }
    }
}

#[tokio::test]
async fn a_large_batch_is_converted() {
    let fixture = Fixture::start(PATIENT).await;
    let answer = post(&mut fixture.connect().await, &review(5000)).await.unwrap();
    assert_converted(&answer, 5000);
    assert!(fixture.converted());
}

#[tokio::test]
async fn probes_tell_health_and_readiness() {
    let fixture = Fixture::start(PATIENT).await;
    assert_eq!(fixture.get("/healthz").await, (200, "ok\n".to_owned()));
    assert_eq!(
        fixture.get("/readyz").await,
        (503, "the CRD lacks the authority\n".to_owned())
    );
    fixture.readiness.ready();
    assert_eq!(fixture.get("/readyz").await, (200, "ok\n".to_owned()));
}

#[tokio::test]
async fn what_is_no_review_gets_its_status() {
    let limits = Limits { body: 3000, ..PATIENT };
    let fixture = Fixture::start(limits).await;
    let json = "Content-Type: application/json\r\n";
    let long = review(3);
    let cases: [(&str, &str, &str, &[u8], u16); 8] = [
        ("GET", "/", "", b"", 404),
        ("POST", "/convert/x", json, b"", 404),
        ("GET", "/convert", "", b"", 405),
        ("POST", "/healthz", json, b"", 405),
        ("POST", "/convert", "Content-Type: text/plain\r\n", b"{}", 415),
        ("POST", "/convert", "", b"{}", 415),
        ("POST", "/convert", json, b"{", 400),
        ("POST", "/convert", json, &long, 413),
    ];
    for (method, path, headers, body, status) in cases {
        let mut connection = fixture.connect().await;
        send(&mut connection, method, path, headers, body).await;
        let answer = receive(&mut connection).await.unwrap();
        assert_eq!(answer.status, status, "{method} {path} {headers}: {}", answer.body);
    }
    let mut chunked = fixture.connect().await;
    let head =
        "POST /convert HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    chunked.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("{:x}\r\n{}\r\n", 3001, " ".repeat(3001));
    chunked.write_all(chunk.as_bytes()).await.unwrap();
    assert_eq!(receive(&mut chunked).await.unwrap().status, 413);
}

#[tokio::test]
async fn without_a_certificate_no_handshake_succeeds_and_with_one_the_next_does() {
    let ca = testing::ca("ca", hours(9000));
    let pair = Pair::read(&ca.material(hours(9000)), NAME, now()).unwrap();
    let authority = pair.authorities.iter().next().unwrap().1.der.clone();
    let resolver = Arc::new(Resolver::default());
    let fixture = Fixture::with(resolver.clone(), authority, PATIENT).await;
    assert!(fixture.try_connect(&[&TLS13]).await.is_err());
    resolver.serve(pair.key);
    assert_eq!(fixture.get("/healthz").await.0, 200);
}

#[tokio::test]
async fn connections_that_stall_are_closed() {
    let handshake = Fixture::start(Limits {
        handshake: SHORT,
        ..PATIENT
    })
    .await;
    closed(TcpStream::connect(handshake.address).await.unwrap()).await;

    let idle = Fixture::start(Limits { idle: SHORT, ..PATIENT }).await;
    closed(idle.connect().await).await;
    let mut used = idle.connect().await;
    assert_converted(&post(&mut used, &review(1)).await.unwrap(), 1);
    closed(used).await;

    let head = Fixture::start(Limits { head: SHORT, ..PATIENT }).await;
    let mut stalled = head.connect().await;
    stalled.write_all(b"POST /conv").await.unwrap();
    closed(stalled).await;

    let body = Fixture::start(Limits { read: SHORT, ..PATIENT }).await;
    let mut stalled = body.connect().await;
    let head = "POST /convert HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{";
    stalled.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(receive(&mut stalled).await.unwrap().status, 408);
    closed(stalled).await;
}

#[tokio::test]
async fn garbage_ends_its_own_connection_only() {
    let fixture = Fixture::start(PATIENT).await;
    let mut plain = TcpStream::connect(fixture.address).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    closed(plain).await;
    let mut inside = fixture.connect().await;
    inside.write_all(b"\0\r\n\r\n").await.unwrap();
    closed(inside).await;
    assert_eq!(fixture.get("/healthz").await.0, 200);
}

#[tokio::test]
async fn too_many_connections_cost_the_oldest_idle_one_and_never_the_new_one() {
    let limits = Limits {
        connections: 3,
        ..PATIENT
    };
    let fixture = Fixture::start(limits).await;
    let half_shaken = TcpStream::connect(fixture.address).await.unwrap();
    let mut first = fixture.connect().await;
    let mut second = fixture.connect().await;
    for connection in [&mut first, &mut second, &mut fixture.connect().await] {
        assert_converted(&post(connection, &review(1)).await.unwrap(), 1);
    }
    closed(half_shaken).await;
    // The third is gone by itself, and the first now idle for a shorter time than the second.
    assert_converted(&post(&mut first, &review(1)).await.unwrap(), 1);
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut new = fixture.connect().await;
        assert_converted(&post(&mut new, &review(1)).await.unwrap(), 1);
        held.push(new);
    }
    closed(second).await;
    assert_converted(&post(&mut first, &review(1)).await.unwrap(), 1);
}

#[tokio::test]
async fn many_idle_and_half_shaken_connections_are_in_nobodys_way() {
    let fixture = Fixture::start(Limits {
        connections: 50,
        ..PATIENT
    })
    .await;
    let mut held = Vec::new();
    for _ in 0..60 {
        held.push(TcpStream::connect(fixture.address).await.unwrap());
    }
    let mut client = fixture.connect().await;
    for _ in 0..10 {
        for _ in 0..10 {
            held.push(TcpStream::connect(fixture.address).await.unwrap());
        }
        assert_converted(&post(&mut client, &review(1)).await.unwrap(), 1);
        assert_eq!(fixture.get("/healthz").await.0, 200);
    }
}

#[tokio::test]
async fn while_lingering_everything_is_answered_and_asked_to_go_elsewhere() {
    let fixture = Fixture::start(PATIENT).await;
    let mut open = fixture.connect().await;
    assert_converted(&post(&mut open, &review(1)).await.unwrap(), 1);
    fixture.drain.linger();
    let mut new = fixture.connect().await;
    for connection in [&mut open, &mut new] {
        let answer = post(connection, &review(1)).await.unwrap();
        assert_converted(&answer, 1);
        assert!(answer.head.contains("connection: close\r\n"), "{}", answer.head);
    }
    closed(open).await;
    closed(new).await;
}

#[tokio::test]
async fn closing_answers_what_has_begun_and_ends() {
    let fixture = Fixture::start(PATIENT).await;
    let idle = fixture.connect().await;
    let mut busy = fixture.connect().await;
    let body = review(1);
    let head = format!(
        "POST /convert HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    busy.write_all(head.as_bytes()).await.unwrap();
    busy.write_all(&body[..10]).await.unwrap();
    // So that the request has begun: a connection's bytes are read in the order of this write and the next answer.
    assert_eq!(fixture.get("/healthz").await.0, 200);
    let closing = tokio::spawn(fixture.drain.close());
    closed(idle).await;
    busy.write_all(&body[10..]).await.unwrap();
    let answer = receive(&mut busy).await.unwrap();
    assert_converted(&answer, 1);
    closed(busy).await;
    closing.await.unwrap();
    assert!(TcpStream::connect(fixture.address).await.is_err());
}
