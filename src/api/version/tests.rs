//! Tables of docs/reference/materialize-resource.md, "Versions".

use super::*;

fn image(version: &str) -> String {
    format!("materialize/environmentd:v{version}")
}

#[test]
fn versions_are_read_from_the_tag() {
    for (reference, expected) in [
        ("materialize/environmentd:v26.1.0", Some("26.1.0")),
        ("environmentd:v26.1.0-dev.0", Some("26.1.0-dev.0")),
        (
            "reg:5000/environmentd:v26.1.0-dev.0--pr.g1234",
            Some("26.1.0-dev.0+pr.g1234"),
        ),
        ("materialize/environmentd:26.1.0", None),
        ("materialize/environmentd:v26.1", None),
        ("materialize/environmentd:latest", None),
        ("materialize/environmentd", None),
        ("reg:5000/environmentd", None),
        ("materialize/environmentd:v26.1.0@sha256:abc", None),
        ("materialize/environmentd@sha256:abc", None),
        ("materialize/environmentd:v", None),
        ("", None),
    ] {
        let expected = expected.map_or(ImageVersion::Unknown, |text| {
            ImageVersion::Known(Version::parse(text).expect("a version of the table"))
        });
        assert_eq!(ImageVersion::of(reference), expected, "{reference}");
    }
}

type Gate = fn(&ImageVersion) -> bool;

#[test]
fn gates_open_at_their_version_and_not_before() {
    let gates: [(&str, Gate, &str, &str); 9] = [
        (
            "licence key",
            ImageVersion::supports_license_key,
            "0.139.9",
            "0.140.0-dev.0",
        ),
        (
            "service scheduling",
            ImageVersion::supports_service_scheduling,
            "0.144.0-dev.0",
            "0.144.0",
        ),
        (
            "listeners",
            ImageVersion::supports_listeners_config,
            "0.146.9",
            "0.147.0-dev.0",
        ),
        (
            "licence always mounted",
            ImageVersion::always_mounts_license_key,
            "0.153.0-dev.0",
            "0.153.0",
        ),
        (
            "annotations",
            ImageVersion::supports_service_annotations,
            "0.154.0-dev.0",
            "0.154.0",
        ),
        (
            "licence required",
            ImageVersion::requires_license_key,
            "0.160.9",
            "0.161.0",
        ),
        (
            "system parameters",
            ImageVersion::supports_system_parameter_configmap,
            "26.0.9",
            "26.1.0-dev.0",
        ),
        (
            "route groups",
            ImageVersion::supports_route_group_roles,
            "26.32.0-dev.0",
            "26.32.0",
        ),
        (
            "priority class",
            ImageVersion::supports_priority_class,
            "26.41.9",
            "26.42.0-dev.0",
        ),
    ];
    for (name, gate, below, at) in gates {
        assert!(!gate(&ImageVersion::of(&image(below))), "{name} is open at {below}");
        assert!(gate(&ImageVersion::of(&image(at))), "{name} is closed at {at}");
        assert!(gate(&ImageVersion::Unknown), "{name} is closed for an unknown version");
    }
}

#[test]
fn a_gate_at_a_development_version_is_closed_for_earlier_pre_releases() {
    assert!(!ImageVersion::of(&image("0.140.0-alpha.1")).supports_license_key());
}

#[test]
fn disabling_licence_checks_has_two_edges() {
    for (version, expected) in [
        ("0.142.9", false),
        ("0.143.0-dev.0", false),
        ("0.143.0", true),
        ("0.152.9", true),
        ("0.153.0-dev.0", true),
        ("0.153.0", false),
        ("26.0.0", false),
    ] {
        assert_eq!(
            ImageVersion::of(&image(version)).supports_disabling_license_key_checks(),
            expected,
            "{version}"
        );
    }
    assert!(!ImageVersion::Unknown.supports_disabling_license_key_checks());
}

#[test]
fn allowed_upgrades() {
    for (active, next) in [
        ("0.83.0", "0.84.0"),
        ("0.83.0", "0.83.0"),
        ("0.83.2", "0.83.10"),
        ("0.83.0", "0.84.0-dev.0"),
        ("0.130.0", "0.147.0"),
        ("0.130.9", "0.147.20"),
        ("0.130.0", "0.131.0"),
        ("0.147.20", "26.0.0"),
        ("0.147.21", "26.5.0"),
        ("0.164.0", "26.0.0"),
        ("0.165.3", "26.1.0"),
        ("26.0.0", "26.11.0"),
        ("26.0.0", "27.7.3"),
        ("27.0.0", "28.0.0"),
        ("26.11.0-dev.0--b", "26.11.0-dev.0--a"),
        ("26.11.0-dev.0", "26.11.0"),
        ("1.2.3", "9.0.0"),
    ] {
        assert_eq!(
            check_upgrade(3, &image(active), &image(next)),
            Ok(()),
            "{active} -> {next}"
        );
    }
}

#[test]
fn refused_upgrades() {
    for (active, next) in [
        ("0.83.0", "0.85.0"),
        ("0.147.1", "26.0.0"),
        ("0.147.19", "26.0.0"),
        ("0.148.0", "26.0.0"),
        ("0.163.9", "26.0.0"),
        ("0.130.0", "26.1.0"),
        ("0.130.0", "0.148.0"),
        ("0.129.0", "0.147.0"),
        ("26.0.0", "28.0.1"),
        ("0.83.3", "1.83.3"),
        ("0.164.0", "27.0.0"),
    ] {
        let refusal = check_upgrade(1, &image(active), &image(next));
        assert!(
            matches!(refusal, Err(UpgradeRefusal::TooFar { .. })),
            "{active} -> {next}: {refusal:?}"
        );
    }
}

#[test]
fn refused_downgrades_say_so() {
    for (active, next) in [
        ("0.83.3", "0.83.2"),
        ("26.0.0", "0.164.0"),
        ("26.1.0", "26.1.0-dev.0"),
        ("27.0.0", "26.9.9"),
        ("2.0.0", "1.0.0"),
    ] {
        let refusal = check_upgrade(1, &image(active), &image(next)).expect_err(active);
        assert!(
            matches!(refusal, UpgradeRefusal::Downgrade { .. }),
            "{active} -> {next}"
        );
        assert!(refusal.to_string().contains("downgrade"));
    }
}

#[test]
fn nothing_is_refused_before_the_first_promotion() {
    assert_eq!(check_upgrade(0, &image("0.83.3"), &image("0.83.2")), Ok(()));
    assert_eq!(check_upgrade(0, &image("26.0.0"), &image("28.0.1")), Ok(()));
}

#[test]
fn versions_that_cannot_be_told_are_allowed() {
    let known = image("26.0.0");
    for other in [
        "materialize/environmentd:latest",
        "materialize/environmentd@sha256:abc",
        "",
    ] {
        assert_eq!(check_upgrade(1, &known, other), Ok(()));
        assert_eq!(check_upgrade(1, other, &known), Ok(()));
    }
}

#[test]
fn the_largest_numbers_do_not_overflow() {
    let max = u64::MAX;
    let image = image(&format!("{max}.0.0"));
    assert_eq!(check_upgrade(1, &image, &image), Ok(()));
}
