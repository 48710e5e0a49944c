//! Carries connections to environmentd. Its name is resolved for each connection, so that a promotion is followed at once.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// The message that asks for TLS: its length, and a number that is no protocol version.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// What a port speaks, which decides how TLS begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// TLS is asked for inside of the protocol.
    Pgwire,
    /// TLS comes first.
    Https,
}

/// Where to, and with TLS on which side.
pub(crate) struct Route {
    pub(crate) protocol: Protocol,
    /// `host:port` of environmentd.
    pub(crate) to: String,
    /// TLS with clients; required where it is there.
    pub(crate) accept: Option<TlsAcceptor>,
    /// TLS with environmentd.
    pub(crate) connect: Option<TlsConnector>,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Accepts until `stop`; afterwards open connections go on until they end or this future is dropped.
pub(crate) async fn serve(listener: TcpListener, route: Arc<Route>, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        while connections.try_join_next().is_some() {}
        let Ok((client, _)) = accepted else { continue };
        let route = Arc::clone(&route);
        connections.spawn(async move {
            if let Err(error) = carry(client, &route).await {
                warn!(error = format!("{error:#}"), protocol = ?route.protocol, "connection ended");
            }
        });
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn carry(client: TcpStream, route: &Route) -> anyhow::Result<()> {
    client.set_nodelay(true)?;
    let Some((mut client, first)) = greet(client, route).await? else {
        return Ok(());
    };
    let mut server = reach(route)
        .await
        .with_context(|| format!("environmentd at {}", route.to))?;
    server.write_all(&first).await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

/// Does what has to be done with the client before environmentd is needed: the stream, and what was read of it already.
async fn greet(mut client: TcpStream, route: &Route) -> anyhow::Result<Option<(Box<dyn Stream>, Vec<u8>)>> {
    if route.protocol == Protocol::Https {
        return Ok(Some(match &route.accept {
            Some(tls) => (Box::new(tls.accept(client).await?), Vec::new()),
            None => (Box::new(client), Vec::new()),
        }));
    }
    let mut first = [0; 8];
    if client.read_exact(&mut first).await.is_err() {
        return Ok(None);
    }
    match (&route.accept, first == SSL_REQUEST) {
        (Some(tls), true) => {
            client.write_all(b"S").await?;
            Ok(Some((Box::new(tls.accept(client).await?), Vec::new())))
        }
        (None, true) => {
            client.write_all(b"N").await?;
            Ok(Some((Box::new(client), Vec::new())))
        }
        (None, false) => Ok(Some((Box::new(client), first.to_vec()))),
        (Some(_), false) => {
            client.write_all(&error("08004", "TLS encryption is required")).await?;
            Ok(None)
        }
    }
}

async fn reach(route: &Route) -> anyhow::Result<Box<dyn Stream>> {
    let mut server = TcpStream::connect(&route.to).await?;
    server.set_nodelay(true)?;
    let Some(tls) = &route.connect else {
        return Ok(Box::new(server));
    };
    if route.protocol == Protocol::Pgwire {
        server.write_all(&SSL_REQUEST).await?;
        if server.read_u8().await? != b'S' {
            bail!("it does not want TLS, but --internal-tls is set");
        }
    }
    let (host, _) = crate::host::split_address(&route.to)?;
    Ok(Box::new(tls.connect(ServerName::try_from(host)?, server).await?))
}

/// An `ErrorResponse` of the protocol.
fn error(code: &str, message: &str) -> Vec<u8> {
    let fields = format!("SFATAL\0VFATAL\0C{code}\0M{message}\0\0");
    let length = u32::try_from(fields.len() + 4).unwrap_or(u32::MAX);
    [&[b'E'][..], &length.to_be_bytes(), fields.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    /// A route to a server that sends back what it gets; returns the address of the port in front of it.
    async fn plain(protocol: Protocol) -> String {
        let echo = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = echo.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = echo.accept().await {
                tokio::spawn(async move {
                    let (mut reader, mut writer) = socket.split();
                    drop(tokio::io::copy(&mut reader, &mut writer).await);
                });
            }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let route = Arc::new(Route {
            protocol,
            to,
            accept: None,
            connect: None,
        });
        tokio::spawn(serve(listener, route, CancellationToken::new()));
        address
    }

    #[tokio::test]
    async fn what_was_read_to_look_for_tls_is_not_lost() {
        let mut client = TcpStream::connect(plain(Protocol::Pgwire).await).await.unwrap();
        client.write_all(b"12345678rest").await.unwrap();
        let mut back = [0; 12];
        client.read_exact(&mut back).await.unwrap();
        assert_eq!(&back, b"12345678rest");
    }

    #[tokio::test]
    async fn a_wish_for_tls_is_declined_and_the_connection_goes_on() {
        let mut client = TcpStream::connect(plain(Protocol::Pgwire).await).await.unwrap();
        client.write_all(&SSL_REQUEST).await.unwrap();
        assert_eq!(client.read_u8().await.unwrap(), b'N');
        client.write_all(b"12345678").await.unwrap();
        let mut back = [0; 8];
        client.read_exact(&mut back).await.unwrap();
        assert_eq!(&back, b"12345678");
    }

    #[tokio::test]
    async fn https_is_carried_from_its_first_byte() {
        let mut client = TcpStream::connect(plain(Protocol::Https).await).await.unwrap();
        client.write_all(b"G").await.unwrap();
        assert_eq!(client.read_u8().await.unwrap(), b'G');
    }

    #[test]
    fn errors_have_the_length_that_they_say() {
        let message = error("08004", "no");
        assert_eq!(message[0], b'E');
        let length = u32::from_be_bytes(message[1..5].try_into().unwrap());
        assert_eq!(usize::try_from(length).unwrap(), message.len() - 1);
    }
}
