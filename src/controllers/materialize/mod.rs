//! The Materialize controller: dereference, validate, decide, build, apply, status.
//!
//! [`decide`] is a pure function from what was observed to the next action, [`build`] renders objects, [`validate`] and
//! [`license`] check what users give; none of them does I/O. `pass` puts them together, [`run`] runs the passes. What
//! belongs to Balancer or Console once they exist is their controllers'.

mod apply;
pub mod build;
mod controller;
pub mod decide;
mod dereference;
mod error;
mod inquiry;
pub mod license;
mod messages;
mod needs_update;
mod pass;
mod pods;
mod proof;
mod status;
mod tail;
pub mod validate;
mod watches;

pub use controller::run;
pub use error::Error;
pub use needs_update::NeedsUpdate;
