//! The machine below: processes, namespaces, mounts, cgroups, packages, and what is required of them.
//!
//! Nothing here knows about Kubernetes. Whatever the machine is asked to keep carries the prefix [`PREFIX`], so that it can be found and removed without any record.

pub(crate) mod cgroups;
pub(crate) mod mounts;
pub(crate) mod netns;
pub(crate) mod packages;
pub(crate) mod process;
pub(crate) mod requirements;
pub(crate) mod spawn;
pub(crate) mod sysctl;

/// What the names of network namespaces and cgroups of this program begin with.
pub(crate) const PREFIX: &str = "oe2e-";
