//! Which image may follow which: the upgrade window.

use semver::Version;

use super::ImageVersion;

/// Why an image may not follow the active one. The text is shown to the user.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum UpgradeRefusal {
    /// The next version is lower than the active one.
    #[error(
        "refusing to downgrade from v{active} to v{next}: environmentd can't read the catalog of a newer version. \
         Set environmentdImageRef to v{active} or newer"
    )]
    Downgrade {
        /// The version that runs.
        active: Version,
        /// The version asked for.
        next: Version,
    },
    /// The next version is further away than one step.
    #[error("refusing to upgrade from v{active} to v{next}: {hint}")]
    TooFar {
        /// The version that runs.
        active: Version,
        /// The version asked for.
        next: Version,
        /// Which step is allowed instead.
        hint: String,
    },
}

/// Judges whether `next_image` may follow `active_image`, the image of the last completed rollout.
///
/// Before the first promotion (`active_generation` is 0) any image may replace any other (decision R12), and so it is
/// where one of the versions can't be told.
///
/// # Errors
/// The upgrade is refused, with the reason.
pub fn check_upgrade(active_generation: u64, active_image: &str, next_image: &str) -> Result<(), UpgradeRefusal> {
    if active_generation == 0 {
        return Ok(());
    }
    let (ImageVersion::Known(active), ImageVersion::Known(next)) =
        (ImageVersion::of(active_image), ImageVersion::of(next_image))
    else {
        return Ok(());
    };
    if next.cmp_precedence(&active).is_lt() {
        return Err(UpgradeRefusal::Downgrade { active, next });
    }
    match refused_step(&active, &next) {
        None => Ok(()),
        Some(hint) => Err(UpgradeRefusal::TooFar { active, next, hint }),
    }
}

/// What to do instead, if the step from `active` up to `next` is too far.
fn refused_step(active: &Version, next: &Version) -> Option<String> {
    match (active.major, next.major) {
        (0, 0) => {
            let long_step = active.minor == 130 && next.minor == 147;
            let reachable = active.minor.saturating_add(1);
            (!long_step && next.minor > reachable).then(|| {
                let long = if active.minor == 130 { " or v0.147" } else { "" };
                format!("the next version must not be beyond v0.{reachable}{long}")
            })
        }
        (0, 26) => {
            let allowed = (active.minor == 147 && active.patch >= 20) || active.minor >= 164;
            (!allowed).then(|| "go through v0.147.20 (or v0.164) first".to_owned())
        }
        (0, _) => Some("v0 is followed by v26; go through v0.147.20 (or v0.164) first".to_owned()),
        (26.., next_major) => {
            let reachable = active.major.saturating_add(1);
            (next_major > reachable).then(|| format!("go through v{reachable} first, one major version at a time"))
        }
        _ => None,
    }
}
