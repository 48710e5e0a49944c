//! What durations and names a certificate may have: cert-manager's rules, checked before anything is applied.

use std::time::Duration;

use super::certificate::InvalidCertificate;

/// The shortest lifetime that cert-manager accepts.
const SHORTEST_LIFETIME: Duration = Duration::from_hours(1);
/// The shortest time before its end at which cert-manager renews a certificate.
const SHORTEST_RENEWAL: Duration = Duration::from_mins(5);
/// The lifetime that cert-manager chooses if none is given.
const DEFAULT_LIFETIME: Duration = Duration::from_hours(90 * 24);

/// The longest name that DNS knows.
const LONGEST_NAME: usize = 253;
/// The longest part of a name between two dots.
const LONGEST_LABEL: usize = 63;

/// Checks `duration` and `renewBefore`, each a Go duration.
pub(super) fn check_times(duration: Option<&str>, renew_before: Option<&str>) -> Result<(), InvalidCertificate> {
    let lifetime = duration
        .map(|text| time("duration", text, SHORTEST_LIFETIME, "1h"))
        .transpose()?;
    let renewal = renew_before
        .map(|text| time("renewBefore", text, SHORTEST_RENEWAL, "5m"))
        .transpose()?;
    match (renewal, renew_before) {
        (Some(renewal), Some(text)) if renewal >= lifetime.unwrap_or(DEFAULT_LIFETIME) => {
            Err(InvalidCertificate::RenewBefore {
                renew_before: text.to_owned(),
                duration: duration.unwrap_or("2160h").to_owned(),
            })
        }
        _ => Ok(()),
    }
}

/// Checks that `name` can be a DNS name, perhaps with `*` as its first part.
pub(super) fn check_dns_name(name: &str) -> Result<(), InvalidCertificate> {
    let is_edge = |character: u8| character.is_ascii_alphanumeric() || character == b'_';
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        (1..=LONGEST_LABEL).contains(&bytes.len())
            && bytes.iter().all(|byte| is_edge(*byte) || *byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let rest = name.strip_prefix("*.").unwrap_or(name);
    if name.len() <= LONGEST_NAME && rest.split('.').all(is_label) {
        Ok(())
    } else {
        Err(InvalidCertificate::DnsName(name.to_owned()))
    }
}

fn time(
    field: &'static str,
    text: &str,
    shortest: Duration,
    shortest_text: &'static str,
) -> Result<Duration, InvalidCertificate> {
    let invalid = || InvalidCertificate::Duration {
        field,
        value: text.to_owned(),
    };
    match go_duration(text).ok_or_else(invalid)? {
        time if time < shortest => Err(InvalidCertificate::TooShort {
            field,
            value: text.to_owned(),
            shortest: shortest_text,
        }),
        time => Ok(time),
    }
}

/// A duration as Go writes it: decimal numbers, each with a unit of `h`, `m`, `s`, `ms`, `us`, `µs` or `ns`.
///
/// None if it can't be read, is negative, or is longer than Go's 292 years.
fn go_duration(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanoseconds = 0.0;
    while !rest.is_empty() {
        let number = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let (number, tail) = rest.split_at(number);
        let unit = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit);
        let factor = match unit {
            "h" => 3.6e12,
            "m" => 6e10,
            "s" => 1e9,
            "ms" => 1e6,
            "us" | "µs" | "μs" => 1e3,
            "ns" => 1.0,
            _ => return None,
        };
        nanoseconds += number.parse::<f64>().ok()? * factor;
        rest = tail;
    }
    // Go counts nanoseconds in a signed number of 64 bits.
    (nanoseconds < 9.2e18).then(|| Duration::from_secs_f64(nanoseconds / 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        for (text, seconds) in [
            ("2160h", 7_776_000.0),
            ("1h30m", 5_400.0),
            ("1.5h", 5_400.0),
            ("90m", 5_400.0),
            ("+5s", 5.0),
            ("250ms", 0.25),
            (".5s", 0.5),
            ("0", 0.0),
            ("0s", 0.0),
        ] {
            assert_eq!(go_duration(text), Some(Duration::from_secs_f64(seconds)), "{text}");
        }
        for text in [
            "",
            "+",
            "90d",
            "1h 30m",
            "90",
            "h",
            "-1h",
            "1..5h",
            "soon",
            "5H",
            "9999999999h",
        ] {
            assert_eq!(go_duration(text), None, "{text}");
        }
    }

    #[test]
    fn lifetimes_are_at_least_an_hour_and_renewals_five_minutes_before_the_end() {
        assert_eq!(check_times(None, None), Ok(()));
        assert_eq!(check_times(Some("1h"), Some("5m")), Ok(()));
        assert!(matches!(
            check_times(Some("59m"), None),
            Err(InvalidCertificate::TooShort {
                field: "duration",
                shortest: "1h",
                ..
            })
        ));
        assert!(matches!(
            check_times(None, Some("4m59s")),
            Err(InvalidCertificate::TooShort {
                field: "renewBefore",
                shortest: "5m",
                ..
            })
        ));
        assert!(matches!(
            check_times(Some("90d"), None),
            Err(InvalidCertificate::Duration { field: "duration", .. })
        ));
    }

    #[test]
    fn a_certificate_is_renewed_within_its_lifetime() {
        for (duration, renew_before, fits) in [
            (Some("2h"), "119m", true),
            (Some("2h"), "2h", false),
            (Some("2h"), "120m", false),
            (None, "2159h", true),
            (None, "2160h", false),
        ] {
            let verdict = check_times(duration, Some(renew_before));
            assert_eq!(verdict.is_ok(), fits, "{duration:?} {renew_before}: {verdict:?}");
        }
    }

    #[test]
    fn names_are_those_of_dns() {
        let long_label = "a".repeat(63);
        let too_long_label = "a".repeat(64);
        let too_long = [long_label.as_str(); 4].join(".");
        for name in [
            "a",
            "mz.example.com",
            "*.example.com",
            "a_b.example.com",
            "1.2.3.4",
            "X-1.y",
            long_label.as_str(),
        ] {
            assert_eq!(check_dns_name(name), Ok(()), "{name}");
        }
        for name in [
            "",
            ".",
            "a..b",
            "a.",
            "-a.com",
            "a-.com",
            "a b",
            "ä.com",
            "*",
            "*.",
            "a.*.com",
            "https://a.com",
            "a:80",
            too_long_label.as_str(),
            too_long.as_str(),
        ] {
            assert_eq!(
                check_dns_name(name),
                Err(InvalidCertificate::DnsName(name.to_owned())),
                "{name}"
            );
        }
    }
}
