//! clusterd: keeps the two control ports open and does nothing.

use tokio::net::TcpListener;

use crate::End;
use crate::host::Host;
use crate::net::{asked_to_end, bind};

/// The storage controller's port.
pub(crate) const STORAGE_PORT: u16 = 2100;
/// The compute controller's port.
pub(crate) const COMPUTE_PORT: u16 = 2101;

/// Runs until the process is asked to end.
pub(crate) async fn run(host: &Host) -> anyhow::Result<End> {
    let storage = bind(host, &format!("0.0.0.0:{STORAGE_PORT}")).await?;
    let compute = bind(host, &format!("0.0.0.0:{COMPUTE_PORT}")).await?;
    tokio::select! {
        () = hang_up(storage) => {}
        () = hang_up(compute) => {}
        ended = asked_to_end() => ended?,
    }
    Ok(End::Exit(0))
}

async fn hang_up(listener: TcpListener) {
    while let Ok((socket, _)) = listener.accept().await {
        drop(socket);
    }
}
