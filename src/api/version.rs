//! environmentd's version, read from its image's tag: what a version can do, and which upgrades are allowed.
//! See `docs/reference/materialize-resource.md`.

mod upgrade;

use semver::{BuildMetadata, Prerelease, Version};

pub use upgrade::{UpgradeRefusal, check_upgrade};

/// The version of an environmentd image, as far as it can be told from the reference.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ImageVersion {
    /// The tag is `v` and a semantic version.
    Known(Version),
    /// The reference has a digest, no tag, or a tag of another form. It is taken for the newest version.
    Unknown,
}

// === impl ImageVersion ===

impl ImageVersion {
    /// Reads the version: the text after the last `:` must start with `v`, `--` stands for `+` (which tags can't have),
    /// and the rest must be a semantic version. Callers warn about [`Self::Unknown`], naming the resource.
    pub fn of(image: &str) -> Self {
        image
            .rsplit_once(':')
            .and_then(|(_, tag)| tag.strip_prefix('v'))
            .and_then(|text| Version::parse(&text.replace("--", "+")).ok())
            .map_or(Self::Unknown, Self::Known)
    }

    /// Whether environmentd reads a licence key file (0.140.0-dev.0).
    pub fn supports_license_key(&self) -> bool {
        self.at_least(&dev(0, 140, 0))
    }

    /// Whether licence checks can be switched off by an argument (from 0.143.0, before 0.153.0).
    pub fn supports_disabling_license_key_checks(&self) -> bool {
        self.at_least(&Version::new(0, 143, 0)) && !self.always_mounts_license_key()
    }

    /// Whether environmentd knows the scheduling arguments for clusterd (affinity and tolerations of services, 0.144.0).
    pub fn supports_service_scheduling(&self) -> bool {
        self.at_least(&Version::new(0, 144, 0))
    }

    /// Whether environmentd reads its listeners from a file (0.147.0-dev.0). Password login begins there too.
    pub fn supports_listeners_config(&self) -> bool {
        self.at_least(&dev(0, 147, 0))
    }

    /// Whether the licence key is mounted even if checks are disabled (0.153.0).
    pub fn always_mounts_license_key(&self) -> bool {
        self.at_least(&Version::new(0, 153, 0))
    }

    /// Whether environmentd passes annotations on to clusterd's pods (0.154.0).
    pub fn supports_service_annotations(&self) -> bool {
        self.at_least(&Version::new(0, 154, 0))
    }

    /// Whether environmentd refuses to start without a licence key (0.161.0).
    pub fn requires_license_key(&self) -> bool {
        self.at_least(&Version::new(0, 161, 0))
    }

    /// Whether environmentd follows a file of system parameters (26.1.0-dev.0).
    pub fn supports_system_parameter_configmap(&self) -> bool {
        self.at_least(&dev(26, 1, 0))
    }

    /// Whether listeners have roles per group of routes (26.32.0).
    pub fn supports_route_group_roles(&self) -> bool {
        self.at_least(&Version::new(26, 32, 0))
    }

    /// Whether environmentd knows the priority class of clusterd's pods (26.42.0-dev.0).
    pub fn supports_priority_class(&self) -> bool {
        self.at_least(&dev(26, 42, 0))
    }

    /// Compares by precedence: a pre-release is lower than its release, build metadata does not count.
    fn at_least(&self, minimum: &Version) -> bool {
        match self {
            Self::Known(version) => version.cmp_precedence(minimum).is_ge(),
            Self::Unknown => true,
        }
    }
}

/// The first development version of a release: `major.minor.patch-dev.0`.
fn dev(major: u64, minor: u64, patch: u64) -> Version {
    Version {
        major,
        minor,
        patch,
        // "dev.0" is a well-formed pre-release; a test of every gate's lower edge would notice the empty fallback.
        pre: Prerelease::new("dev.0").unwrap_or(Prerelease::EMPTY),
        build: BuildMetadata::EMPTY,
    }
}

#[cfg(test)]
mod tests;
