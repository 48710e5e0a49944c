//! The version of a stand-in, which is the tag of its image, and the bounds that features begin and end at.

use std::cmp::Ordering;
use std::fmt;

use semver::{BuildMetadata, Prerelease};

/// The tag of the image, and the number in it where there is one.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    tag: String,
    number: Option<semver::Version>,
}

/// A version at which a feature begins or ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    major: u64,
    minor: u64,
    patch: u64,
    dev: bool,
}

// === impl Version ===

impl Version {
    /// Reads a tag such as `v26.43.0` or `v26.43.0-dev.0--main.gabc`. Any other tag is a version that is newer than all bounds.
    pub(crate) fn parse(tag: &str) -> Self {
        let number = tag
            .strip_prefix('v')
            .and_then(|rest| rest.replace("--", "+").parse().ok());
        Self {
            tag: tag.to_owned(),
            number,
        }
    }

    /// Whether a feature that began at `bound` is there.
    pub(crate) fn at_least(&self, bound: Bound) -> bool {
        self.number
            .as_ref()
            .is_none_or(|number| number.cmp_precedence(&bound.version()) != Ordering::Less)
    }

    /// The tag as it stands in the image reference.
    pub(crate) fn tag(&self) -> &str {
        &self.tag
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tag)
    }
}

// === impl Bound ===

impl Bound {
    /// A release.
    pub(crate) const fn release(major: u64, minor: u64, patch: u64) -> Self {
        Self {
            major,
            minor,
            patch,
            dev: false,
        }
    }

    /// The first development version before a release, `-dev.0`.
    pub(crate) const fn dev(major: u64, minor: u64, patch: u64) -> Self {
        Self {
            major,
            minor,
            patch,
            dev: true,
        }
    }

    fn version(self) -> semver::Version {
        let pre = if self.dev { "dev.0" } else { "" };
        semver::Version {
            major: self.major,
            minor: self.minor,
            patch: self.patch,
            pre: Prerelease::new(pre).unwrap_or(Prerelease::EMPTY),
            build: BuildMetadata::EMPTY,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.version())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precedence_ignores_build_metadata_and_puts_pre_releases_first() {
        let bound = Bound::release(26, 32, 0);
        for (tag, expected) in [
            ("v26.31.9", false),
            ("v26.32.0-dev.0", false),
            ("v26.32.0-rc.1--main.gabc", false),
            ("v26.32.0", true),
            ("v26.32.0--main.gabc", true),
            ("v27.0.0", true),
            ("v0.147.20", false),
        ] {
            assert_eq!(Version::parse(tag).at_least(bound), expected, "{tag}");
        }
        assert!(Version::parse("v26.42.0-dev.0").at_least(Bound::dev(26, 42, 0)));
        assert!(!Version::parse("v26.41.5").at_least(Bound::dev(26, 42, 0)));
    }

    #[test]
    fn a_tag_without_a_number_is_newer_than_everything() {
        for tag in ["latest", "26.0.0", "v26", "sha256abc"] {
            assert!(Version::parse(tag).at_least(Bound::release(999, 0, 0)), "{tag}");
        }
    }
}
