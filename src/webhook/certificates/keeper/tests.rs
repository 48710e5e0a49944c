//! Against real files and a stopped clock.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;

use rustls::sign::CertifiedKey;

use super::super::files::Files;
use super::super::pair::Material;
use super::super::testing::{Ca, NAME, ca};
use super::*;
use crate::telemetry::Readiness;
use crate::webhook::sightings::{PROPAGATION, Sighting};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

struct Fixture {
    folder: PathBuf,
    resolver: Arc<Resolver>,
    own: watch::Receiver<Option<Authorities>>,
    sightings: watch::Sender<Sightings>,
    readiness: StickyReadiness,
    metrics: Metrics,
    clock: Clock,
}

impl Fixture {
    /// A keeper that runs, with files of this material.
    fn start(material: &Material) -> Self {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("orchestratord-keeper-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let clock = Clock::tokio();
        let (own, own_receiver) = watch::channel(None);
        let (sightings, sightings_receiver) = watch::channel(Sightings::default());
        let fixture = Self {
            resolver: Arc::new(Resolver::default()),
            own: own_receiver,
            sightings,
            readiness: StickyReadiness::not_yet("not looked at"),
            metrics: Metrics::new(clock.clone()).unwrap(),
            clock: clock.clone(),
            folder,
        };
        fixture.write(material);
        let keeper = Keeper {
            source: Source::Files(Files {
                authorities: fixture.folder.join("ca.crt"),
                certificate: fixture.folder.join("tls.crt"),
                key: fixture.folder.join("tls.key"),
            }),
            name: NAME.to_owned(),
            interval: Duration::from_hours(1),
            resolver: fixture.resolver.clone(),
            own,
            sightings: sightings_receiver,
            readiness: fixture.readiness.clone(),
            metrics: fixture.metrics.clone(),
            clock,
        };
        tokio::spawn(keeper.run());
        fixture
    }

    fn write(&self, material: &Material) {
        for (name, bytes) in [
            ("ca.crt", &material.authorities),
            ("tls.crt", &material.certificate),
            ("tls.key", &material.key),
        ] {
            std::fs::write(self.folder.join(name), bytes).unwrap();
        }
    }

    /// Waits until the CRD must name exactly the authorities of these.
    async fn wants(&mut self, cas: &[&Ca]) {
        let expected = authorities(cas);
        self.own.wait_for(|own| own.as_ref() == Some(&expected)).await.unwrap();
    }

    /// The CRD names these from now on.
    fn see(&self, cas: &[&Ca]) {
        let sightings: Vec<_> = authorities(cas)
            .iter()
            .map(|(fingerprint, _)| Sighting {
                fingerprint: fingerprint.clone(),
                age: None,
            })
            .collect();
        self.sightings
            .send_modify(|known| *known = known.after(sightings, false, self.clock.now()));
    }

    fn served(&self) -> Option<Arc<CertifiedKey>> {
        self.resolver.served()
    }

    fn serves(&self, material: &Material) -> bool {
        let expected = super::super::authority::certificates(&material.certificate).unwrap();
        self.served().is_some_and(|served| served.cert[0] == expected[0].0)
    }

    fn reason(&self) -> String {
        match self.readiness.get() {
            Readiness::Ready => "ready".to_owned(),
            Readiness::NotReady(reason) => reason,
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The stopped clock's present is its start.
fn at(hours: i64) -> Timestamp {
    Timestamp::constant(1_767_225_600, 0) + SignedDuration::from_hours(hours)
}

fn material(ca: &Ca) -> Material {
    ca.material_of(&ca.leaf(NAME, at(-1), at(1000)))
}

fn authorities(cas: &[&Ca]) -> Authorities {
    let mut all = Authorities::default();
    for ca in cas {
        all.extend(&Authorities::from_pem(ca.pem.as_bytes()).unwrap());
    }
    all
}

#[tokio::test(start_paused = true)]
async fn the_first_pair_is_served_at_once_and_ready_with_its_authority() {
    let one = ca("one", at(9000));
    let pair = material(&one);
    let mut fixture = Fixture::start(&pair);
    fixture.wants(&[&one]).await;
    assert!(fixture.serves(&pair));
    assert!(fixture.reason().contains("does not name"), "{}", fixture.reason());
    let shown = format!(
        "orchestratord_webhook_cert_not_after_seconds {}\n",
        at(1000).as_second()
    );
    assert!(fixture.metrics.render().unwrap().contains(&shown));
    fixture.see(&[&one]);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(fixture.reason(), "ready");
}

#[tokio::test(start_paused = true)]
async fn readiness_waits_for_an_authority_that_was_added() {
    let (one, other) = (ca("one", at(9000)), ca("other", at(9000)));
    let mut fixture = Fixture::start(&material(&one));
    fixture.wants(&[&one]).await;
    fixture.see(&[&other]);
    fixture.see(&[&one, &other]);
    tokio::time::sleep(PROPAGATION.saturating_sub(Duration::from_millis(1))).await;
    assert!(fixture.reason().contains("was added"), "{}", fixture.reason());
    tokio::time::sleep(Duration::from_millis(2)).await;
    assert_eq!(fixture.reason(), "ready");
}

#[tokio::test(start_paused = true)]
async fn a_new_authority_goes_ahead_of_its_pair() {
    let (old, new) = (ca("old", at(9000)), ca("new", at(9000)));
    let (first, second) = (material(&old), material(&new));
    let mut fixture = Fixture::start(&first);
    fixture.wants(&[&old]).await;
    fixture.see(&[&old]);
    fixture.write(&second);
    fixture.wants(&[&old, &new]).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(fixture.serves(&first), "the CRD does not name it yet");
    fixture.see(&[&old, &new]);
    tokio::time::sleep(PROPAGATION.saturating_sub(Duration::from_millis(1))).await;
    assert!(fixture.serves(&first), "not every API server knows it yet");
    fixture.wants(&[&new]).await;
    assert!(fixture.serves(&second));
}

#[tokio::test(start_paused = true)]
async fn a_renewed_leaf_is_served_within_seconds() {
    let one = ca("one", at(9000));
    let mut fixture = Fixture::start(&material(&one));
    fixture.wants(&[&one]).await;
    fixture.see(&[&one]);
    let renewed = material(&one);
    fixture.write(&renewed);
    tokio::time::sleep(Duration::from_secs(11)).await;
    // Reading files takes real time, which the stopped clock does not see.
    while !fixture.serves(&renewed) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn garbage_changes_nothing_and_the_next_good_pair_is_taken() {
    let one = ca("one", at(9000));
    let first = material(&one);
    let mut fixture = Fixture::start(&first);
    fixture.wants(&[&one]).await;
    fixture.see(&[&one]);
    let mut half = material(&one);
    half.key.clone_from(&first.key);
    for damaged in [
        half,
        Material {
            authorities: b"garbage".to_vec(),
            ..first.clone()
        },
    ] {
        fixture.write(&damaged);
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert!(fixture.serves(&first));
        assert_eq!(*fixture.own.borrow(), Some(authorities(&[&one])));
    }
    let second = material(&one);
    fixture.write(&second);
    while !fixture.serves(&second) {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(fixture.reason(), "ready");
}

#[tokio::test(start_paused = true)]
async fn an_unusable_first_pair_is_named_and_waited_for() {
    let one = ca("one", at(9000));
    let good = material(&one);
    let mut fixture = Fixture::start(&one.material_of(&one.leaf(NAME, at(1), at(2))));
    fixture.wants(&[]).await;
    assert!(fixture.served().is_none());
    assert!(
        fixture.reason().contains("tls.crt") && fixture.reason().contains("not valid before"),
        "{}",
        fixture.reason()
    );
    std::fs::remove_file(fixture.folder.join("tls.key")).unwrap();
    while !fixture.reason().contains("tls.key") {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    fixture.write(&good);
    fixture.wants(&[&one]).await;
    assert!(fixture.serves(&good));
}
