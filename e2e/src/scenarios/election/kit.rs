//! Contents of the Lease that other programs, other versions and people have left behind.

use serde_json::{Value, json};

use crate::proxy::{Answer, Fault};

/// A content of the Lease and what is right to do about it.
#[derive(Clone, Debug)]
pub(super) struct Content {
    /// Its name in messages.
    pub(super) name: &'static str,
    /// The specification, without what it leaves out.
    pub(super) spec: Value,
    /// Whether the object has a label, an annotation, an owner and a finalizer, all of which must survive.
    pub(super) decorated: bool,
    /// Whether it is deleted and held by its finalizer.
    pub(super) deleted: bool,
    /// What a replica does that finds it when it starts.
    pub(super) at_start: Patience,
    /// What replicas do when it appears while one of them leads.
    pub(super) in_steady_state: Patience,
    /// `leaseTransitions` after the next acquisition, where the protocol prescribes it.
    pub(super) transitions: Option<i64>,
}

/// How long the Lease is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// Not at all.
    None,
    /// For the lease duration of unchanged silence.
    LeaseDuration,
    /// The term goes on.
    TermGoesOn,
}

/// The highest value of `leaseTransitions`.
const MAXIMUM: i64 = i32::MAX as i64;

/// The contents; `identity` is that of the replica which starts first.
pub(super) fn contents(identity: &str) -> Vec<Content> {
    let released = |transitions: i64| json!({ "holderIdentity": "", "leaseTransitions": transitions });
    let ghost = |renewed: &str| {
        json!({
            "holderIdentity": "ghost", "leaseDurationSeconds": 15, "acquireTime": renewed, "renewTime": renewed,
            "leaseTransitions": 41,
        })
    };
    let long_ago = "1970-01-01T00:00:00.000000Z";
    let with = |mut spec: Value, key: &str, value: Value| {
        spec[key] = value;
        spec
    };
    let silent = |name, spec: Value| {
        let transitions = spec["leaseTransitions"].as_i64().unwrap_or_default() + 1;
        Content {
            name,
            spec,
            decorated: false,
            deleted: false,
            at_start: Patience::LeaseDuration,
            in_steady_state: Patience::LeaseDuration,
            transitions: Some(transitions),
        }
    };
    let free = |name, spec| Content {
        at_start: Patience::None,
        ..silent(name, spec)
    };
    vec![
        free("no specification", json!({})),
        free("an empty holder", released(5)),
        silent(
            "a blank as holder",
            json!({ "holderIdentity": " ", "leaseTransitions": 5 }),
        ),
        silent("a holder of long ago", ghost(long_ago)),
        silent("a holder of the future", ghost("2099-01-01T00:00:00.000000Z")),
        silent("only a holder", json!({ "holderIdentity": "ghost" })),
        Content {
            // To the replicas it looks exactly like their own release (decision L14).
            in_steady_state: Patience::None,
            transitions: Some(MAXIMUM),
            ..free("as many transitions as there can be", released(MAXIMUM))
        },
        silent(
            "a short duration",
            with(ghost(long_ago), "leaseDurationSeconds", json!(1)),
        ),
        silent(
            "a long duration",
            with(ghost(long_ago), "leaseDurationSeconds", json!(3600)),
        ),
        silent(
            "a strategy of a coordinated election",
            with(
                with(ghost(long_ago), "strategy", json!("OldestEmulationVersion")),
                "preferredHolder",
                json!("ghost"),
            ),
        ),
        silent(
            "a long name",
            with(ghost(long_ago), "holderIdentity", json!("g".repeat(3000))),
        ),
        Content {
            decorated: true,
            ..free("decorated metadata", released(5))
        },
        Content {
            decorated: true,
            deleted: true,
            in_steady_state: Patience::TermGoesOn,
            ..free("deleted, but held by a finalizer", released(5))
        },
        Content {
            transitions: None,
            ..free(
                "the replica's own name",
                with(ghost(long_ago), "holderIdentity", json!(identity)),
            )
        },
        silent(
            "a name that begins with the replica's",
            with(ghost(long_ago), "holderIdentity", json!(format!("{identity}0"))),
        ),
        silent(
            "the beginning of the replica's name",
            with(
                ghost(long_ago),
                "holderIdentity",
                json!(&identity[..identity.len() - 1]),
            ),
        ),
    ]
}

/// Answers about the Lease that no API server of today gives, but a proxy, a broken one, or one of tomorrow might.
pub(super) fn wrong_answers() -> Vec<(&'static str, Fault)> {
    let rewrite = |change: fn(&mut Value)| {
        Fault::Rewrite(std::sync::Arc::new(move |mut body: Value| {
            if let Some(items) = body["items"].as_array_mut() {
                items.iter_mut().for_each(change);
            } else {
                change(&mut body);
            }
            body.to_string()
        }))
    };
    let answer = |body: &str| {
        Fault::Answer(Answer {
            status: 200,
            headers: Vec::new(),
            body: body.to_owned(),
        })
    };
    vec![
        (
            "a negative duration",
            rewrite(|lease| lease["spec"]["leaseDurationSeconds"] = json!(-1)),
        ),
        (
            "a time without a fraction",
            rewrite(|lease| lease["spec"]["renewTime"] = json!("2026-01-01T00:00:00Z")),
        ),
        (
            "a time that is none",
            rewrite(|lease| lease["spec"]["renewTime"] = json!("yesterday")),
        ),
        (
            "fields nobody knows",
            rewrite(|lease| {
                lease["spec"]["future"] = json!({ "a": [1, 2.5, null] });
                lease["future"] = json!("b");
            }),
        ),
        (
            "a Status with 200",
            answer(r#"{"kind":"Status","apiVersion":"v1","status":"Success","code":200}"#),
        ),
        ("half an object", answer(r#"{"kind":"Lease","apiVersion":"coordinat"#)),
        ("an empty body", answer("")),
        ("no object", answer("[]")),
    ]
}
