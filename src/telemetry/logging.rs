//! Sets up the log on standard error and, where an endpoint is given, the export of traces.

use std::{fmt, io::IsTerminal as _, time::Duration};

use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{
    Layer as _,
    filter::Targets,
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    layer::SubscriberExt as _,
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

use super::{Error, panics, traces};
use crate::args::{Filter, LogFormat, Telemetry};

/// How long the last traces may take on their way out.
const FLUSH_BOUND: Duration = Duration::from_secs(1);

/// Keeps the export of traces alive.
#[derive(Debug)]
pub struct Guard {
    traces: Option<SdkTracerProvider>,
}

/// Sets up log and traces for the whole process, and a panic hook that only logs (decision L11). Must be called in
/// the runtime.
///
/// # Errors
/// [`Error::Logging`] at a second call; [`Error::Traces`] and [`Error::Header`] if the exporter can't be built.
pub fn init(settings: &Telemetry) -> Result<Guard, Error> {
    let traces = traces::provider(settings)?;
    let exported = traces
        .as_ref()
        .map(|provider| traces::layer(provider).with_filter(settings.startup_opentelemetry_filter.targets().clone()));
    let filter = log_filter(&settings.startup_log_filter);
    let (text, json) = match settings.log_format {
        LogFormat::Text => {
            let format = Prefixed {
                prefix: settings.log_prefix.clone().unwrap_or_default(),
                inner: tracing_subscriber::fmt::format(),
            };
            let layer = tracing_subscriber::fmt::layer()
                .event_format(format)
                .with_ansi(std::io::stderr().is_terminal())
                .with_writer(std::io::stderr);
            (Some(layer.with_filter(filter)), None)
        }
        LogFormat::Json => {
            let layer = tracing_subscriber::fmt::layer().json().with_writer(std::io::stderr);
            (None, Some(layer.with_filter(filter)))
        }
    };
    tracing_subscriber::registry()
        .with(text)
        .with(json)
        .with(exported)
        .try_init()?;
    panics::install_hook();
    if settings.sentry_dsn.is_some() {
        tracing::info!("--sentry-dsn is passed on to environmentd; the operator itself reports nothing to Sentry");
    }
    Ok(Guard { traces })
}

/// The filter that was given. OpenTelemetry's own start and end are worth a line only to those who ask for it.
fn log_filter(given: &Filter) -> Targets {
    let targets = given.targets().clone();
    if given.as_str().contains("opentelemetry") || !targets.would_enable("opentelemetry_sdk", &Level::INFO) {
        return targets;
    }
    targets.with_target("opentelemetry", Level::WARN)
}

/// Puts a text before each line.
struct Prefixed<F> {
    prefix: String,
    inner: F,
}

// === impl Guard ===

impl Guard {
    /// Sends the last traces, at most a second long. Blocks: call it outside the runtime's tasks.
    pub fn shutdown(self) {
        if let Some(Err(error)) = self.traces.map(|provider| provider.shutdown_with_timeout(FLUSH_BOUND)) {
            tracing::warn!(%error, "the last traces were not sent");
        }
    }
}

// === impl Prefixed ===

impl<S, N, F> FormatEvent<S, N> for Prefixed<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        writer.write_str(&self.prefix)?;
        self.inner.format_event(context, writer, event)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        sync::{Arc, Mutex},
    };

    use super::*;

    #[test]
    fn opentelemetry_is_quiet_unless_it_is_asked_for() {
        let enabled = |filter: &str, target, level| log_filter(&filter.parse().unwrap()).would_enable(target, &level);
        assert!(!enabled("info", "opentelemetry_sdk", Level::INFO));
        assert!(enabled("info", "opentelemetry_sdk", Level::WARN) && enabled("info", "orchestratord", Level::INFO));
        assert!(
            !enabled("error", "opentelemetry_sdk", Level::WARN),
            "never more than was asked for"
        );
        assert!(enabled("opentelemetry_sdk=debug", "opentelemetry_sdk", Level::DEBUG));
    }

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_prefix_stands_before_each_line() {
        let buffer = Buffer::default();
        let written = buffer.clone();
        let format = Prefixed {
            prefix: "op> ".to_owned(),
            inner: tracing_subscriber::fmt::format().without_time(),
        };
        let layer = tracing_subscriber::fmt::layer()
            .event_format(format)
            .with_ansi(false)
            .with_writer(move || buffer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::info!(target: "t", answer = 42, "first");
            tracing::warn!(target: "t", "second");
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text, "op>  INFO t: first answer=42\nop>  WARN t: second\n");
    }
}
