//! Running other programs to their end, with their output and a deadline.

use std::ffi::OsStr;
use std::io::{Read, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::clock::{Deadline, poll};

/// What a program that ran to its end has left.
#[derive(Debug)]
pub(crate) struct Finished {
    /// How it ended.
    pub(crate) status: ExitStatus,
    /// Its standard output; bytes that are no UTF-8 are replaced.
    pub(crate) stdout: String,
    /// Its standard error, likewise.
    pub(crate) stderr: String,
}

/// The command line for messages.
pub(crate) fn describe(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs a program whose output nobody reads unless it fails.
pub(crate) fn run(command: &mut Command, deadline: Deadline) -> Result<String> {
    let finished = finish(command, None, deadline)?;
    if finished.status.success() {
        return Ok(finished.stdout);
    }
    bail!(
        "`{}` failed ({}): {}",
        describe(command),
        finished.status,
        tail(&finished.stderr, 20)
    )
}

/// Runs a program to its end, gives it `input`, and kills it at the deadline.
pub(crate) fn finish(command: &mut Command, input: Option<&str>, deadline: Deadline) -> Result<Finished> {
    let text = describe(command);
    let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
    let mut child = command
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting `{text}`"))?;
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    if let (Some(input), Some(mut pipe)) = (input, child.stdin.take()) {
        // A program that ends without reading its input says why by its status.
        let _ = pipe.write_all(input.as_bytes());
    }
    let Some(status) = wait(&mut child, deadline)? else {
        let _ = child.kill();
        let _ = child.wait();
        bail!("`{text}` had not ended at its deadline and was killed");
    };
    // The pipes end with the program, except where it left a child behind that still holds them.
    let grace = Duration::from_secs(1);
    Ok(Finished {
        status,
        stdout: stdout.recv_timeout(grace).unwrap_or_default(),
        stderr: stderr.recv_timeout(grace).unwrap_or_default(),
    })
}

/// Waits for a child; `None` when the deadline passes first.
fn wait(child: &mut Child, deadline: Deadline) -> Result<Option<ExitStatus>> {
    poll(deadline, Duration::from_millis(4), || child.try_wait()).context("waiting for a child process")
}

/// Reads a pipe to its end on a thread of its own.
fn collect(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    if let Some(mut pipe) = pipe {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.read_to_end(&mut bytes);
            let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
        });
    }
    receiver
}

/// The last lines of a text.
pub(crate) fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.trim_end().lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Deadline {
        Deadline::after(Duration::from_secs(30))
    }

    #[test]
    fn a_failing_program_is_reported_with_its_arguments_and_its_last_words() {
        let error = run(
            Command::new("sh").args(["-c", "echo first >&2; echo last >&2; exit 3"]),
            soon(),
        )
        .unwrap_err()
        .to_string();
        assert!(error.starts_with("`sh -c "), "{error}");
        assert!(
            error.contains("exit status: 3") && error.ends_with("first\nlast"),
            "{error}"
        );
    }

    #[test]
    fn a_program_gets_its_input_and_gives_its_output() {
        let finished = finish(&mut Command::new("cat"), Some("hello"), soon()).unwrap();
        assert!(finished.status.success());
        assert_eq!(finished.stdout, "hello");
    }

    #[test]
    fn a_program_that_never_ends_is_killed_at_the_deadline() {
        let error = finish(
            Command::new("sleep").arg("600"),
            None,
            Deadline::after(Duration::from_millis(20)),
        )
        .unwrap_err();
        assert!(error.to_string().contains("deadline"), "{error}");
    }

    #[test]
    fn a_tail_keeps_the_end() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a", 2), "a");
    }
}
