//! Flags about images of managed pods.

use std::{collections::BTreeMap, fmt};

use super::{KeyValue, parse};

/// Image tags and pull policy, as flags.
#[derive(Clone, Debug, clap::Args)]
pub struct ImagesArgs {
    /// Tag of the console where --console-image-tag-map has no entry for environmentd's tag.
    #[arg(long, value_name = "TAG")]
    pub console_image_tag_default: String,

    /// Tag of the console for one tag of environmentd; repeatable.
    #[arg(long, value_name = "ENVIRONMENTD_TAG=CONSOLE_TAG")]
    pub console_image_tag_map: Vec<KeyValue>,

    /// Pull policy of managed pods.
    #[arg(long, value_name = "POLICY", value_enum, default_value_t = ImagePullPolicy::Always)]
    pub image_pull_policy: ImagePullPolicy,
}

/// Image tags and pull policy.
#[derive(Clone, Debug)]
pub struct Images {
    /// Tag of the console where the map has no entry.
    pub console_image_tag_default: String,
    /// environmentd's tag to the console's.
    pub console_image_tag_map: BTreeMap<String, String>,
    /// Pull policy of managed pods.
    pub image_pull_policy: ImagePullPolicy,
}

/// When a node pulls an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ImagePullPolicy {
    /// At each start of a container.
    Always,
    /// If the node does not have it.
    IfNotPresent,
    /// Never: it must be there.
    Never,
}

// === impl ImagePullPolicy ===

impl ImagePullPolicy {
    /// Kubernetes' name: `Always`, `IfNotPresent` or `Never`.
    pub fn as_kubernetes(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::IfNotPresent => "IfNotPresent",
            Self::Never => "Never",
        }
    }

    /// The name that this flag, and environmentd's of the same kind, take: `always`, `if-not-present` or `never`.
    pub fn as_kebab(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::IfNotPresent => "if-not-present",
            Self::Never => "never",
        }
    }
}

impl fmt::Display for ImagePullPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_kebab())
    }
}

// === impl Images ===

impl From<ImagesArgs> for Images {
    fn from(args: ImagesArgs) -> Self {
        Self {
            console_image_tag_default: args.console_image_tag_default,
            console_image_tag_map: parse::to_map(args.console_image_tag_map),
            image_pull_policy: args.image_pull_policy,
        }
    }
}
