//! Processes, named so that a reused pid can never be mistaken for the process that had it before.

use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// A process: its pid and the moment it started (clock ticks since the machine's boot), which together name it once and for all until the next boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Identity {
    pid: i32,
    start_time: u64,
}

// === impl Identity ===

impl Identity {
    /// The process that has this pid now; `None` if there is none or it is a zombie.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let (state, start_time) = stat(pid)?;
        (state != 'Z' && state != 'X').then_some(Self { pid, start_time })
    }

    /// Its pid, for messages and `/proc`.
    pub(crate) fn pid(self) -> i32 {
        self.pid
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Whether it runs, or has ended and its parent has not noticed yet.
    pub(crate) fn is_unburied(self) -> bool {
        stat(self.pid).is_some_and(|(_, start_time)| start_time == self.start_time)
    }

    /// Kills it at once. Nothing happens if it has ended: the pidfd is opened before the identity is compared, so the signal cannot reach a successor.
    pub(crate) fn kill(self) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) else {
            return;
        };
        if self.is_alive() {
            let _ = pidfd_send_signal(fd, Signal::KILL);
        }
    }
}

/// All processes of the machine that this process can see.
pub(crate) fn all() -> Vec<Identity> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Identity::of)
        .collect()
}

/// The inode of a process's network namespace.
pub(crate) fn net_namespace(pid: i32) -> Option<u64> {
    let link = fs::read_link(format!("/proc/{pid}/ns/net")).ok()?;
    link.to_str()?.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
}

fn stat(pid: i32) -> Option<(char, u64)> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// State and start time out of `/proc/PID/stat`; the command name in parentheses may itself contain spaces and parentheses.
fn parse_stat(stat: &str) -> Option<(char, u64)> {
    let after_name = &stat[stat.rfind(')')? + 1..];
    let mut fields = after_name.split_whitespace();
    let state = fields.next()?.chars().next()?;
    // Field 22 of proc(5); the state is field 3.
    let start_time = fields.nth(18)?.parse().ok()?;
    Some((state, start_time))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_command_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 2000";
        assert_eq!(parse_stat(stat), Some(('S', 98_765)));
    }

    #[test]
    fn a_process_is_itself_and_an_older_one_with_its_pid_is_not() {
        let this = Identity::of(std::process::id().cast_signed()).unwrap();
        assert!(this.is_alive());
        assert!(
            !Identity {
                start_time: this.start_time + 1,
                ..this
            }
            .is_alive()
        );
    }

    #[test]
    fn killing_a_predecessor_spares_the_process_that_has_its_pid() {
        let mut child = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
        let identity = Identity::of(child.id().cast_signed()).unwrap();
        Identity {
            start_time: identity.start_time + 1,
            ..identity
        }
        .kill();
        assert!(identity.is_alive());
        identity.kill();
        assert!(!child.wait().unwrap().success());
        assert!(!identity.is_alive());
    }
}
