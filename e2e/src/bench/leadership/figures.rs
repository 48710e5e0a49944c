//! What was measured, as a table and as JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::progress::line;

/// The figures of one contestant. Times are in seconds.
#[derive(Debug, Default)]
pub(super) struct Figures {
    /// From the start of a process to its first write of a Lease that nobody has.
    pub(super) start_to_leader: Vec<f64>,
    /// From the end of the request that releases to the end of the one that acquires.
    pub(super) graceful_hand_over: Vec<f64>,
    /// From the signal to the first request by which the next leader begins to reconcile.
    pub(super) signal_to_work: Vec<f64>,
    /// From the arrival of the last renewal to that of the acquisition.
    pub(super) crash_take_over: Vec<f64>,
    /// Of an idle leader and an idle standby together.
    pub(super) requests_a_minute: BTreeMap<String, u64>,
    /// Of one idle process.
    pub(super) cpu_seconds_an_hour: f64,
    pub(super) leader_resident_mib: f64,
    pub(super) standby_resident_mib: f64,
}

/// Some of the times that were measured.
type Times = fn(&Figures) -> &Vec<f64>;

/// The value below which this share of the values lies, by nearest rank; `None` of no values.
fn percentile(values: &[f64], percent: usize) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

/// Prints one table for all.
pub(super) fn print(all: &[(&str, Figures)]) {
    let names: Vec<String> = all.iter().map(|(name, _)| format!(" {name:>22}")).collect();
    line(&format!("{:<34}{}", "", names.concat()));
    let times: [(&str, Times); 4] = [
        ("start to leader", |figures| &figures.start_to_leader),
        ("release to acquisition", |figures| &figures.graceful_hand_over),
        ("SIGTERM to the next leader's work", |figures| &figures.signal_to_work),
        ("last renewal to acquisition, crash", |figures| &figures.crash_take_over),
    ];
    for (what, of) in times {
        row(what, all, |figures| {
            let values = of(figures);
            let show = |percent| percentile(values, percent).map_or("-".to_owned(), |value| format!("{value:.3}"));
            format!("{} {} {}", show(1), show(50), show(99))
        });
    }
    let kinds: std::collections::BTreeSet<&String> = all
        .iter()
        .flat_map(|(_, figures)| figures.requests_a_minute.keys())
        .collect();
    for kind in kinds {
        row(&format!("requests a minute: {kind}"), all, |figures| {
            figures
                .requests_a_minute
                .get(kind)
                .copied()
                .unwrap_or_default()
                .to_string()
        });
    }
    row("requests a minute on leases", all, |figures| {
        figures.on_leases().to_string()
    });
    row("CPU seconds an hour, one process", all, |figures| {
        format!("{:.1}", figures.cpu_seconds_an_hour)
    });
    row("RSS of the leader, MiB", all, |figures| {
        format!("{:.1}", figures.leader_resident_mib)
    });
    row("RSS of the standby, MiB", all, |figures| {
        format!("{:.1}", figures.standby_resident_mib)
    });
    line("times in seconds: least (p1), median, p99");
}

fn row(what: &str, all: &[(&str, Figures)], show: impl Fn(&Figures) -> String) {
    let shown: Vec<String> = all
        .iter()
        .map(|(_, figures)| format!(" {:>22}", show(figures)))
        .collect();
    line(&format!("{what:<34}{}", shown.concat()));
}

// === impl Figures ===

impl Figures {
    fn on_leases(&self) -> u64 {
        let on_leases = self
            .requests_a_minute
            .iter()
            .filter(|(kind, _)| kind.starts_with("leases "));
        on_leases.map(|(_, count)| count).sum()
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let times = |values: &[f64]| {
            json!({
                "count": values.len(), "least": percentile(values, 0), "p50": percentile(values, 50),
                "p99": percentile(values, 99), "most": percentile(values, 100), "seconds": values,
            })
        };
        json!({
            "startToLeader": times(&self.start_to_leader),
            "gracefulHandOver": times(&self.graceful_hand_over),
            "signalToWork": times(&self.signal_to_work),
            "crashTakeOver": times(&self.crash_take_over),
            "requestsAMinute": self.requests_a_minute,
            "requestsAMinuteOnLeases": self.on_leases(),
            "cpuSecondsAnHour": self.cpu_seconds_an_hour,
            "leaderResidentMiB": self.leader_resident_mib,
            "standbyResidentMiB": self.standby_resident_mib,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&values, 50), Some(50.0));
        assert_eq!(percentile(&values, 99), Some(99.0));
        assert_eq!(percentile(&values, 100), Some(100.0));
        assert_eq!(percentile(&[3.0], 1), Some(3.0));
        assert_eq!(percentile(&[], 50), None);
    }

    #[test]
    fn requests_about_other_things_do_not_count_as_those_on_leases() {
        let mut figures = Figures::default();
        figures.requests_a_minute.insert("leases update".to_owned(), 30);
        figures.requests_a_minute.insert("leases watch".to_owned(), 1);
        figures.requests_a_minute.insert("others list".to_owned(), 7);
        assert_eq!(figures.on_leases(), 31);
    }
}
