//! Version `v1alpha1`: the stored version, and the only one that is reconciled.

mod balancer;
mod console;
mod materialize;

pub use balancer::{Balancer, BalancerSpec, BalancerStatus, FronteggRouting, StaticRouting};
pub use console::{BalancerdScheme, Console, ConsoleBalancerd, ConsoleSpec, ConsoleStatus};
pub use materialize::{Materialize, MaterializeSpec, MaterializeStatus};

#[cfg(test)]
mod tests;
