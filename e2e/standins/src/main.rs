//! Stand-ins for the images that an environment of Materialize consists of: environmentd, clusterd, balancerd and console.
//!
//! They hold the operator to what it promises these programs: arguments, files, permissions and the leader API are checked strictly and
//! independently, so nothing here may use a type, a constant or a function of the operator. What they are not: a database.
//! `README.md` of this package describes images, faults and the variables for runs outside of a cluster.

mod balancerd;
mod clusterd;
mod console;
mod environmentd;
mod host;
mod http;
mod net;
mod settings;
mod version;

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use host::{Host, Role};

/// How a stand-in's life ends.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// The process ends with this code.
    Exit(u8),
    /// The process replaces itself by a new one with the same arguments: same pid, so the container is not restarted.
    Restart,
}

fn main() -> ExitCode {
    let argv: Vec<String> = std::env::args().collect();
    let host = Host::new(std::env::vars().collect());
    match run(&argv, &host) {
        Ok(End::Exit(code)) => ExitCode::from(code),
        Ok(End::Restart) => {
            let mut command = Command::new("/proc/self/exe");
            command.arg0(argv.first().map_or("standins", String::as_str));
            let error = command.args(argv.iter().skip(1)).exec();
            fail(&format!("cannot restart: {error}"))
        }
        Err(error) => fail(&format!("{error:#}")),
    }
}

fn run(argv: &[String], host: &Host) -> anyhow::Result<End> {
    let (role, arguments) = host.role(argv)?;
    tracing_subscriber::fmt()
        .json()
        .with_writer(std::io::stderr)
        .with_max_level(tracing::Level::INFO)
        .init();
    // Both rustls users in this process (kube and pgwire) must agree on one provider.
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        anyhow::bail!("a crypto provider was installed before main");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let end = runtime.block_on(async {
        match role {
            Role::Environmentd => environmentd::run(&arguments, host).await,
            Role::Clusterd => clusterd::run(host).await,
            Role::Balancerd => balancerd::run(&arguments, host).await,
            Role::Console => console::run(&arguments, host).await,
        }
    });
    runtime.shutdown_background();
    end
}

fn fail(reason: &str) -> ExitCode {
    // Standard error may be closed; there is nothing better to do with the reason then.
    drop(writeln!(std::io::stderr(), "fatal: {reason}"));
    ExitCode::FAILURE
}
