//! Plain HTTP to processes inside a cluster's network namespace: metrics and probes.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::Cluster;

// === impl Cluster ===

impl Cluster {
    /// `GET http://ADDRESS/PATH`: status and body.
    pub(crate) fn get(&self, address: SocketAddr, path: &str) -> Result<(u16, String)> {
        self.level.netns().run(|| {
            let limit = Duration::from_secs(5);
            let mut stream =
                TcpStream::connect_timeout(&address, limit).with_context(|| format!("connecting to {address}"))?;
            stream.set_read_timeout(Some(limit)).context("bounding an answer")?;
            write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n")
                .with_context(|| format!("asking {address} for {path}"))?;
            let mut answer = String::new();
            stream
                .read_to_string(&mut answer)
                .with_context(|| format!("reading {path} of {address}"))?;
            parse(&answer).with_context(|| format!("{path} of {address} is no HTTP answer: {answer:?}"))
        })
    }

    /// A port on which nobody listens in the cluster's network namespace at this moment.
    pub(crate) fn free_port(&self) -> Result<u16> {
        self.level.netns().run(|| {
            let listener = TcpListener::bind("127.0.0.1:0").context("looking for a free port")?;
            Ok(listener.local_addr().context("looking for a free port")?.port())
        })
    }
}

fn parse(answer: &str) -> Option<(u16, String)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_a_status_and_a_body() {
        assert_eq!(
            parse("HTTP/1.0 503 Service Unavailable\r\na: b\r\n\r\nwait\r\n"),
            Some((503, "wait\r\n".to_owned()))
        );
        assert_eq!(parse("hello"), None);
    }
}
