//! Questions to a server that answers what a test wants.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt as _;
use futures::channel::mpsc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

/// Answers each request by its path, with the next of the bodies given for it; the last one for ever.
async fn environmentd(answers: &'static [(&'static str, &'static [(u16, &'static str)])]) -> String {
    // Another test may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let turns: Vec<AtomicUsize> = answers.iter().map(|_| AtomicUsize::new(0)).collect();
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(socket.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap();
            let index = answers
                .iter()
                .position(|(path, _)| head.contains(path))
                .expect("a known path");
            let turn = turns[index].fetch_add(1, Ordering::SeqCst);
            let bodies = answers[index].1;
            let (code, body) = bodies[turn.min(bodies.len() - 1)];
            let text = format!("HTTP/1.1 {code} x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            socket.write_all(text.as_bytes()).await.unwrap();
        }
    });
    format!("http://{address}")
}

const INITIALIZING: (u16, &str) = (200, r#"{"status":"Initializing"}"#);
const READY: (u16, &str) = (200, r#"{"status":"ReadyToPromote"}"#);
const LEADER: (u16, &str) = (200, r#"{"status":"IsLeader"}"#);
const PROMOTED: (u16, &str) = (200, r#"{"result":"Success"}"#);
const INITIALISING: (u16, &str) = (400, r#"{"result":{"Failure":{"message":"initialising"}}}"#);
const STATUS: &str = "GET /api/leader/status";
const PROMOTE: &str = "POST /api/leader/promote";
const SKIP: &str = "POST /api/leader/skip-catchup";

fn subject(question: Question, base_url: &str) -> Subject {
    let endpoint = Endpoint {
        base_url: base_url.to_owned(),
        password: None,
    };
    Subject {
        question,
        endpoint,
        incarnation: "uid/1".to_owned(),
    }
}

fn resource() -> ObjectRef<Materialize> {
    ObjectRef::new("mz").within("ns")
}

/// Every answer that wakes the resource, until the question is finished.
async fn answers(question: Question, base_url: &str, count: usize) -> Vec<Answer> {
    let (wake, mut woken) = mpsc::unbounded();
    let inquiries = Inquiries::new(wake);
    let subject = subject(question, base_url);
    assert_eq!(inquiries.ask(&resource(), "u", &subject), None);
    let mut answers = Vec::new();
    for _ in 0..count {
        assert_eq!(woken.next().await, Some(resource()));
        answers.push(inquiries.ask(&resource(), "u", &subject).unwrap());
    }
    answers
}

fn not_caught_up() -> Answer {
    Answer::NotYet("environmentd has not caught up with the active one yet".to_owned())
}

#[tokio::test]
async fn asks_until_ready_and_wakes_only_on_changes() {
    let url = environmentd(&[(STATUS, &[INITIALIZING, INITIALIZING, READY])]).await;
    assert_eq!(
        answers(Question::Status, &url, 2).await,
        [not_caught_up(), Answer::Ready]
    );
}

#[tokio::test]
async fn a_leader_is_a_leader() {
    let url = environmentd(&[(STATUS, &[LEADER])]).await;
    assert_eq!(answers(Question::Status, &url, 1).await, [Answer::Leader]);
}

#[tokio::test]
async fn promotes_again_until_it_leads() {
    let url = environmentd(&[(PROMOTE, &[INITIALISING, PROMOTED]), (STATUS, &[READY, LEADER])]).await;
    let expected = [
        Answer::Refused("initialising".to_owned()),
        Answer::NotYet("the promotion has begun".to_owned()),
        Answer::Leader,
    ];
    assert_eq!(answers(Question::Promote, &url, 3).await, expected);
}

#[tokio::test]
async fn skips_the_catch_up_whatever_the_status_is() {
    let url = environmentd(&[(STATUS, &[INITIALIZING]), (SKIP, &[(204, "")])]).await;
    assert_eq!(answers(Question::SkipCatchUp, &url, 1).await, [Answer::Ready]);
    let url = environmentd(&[
        (STATUS, &[INITIALIZING]),
        (SKIP, &[(400, r#"{"message":"too early"}"#)]),
    ])
    .await;
    assert_eq!(
        answers(Question::SkipCatchUp, &url, 1).await,
        [Answer::Refused("too early".to_owned())]
    );
}

#[tokio::test]
async fn bad_answers_are_told_apart() {
    let url = environmentd(&[(STATUS, &[(503, ""), (200, "<html>")])]).await;
    let answers = answers(Question::Status, &url, 2).await;
    assert!(
        matches!(&answers[0], Answer::NotYet(text) if text.contains("503")),
        "{answers:?}"
    );
    assert!(
        matches!(&answers[1], Answer::Unreadable(text) if text.contains("web page")),
        "{answers:?}"
    );
}

#[tokio::test]
async fn a_finished_answer_is_given_out_once() {
    let url = environmentd(&[(STATUS, &[READY, INITIALIZING])]).await;
    let (wake, mut woken) = mpsc::unbounded();
    let inquiries = Inquiries::new(wake);
    let subject = subject(Question::Status, &url);
    assert_eq!(inquiries.ask(&resource(), "u", &subject), None);
    woken.next().await.unwrap();
    assert_eq!(inquiries.ask(&resource(), "u", &subject), Some(Answer::Ready));
    assert_eq!(inquiries.ask(&resource(), "u", &subject), None, "asked anew");
    woken.next().await.unwrap();
    assert_eq!(inquiries.ask(&resource(), "u", &subject), Some(not_caught_up()));
}

#[tokio::test]
async fn another_incarnation_is_asked_anew() {
    let url = environmentd(&[(STATUS, &[READY])]).await;
    let (wake, mut woken) = mpsc::unbounded();
    let inquiries = Inquiries::new(wake);
    let first = subject(Question::Status, &url);
    inquiries.ask(&resource(), "u", &first);
    woken.next().await.unwrap();
    let second = Subject {
        incarnation: "uid/2".to_owned(),
        ..first
    };
    assert_eq!(
        inquiries.ask(&resource(), "u", &second),
        None,
        "the answer was about the first"
    );
}

#[tokio::test]
async fn what_is_no_longer_asked_ends() {
    let url = environmentd(&[(STATUS, &[INITIALIZING])]).await;
    let (wake, mut woken) = mpsc::unbounded();
    let inquiries = Inquiries::new(wake);
    let subject = subject(Question::Status, &url);
    inquiries.ask(&resource(), "u", &subject);
    woken.next().await.unwrap();
    inquiries.keep_only("u", Some(&subject));
    assert!(inquiries.ask(&resource(), "u", &subject).is_some());
    inquiries.keep_only("u", None);
    assert_eq!(inquiries.ask(&resource(), "u", &subject), None);
}
