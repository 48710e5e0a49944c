//! Termination signals. They are installed before anything that can wait and remembered until somebody asks
//! (mission row 8); what they mean is decided by the phases, not here.

use std::fmt;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// A signal that asks this process to end. Both mean the same (decision L13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Termination {
    /// What the kubelet and the container runtime send.
    Sigterm,
    /// What a terminal sends.
    Sigint,
}

/// The installed handlers of SIGTERM and SIGINT. From their installation on neither ends the process by itself.
#[derive(Debug)]
pub struct Signals {
    source: Source,
}

#[derive(Debug)]
enum Source {
    Process { sigterm: Signal, sigint: Signal },
    Channel(mpsc::UnboundedReceiver<Termination>),
}

// === impl Termination ===

impl Termination {
    /// The exit code of a process that this signal ended without a shutdown: 128 + the signal's number.
    pub fn forced_exit_code(self) -> u8 {
        match self {
            Termination::Sigterm => 128 + 15,
            Termination::Sigint => 128 + 2,
        }
    }
}

impl fmt::Display for Termination {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Termination::Sigterm => "SIGTERM",
            Termination::Sigint => "SIGINT",
        })
    }
}

// === impl Signals ===

impl Signals {
    /// Installs the handlers. Must run in the runtime that will ask for the signals.
    ///
    /// # Errors
    /// The operating system refused a handler.
    pub fn install() -> io::Result<Self> {
        let sigterm = signal(SignalKind::terminate())?;
        let sigint = signal(SignalKind::interrupt())?;
        Ok(Signals {
            source: Source::Process { sigterm, sigint },
        })
    }

    /// Signals that come from a channel instead of the operating system, for tests.
    pub fn from_channel(channel: mpsc::UnboundedReceiver<Termination>) -> Self {
        Signals {
            source: Source::Channel(channel),
        }
    }

    /// The next signal, or the one that came since the last call. Of several equal ones that came meanwhile only one
    /// is reported, as with signals in general. Loses nothing when it is dropped unfinished.
    pub async fn next(&mut self) -> Termination {
        match &mut self.source {
            Source::Process { sigterm, sigint } => tokio::select! {
                Some(()) = sigterm.recv() => Termination::Sigterm,
                Some(()) = sigint.recv() => Termination::Sigint,
                else => std::future::pending().await,
            },
            Source::Channel(channel) => match channel.recv().await {
                Some(termination) => termination,
                None => std::future::pending().await,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use rustix::process::{Signal as Number, getpid, kill_process};

    use super::*;

    #[tokio::test]
    async fn a_signal_that_nobody_waits_for_is_remembered() {
        let mut signals = Signals::install().unwrap();
        kill_process(getpid(), Number::TERM).unwrap();
        assert_eq!(signals.next().await, Termination::Sigterm);
        kill_process(getpid(), Number::INT).unwrap();
        assert_eq!(signals.next().await, Termination::Sigint);
    }

    #[test]
    fn forced_exit_codes_are_those_of_a_shell() {
        assert_eq!(Termination::Sigterm.forced_exit_code(), 143);
        assert_eq!(Termination::Sigint.forced_exit_code(), 130);
    }
}
