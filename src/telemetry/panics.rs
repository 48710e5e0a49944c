//! A panic is logged and nothing more: what it means for the process is decided where the task is awaited
//! (decision L11).

use std::{any::Any, backtrace::Backtrace, panic::PanicHookInfo};

/// Replaces the process's panic hook.
pub(super) fn install_hook() {
    std::panic::set_hook(Box::new(log));
}

fn log(info: &PanicHookInfo<'_>) {
    let location = info.location().map(ToString::to_string).unwrap_or_default();
    // Only with RUST_BACKTRACE=1; else it says that it is disabled.
    let backtrace = Backtrace::capture();
    tracing::error!(%location, %backtrace, "panic: {}", message(info.payload()));
}

/// The text of a panic, if it is one of the two types that `panic!` makes.
fn message(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no text)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_panic_is_found() {
        assert_eq!(message(&"plain"), "plain");
        assert_eq!(message(&"formatted".to_owned()), "formatted");
        assert_eq!(message(&7), "(no text)");
    }
}
