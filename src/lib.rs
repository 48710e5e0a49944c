//! `orchestratord`, the Kubernetes operator of self-managed Materialize.
//!
//! Several replicas run; exactly one, the holder of the Lease `orchestratord`, reconciles.
//! `docs/architecture.md` says where everything lives.

pub mod api;
pub mod args;
pub mod clock;
pub mod controllers;
pub mod environmentd;
#[cfg(feature = "failpoints")]
pub mod failpoints;
pub mod gate;
pub mod kubernetes;
pub mod leadership;
pub mod run;
pub mod telemetry;
pub mod webhook;
