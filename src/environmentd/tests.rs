//! The client against a server that answers byte for byte what a test wants, including what no HTTP library would
//! send.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// What a connection answers.
#[derive(Clone)]
enum Reply {
    /// These bytes, then the end of the connection.
    Bytes(String),
    /// These bytes, over and over.
    Endless(String),
    /// Nothing at all, with the connection kept open.
    Silence,
}

struct Server {
    endpoint: Endpoint,
    /// The requests seen so far, one for each connection.
    requests: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves one reply for each connection in turn, the last one for ever.
async fn server(replies: Vec<Reply>) -> Server {
    // Another test may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    let task = tokio::spawn(async move {
        let mut open = Vec::new();
        for turn in 0.. {
            let (mut socket, _) = listener.accept().await.unwrap();
            let text = request(&mut socket).await;
            seen.lock().unwrap().push(text);
            match &replies[turn.min(replies.len() - 1)] {
                Reply::Bytes(text) => socket.write_all(text.as_bytes()).await.unwrap(),
                Reply::Endless(text) => while socket.write_all(text.as_bytes()).await.is_ok() {},
                Reply::Silence => open.push(socket),
            }
        }
    });
    Server {
        endpoint: Endpoint {
            base_url,
            password: None,
        },
        requests,
        task,
    }
}

/// Reads one request: the head, and as much body as it announces.
async fn request(socket: &mut tokio::net::TcpStream) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                line.to_ascii_lowercase()
                    .strip_prefix("content-length:")
                    .map(|n| n.trim().to_owned())
            });
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        let read = socket.read(&mut buffer).await.unwrap();
        assert_ne!(read, 0, "the request ended in the middle: {text}");
        text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
}

fn http(status: &str, headers: &str, body: &str) -> Reply {
    let length = body.len();
    Reply::Bytes(format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    ))
}

fn ok(body: &str) -> Reply {
    http("200 OK", "Content-Type: application/json\r\n", body)
}

async fn client(server: &Server) -> LeaderClient {
    LeaderClient::connect(&server.endpoint).await.unwrap()
}

async fn status(reply: Reply) -> Result<LeaderStatus, Error> {
    let server = server(vec![reply]).await;
    client(&server).await.status().await
}

async fn promote(reply: Reply) -> Result<(), Error> {
    let server = server(vec![reply]).await;
    client(&server).await.promote().await
}

async fn skip_catchup(reply: Reply) -> Result<(), Error> {
    let server = server(vec![reply]).await;
    client(&server).await.skip_catchup().await
}

#[tokio::test]
async fn every_status_is_read() {
    for (text, expected) in [
        ("Initializing", LeaderStatus::Initializing),
        ("ReadyToPromote", LeaderStatus::ReadyToPromote),
        ("Promoting", LeaderStatus::Promoting),
        ("IsLeader", LeaderStatus::IsLeader),
    ] {
        assert_eq!(status(ok(&format!("{{\"status\":\"{text}\"}}"))).await, Ok(expected));
    }
}

#[tokio::test]
async fn requests_are_those_of_the_api_and_each_has_its_own_connection() {
    let server = server(vec![
        ok(r#"{"status":"ReadyToPromote"}"#),
        ok(r#"{"result":"Success"}"#),
        ok(""),
    ])
    .await;
    let client = client(&server).await;
    client.status().await.unwrap();
    client.promote().await.unwrap();
    client.skip_catchup().await.unwrap();
    let requests = server.requests.lock().unwrap();
    let lines: Vec<&str> = requests.iter().map(|request| request.lines().next().unwrap()).collect();
    assert_eq!(
        lines,
        [
            "GET /api/leader/status HTTP/1.1",
            "POST /api/leader/promote HTTP/1.1",
            "POST /api/leader/skip-catchup HTTP/1.1",
        ]
    );
}

#[tokio::test]
async fn promotion_refused_with_its_message() {
    let body = r#"{"result":{"Failure":{"message":"cannot promote while initializing"}}}"#;
    let refused = Err(Error::Refused("cannot promote while initializing".to_owned()));
    assert_eq!(promote(http("400 Bad Request", "", body)).await, refused);
    assert_eq!(promote(ok(body)).await, refused);
}

#[tokio::test]
async fn promotion_answered_by_another_status() {
    let expected = Error::Status {
        code: 503,
        message: "starting".to_owned(),
    };
    assert_eq!(
        promote(http("503 Service Unavailable", "", "starting")).await,
        Err(expected)
    );
    let Err(Error::Status { code: 400, .. }) = promote(http("400 Bad Request", "", "what?")).await else {
        panic!("a 400 without the API's body is a status error")
    };
    let contradiction = promote(http("400 Bad Request", "", r#"{"result":"Success"}"#)).await;
    assert_eq!(
        contradiction,
        Err(Error::Status {
            code: 400,
            message: String::new()
        })
    );
}

#[tokio::test]
async fn skipping_the_catch_up_fails_only_on_400() {
    assert_eq!(
        skip_catchup(Reply::Bytes("HTTP/1.1 204 No Content\r\n\r\n".to_owned())).await,
        Ok(())
    );
    assert_eq!(skip_catchup(http("404 Not Found", "", "")).await, Ok(()));
    assert_eq!(skip_catchup(http("500 Oh", "", "no")).await, Ok(()));
    let refused = skip_catchup(http("400 Bad Request", "", r#"{"message":"not possible now"}"#)).await;
    assert_eq!(refused, Err(Error::Refused("not possible now".to_owned())));
    let plain = skip_catchup(http("400 Bad Request", "", "not possible")).await;
    assert_eq!(plain, Err(Error::Refused("not possible".to_owned())));
}

#[tokio::test]
async fn login_sends_the_password_once_and_the_cookie_afterwards() {
    let cookie = http("200 OK", "Set-Cookie: mz_session=abc; HttpOnly; Path=/\r\n", "");
    let mut server = server(vec![cookie, ok(r#"{"status":"IsLeader"}"#)]).await;
    server.endpoint.password = Some(Password::new("pa\"ss"));
    client(&server).await.status().await.unwrap();
    let requests = server.requests.lock().unwrap();
    assert!(
        requests[0].starts_with("POST /api/login HTTP/1.1\r\n"),
        "{}",
        requests[0]
    );
    assert!(
        requests[0]
            .to_ascii_lowercase()
            .contains("content-type: application/json\r\n"),
        "{}",
        requests[0]
    );
    let (_, body) = requests[0].split_once("\r\n\r\n").unwrap();
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(
        body,
        serde_json::json!({ "username": "mz_system", "password": "pa\"ss" })
    );
    assert!(
        requests[1].to_ascii_lowercase().contains("cookie: mz_session=abc\r\n"),
        "{}",
        requests[1]
    );
    assert!(!requests[1].contains("pa\"ss"));
}

#[tokio::test]
async fn login_refused() {
    let mut server = server(vec![http("401 Unauthorized", "", "nope")]).await;
    server.endpoint.password = Some(Password::new("secret"));
    let error = LeaderClient::connect(&server.endpoint).await.unwrap_err();
    assert_eq!(error, Error::LoginRefused(401));
    assert!(!format!("{error} {error:?} {:?}", server.endpoint).contains("secret"));
}

#[tokio::test]
async fn nobody_listens() {
    let server = server(vec![Reply::Silence]).await;
    let client = client(&server).await;
    let mut gone = server;
    gone.task.abort();
    let _ = (&mut gone.task).await;
    let Err(Error::Unreachable(cause)) = client.status().await else {
        panic!("unreachable")
    };
    assert!(cause.contains("refused"), "{cause}");
}

#[tokio::test(start_paused = true)]
async fn slow_answer() {
    assert_eq!(status(Reply::Silence).await, Err(Error::TimedOut(REQUEST_TIMEOUT)));
    let half = Reply::Bytes("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{\"sta".to_owned());
    // Bytes closes the connection: that is a truncated answer, not a slow one.
    assert!(matches!(status(half).await, Err(Error::Truncated(_))));
}

#[tokio::test]
async fn huge_answer() {
    let endless = Reply::Endless(format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(100_000)));
    assert_eq!(status(endless).await, Err(Error::TooLarge(64 * 1024)));
}

#[tokio::test]
async fn truncated_answer() {
    let cut = Reply::Bytes("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"status\":".to_owned());
    assert!(matches!(status(cut).await, Err(Error::Truncated(_))));
    let headless = Reply::Bytes("HTTP/1.1 200".to_owned());
    assert!(matches!(status(headless).await, Err(Error::Unreachable(_))));
}

#[tokio::test]
async fn redirected_answer() {
    let elsewhere = http("302 Found", "Location: http://127.0.0.1:1/\r\n", "");
    assert_eq!(status(elsewhere.clone()).await, Err(Error::Redirected(302)));
    assert_eq!(promote(elsewhere.clone()).await, Err(Error::Redirected(302)));
    assert_eq!(skip_catchup(elsewhere).await, Err(Error::Redirected(302)));
}

#[tokio::test]
async fn web_page() {
    let page = http(
        "200 OK",
        "Content-Type: text/html\r\n",
        "\n <!DOCTYPE html><html></html>",
    );
    assert_eq!(status(page.clone()).await, Err(Error::WebPage));
    assert_eq!(promote(page).await, Err(Error::WebPage));
}

#[tokio::test]
async fn other_json_and_no_json() {
    for text in [
        "",
        "{}",
        "[]",
        "null",
        r#"{"status":"Dancing"}"#,
        r#"{"status":7}"#,
        "\u{fffd}",
    ] {
        let error = status(ok(text)).await.unwrap_err();
        assert!(
            matches!(error, Error::Unreadable(_)) && error.is_unreadable(),
            "{text}: {error}"
        );
    }
}

#[tokio::test]
async fn status_with_another_code_is_not_unreadable() {
    let error = status(http("503 Service Unavailable", "", "<html>busy</html>"))
        .await
        .unwrap_err();
    assert_eq!(
        error,
        Error::Status {
            code: 503,
            message: String::new()
        }
    );
    assert!(!error.is_unreadable());
}

#[tokio::test]
async fn unusable_address() {
    let endpoint = Endpoint {
        base_url: "http://ex ample:0".to_owned(),
        password: None,
    };
    let error = LeaderClient::connect(&endpoint)
        .await
        .unwrap()
        .status()
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Address(_)), "{error}");
}
