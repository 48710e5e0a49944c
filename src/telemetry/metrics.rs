//! The metrics of this process, in one registry (decisions O1 to O3). `docs/reference/metrics.md` lists them.
//!
//! Our own come from OpenTelemetry's instruments, the controllers' from `k8s-controller`. Names are exactly those of
//! the instruments: the exporter's suffixes and its scope labels are switched off.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use k8s_controller::{PrometheusMetrics, ReconcileObserver};
use opentelemetry::{
    KeyValue,
    metrics::{Counter, Gauge, Histogram, MeterProvider as _},
};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prometheus::{Encoder as _, Registry, TextEncoder};
use states::phase::Phase;

use super::Error;
use crate::clock::{Clock, Moment};

/// Upper bounds of the buckets of a renewal's duration, in seconds. A renewal is given up after 5 s.
const RENEW_BUCKETS: [f64; 10] = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// Upper bounds of the buckets of a webhook request's duration, in seconds. API servers wait for 30 s.
const WEBHOOK_BUCKETS: [f64; 10] = [0.0001, 0.0005, 0.001, 0.0025, 0.01, 0.05, 0.25, 1.0, 5.0, 30.0];

/// Handles of all metrics. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    registry: Registry,
    is_leader: Gauge<u64>,
    needs_update: Gauge<u64>,
    phase: Gauge<u64>,
    transitions: Counter<u64>,
    renew_duration: Histogram<f64>,
    tasks_left_behind: Counter<u64>,
    webhook_requests: Counter<u64>,
    webhook_duration: Histogram<f64>,
    certificate_not_after: Gauge<i64>,
    webhook_reachable: Arc<Mutex<Option<bool>>>,
    renewed_at: Arc<Mutex<Option<Moment>>>,
    reconciliations: PrometheusMetrics,
    /// Dropping it would end the instruments.
    _provider: SdkMeterProvider,
}

// === impl Metrics ===

impl Metrics {
    /// Creates all metrics in a registry of their own, with every gauge at 0 and the phase Starting.
    ///
    /// # Errors
    /// [`Error::Registration`] and [`Error::Exporter`], both faults of this program.
    pub fn new(clock: Clock) -> Result<Self, Error> {
        let registry = Registry::new();
        let exporter = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .scope_info_enabled(false)
            .without_target_info()
            .without_units()
            .without_counter_suffixes()
            .build()?;
        let provider = SdkMeterProvider::builder().with_reader(exporter).build();
        let meter = provider.meter("orchestratord");
        let reconciliations = PrometheusMetrics::new("orchestratord")?;
        registry.register(Box::new(reconciliations.clone()))?;

        let renewed_at = Arc::new(Mutex::new(None));
        let last = renewed_at.clone();
        // The callback stays with the meter; the instrument itself is only its name.
        let _ = meter
            .f64_observable_gauge("orchestratord_lease_seconds_since_renewal")
            .with_description("Seconds since the Lease was last renewed; absent while this replica does not hold it.")
            .with_callback(move |observer| {
                let last: Option<Moment> = *last.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(last) = last {
                    observer.observe(clock.now().saturating_since(last).as_secs_f64(), &[]);
                }
            })
            .build();

        let webhook_reachable = Arc::new(Mutex::new(None));
        let reachable = webhook_reachable.clone();
        let _ = meter
            .u64_observable_gauge("orchestratord_webhook_reachable")
            .with_description("1 if the API server reached the webhook within the last minute, else 0; absent without a resource to convert, and unless this replica leads.")
            .with_callback(move |observer| {
                let reachable: Option<bool> = *reachable.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(reachable) = reachable {
                    observer.observe(reachable.into(), &[]);
                }
            })
            .build();

        let metrics = Self {
            inner: Arc::new(Inner {
                is_leader: meter
                    .u64_gauge("orchestratord_is_leader")
                    .with_description("1 while this replica holds the Lease and reconciles, else 0.")
                    .build(),
                needs_update: meter
                    .u64_gauge("environmentd_needs_update")
                    .with_description("Materialize resources whose environmentd runs with outdated settings; 0 unless this replica leads.")
                    .build(),
                phase: meter
                    .u64_gauge("orchestratord_phase")
                    .with_description("1 for the phase that this replica is in, 0 for the others.")
                    .build(),
                transitions: meter
                    .u64_counter("orchestratord_leadership_transitions_total")
                    .with_description("Transitions between the phases of this replica, by their cause.")
                    .build(),
                renew_duration: meter
                    .f64_histogram("orchestratord_lease_renew_duration_seconds")
                    .with_description("Time until the API server had answered a renewal of the Lease.")
                    .with_boundaries(RENEW_BUCKETS.to_vec())
                    .build(),
                tasks_left_behind: meter
                    .u64_counter("orchestratord_leader_tasks_left_behind_total")
                    .with_description("Tasks of the leader that did not end within a second after their abort.")
                    .build(),
                webhook_requests: meter
                    .u64_counter("orchestratord_webhook_requests_total")
                    .with_description("Requests to the conversion webhook by outcome: converted, failed (an object can't be converted) or refused (no review).")
                    .build(),
                webhook_duration: meter
                    .f64_histogram("orchestratord_webhook_request_duration_seconds")
                    .with_description("Time from the head of a request to the conversion webhook until its answer was ready.")
                    .with_boundaries(WEBHOOK_BUCKETS.to_vec())
                    .build(),
                certificate_not_after: meter
                    .i64_gauge("orchestratord_webhook_cert_not_after_seconds")
                    .with_description("When the served certificate of the webhook expires, as Unix time; absent while none is served.")
                    .build(),
                registry,
                webhook_reachable,
                renewed_at,
                reconciliations,
                _provider: provider,
            }),
        };
        metrics.set_leader(false);
        metrics.set_needs_update(0);
        metrics.set_phase(Phase::Starting.name());
        Ok(metrics)
    }

    /// `orchestratord_is_leader`.
    pub fn set_leader(&self, leads: bool) {
        self.inner.is_leader.record(leads.into(), &[]);
    }

    /// `environmentd_needs_update`: how many Materialize resources run with outdated settings.
    pub fn set_needs_update(&self, resources: u64) {
        self.inner.needs_update.record(resources, &[]);
    }

    /// `orchestratord_phase`: 1 for `phase`, a name of [`Phase`], and 0 for the others.
    pub fn set_phase(&self, phase: &str) {
        for known in Phase::NAMES {
            self.inner
                .phase
                .record((known == phase).into(), &[KeyValue::new("phase", known)]);
        }
    }

    /// `orchestratord_leadership_transitions_total`.
    pub fn count_transition(&self, from: &'static str, to: &'static str, cause: &'static str) {
        let labels = [
            KeyValue::new("from", from),
            KeyValue::new("to", to),
            KeyValue::new("cause", cause),
        ];
        self.inner.transitions.add(1, &labels);
    }

    /// `orchestratord_lease_renew_duration_seconds`.
    pub fn observe_renewal(&self, took: Duration) {
        self.inner.renew_duration.record(took.as_secs_f64(), &[]);
    }

    /// The moment that `orchestratord_lease_seconds_since_renewal` counts from.
    pub fn set_renewed_at(&self, at: Option<Moment>) {
        *self.inner.renewed_at.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    /// `orchestratord_leader_tasks_left_behind_total`.
    pub fn count_task_left_behind(&self, task: &'static str) {
        self.inner.tasks_left_behind.add(1, &[KeyValue::new("task", task)]);
    }

    /// `orchestratord_webhook_requests_total` and `orchestratord_webhook_request_duration_seconds`.
    pub fn observe_webhook_request(&self, outcome: &'static str, took: Duration) {
        self.inner.webhook_requests.add(1, &[KeyValue::new("outcome", outcome)]);
        self.inner.webhook_duration.record(took.as_secs_f64(), &[]);
    }

    /// `orchestratord_webhook_cert_not_after_seconds`, as Unix time.
    pub fn set_certificate_not_after(&self, seconds: i64) {
        self.inner.certificate_not_after.record(seconds, &[]);
    }

    /// `orchestratord_webhook_reachable`; none: absent.
    pub fn set_webhook_reachable(&self, reachable: Option<bool>) {
        *self
            .inner
            .webhook_reachable
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = reachable;
    }

    /// What the controllers report their passes to: `orchestratord_reconciliations_total` and its kin.
    pub fn reconcile_observer(&self) -> Arc<dyn ReconcileObserver> {
        Arc::new(self.inner.reconciliations.clone())
    }

    /// Everything in Prometheus' text format.
    ///
    /// # Errors
    /// [`Error::Registration`] if a metric can't be written: a fault of this program.
    pub fn render(&self) -> Result<String, Error> {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.inner.registry.gather(), &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use prometheus::core::Collector as _;

    use super::*;

    fn metrics() -> Metrics {
        Metrics::new(Clock::boottime()).unwrap()
    }

    /// The lines of samples, without comments.
    fn samples(metrics: &Metrics) -> Vec<String> {
        metrics
            .render()
            .unwrap()
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn a_new_process_shows_zeros_and_the_phase_starting() {
        assert_eq!(
            samples(&metrics()),
            [
                "environmentd_needs_update 0",
                "orchestratord_is_leader 0",
                "orchestratord_phase{phase=\"Candidate\"} 0",
                "orchestratord_phase{phase=\"Closing\"} 0",
                "orchestratord_phase{phase=\"Exited\"} 0",
                "orchestratord_phase{phase=\"Leader\"} 0",
                "orchestratord_phase{phase=\"Lingering\"} 0",
                "orchestratord_phase{phase=\"Releasing\"} 0",
                "orchestratord_phase{phase=\"Starting\"} 1",
            ]
        );
    }

    /// Decision O2: this is the list of everything that is exposed. Dashboards and alerts depend on it.
    #[test]
    fn names_and_types_are_exactly_these() {
        let metrics = metrics();
        metrics.count_transition("Starting", "Candidate", "ready");
        metrics.observe_renewal(Duration::from_millis(3));
        metrics.set_renewed_at(Some(Moment::START));
        metrics.count_task_left_behind("materialize");
        metrics.observe_webhook_request("converted", Duration::from_millis(1));
        metrics.set_certificate_not_after(1_800_000_000);
        metrics.set_webhook_reachable(Some(true));
        let text = metrics.render().unwrap();
        let types: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        assert_eq!(
            types,
            [
                "environmentd_needs_update gauge",
                "orchestratord_is_leader gauge",
                "orchestratord_leader_tasks_left_behind_total counter",
                "orchestratord_leadership_transitions_total counter",
                "orchestratord_lease_renew_duration_seconds histogram",
                "orchestratord_lease_seconds_since_renewal gauge",
                "orchestratord_phase gauge",
                "orchestratord_webhook_cert_not_after_seconds gauge",
                "orchestratord_webhook_reachable gauge",
                "orchestratord_webhook_request_duration_seconds histogram",
                "orchestratord_webhook_requests_total counter",
            ]
        );
        // These have samples from the first pass of a controller on.
        let reconciliations: Vec<_> = metrics
            .inner
            .reconciliations
            .desc()
            .iter()
            .map(|desc| (desc.fq_name.clone(), desc.variable_labels.join(",")))
            .collect();
        assert_eq!(
            reconciliations,
            [
                ("orchestratord_reconciliations_total", "controller,phase,outcome"),
                ("orchestratord_reconciliation_duration_seconds", "controller,phase"),
                ("orchestratord_reconciliation_steps_total", "controller,step,outcome"),
                ("orchestratord_reconciliation_step_duration_seconds", "controller,step"),
            ]
            .map(|(name, labels)| (name.to_owned(), labels.to_owned()))
        );
        for sample in [
            "orchestratord_leadership_transitions_total{cause=\"ready\",from=\"Starting\",to=\"Candidate\"} 1",
            "orchestratord_lease_renew_duration_seconds_bucket{le=\"0.005\"} 1",
            "orchestratord_lease_renew_duration_seconds_bucket{le=\"0.002\"} 0",
            "orchestratord_leader_tasks_left_behind_total{task=\"materialize\"} 1",
            "orchestratord_webhook_requests_total{outcome=\"converted\"} 1",
            "orchestratord_webhook_request_duration_seconds_bucket{le=\"0.001\"} 1",
            "orchestratord_webhook_request_duration_seconds_bucket{le=\"0.0005\"} 0",
            "orchestratord_webhook_cert_not_after_seconds 1800000000",
            "orchestratord_webhook_reachable 1",
        ] {
            assert!(text.lines().any(|line| line == sample), "{sample} is not in:\n{text}");
        }
        assert!(!text.contains("otel_") && !text.contains("target_info"), "{text}");
    }

    #[test]
    fn gauges_follow_and_reset() {
        let metrics = metrics();
        metrics.set_leader(true);
        metrics.set_needs_update(3);
        metrics.set_phase("Leader");
        metrics.set_renewed_at(Some(Moment::START));
        let leading = samples(&metrics);
        for sample in [
            "orchestratord_is_leader 1",
            "environmentd_needs_update 3",
            "orchestratord_phase{phase=\"Leader\"} 1",
            "orchestratord_phase{phase=\"Starting\"} 0",
        ] {
            assert!(leading.iter().any(|line| line == sample), "{sample}: {leading:?}");
        }
        assert!(
            leading
                .iter()
                .any(|line| line.starts_with("orchestratord_lease_seconds_since_renewal "))
        );
        metrics.set_leader(false);
        metrics.set_renewed_at(None);
        let lost = samples(&metrics);
        assert!(lost.iter().any(|line| line == "orchestratord_is_leader 0"));
        assert!(
            !lost.iter().any(|line| line.contains("since_renewal")),
            "absent without the Lease: {lost:?}"
        );
    }
}
