//! Version `v1`: served through the conversion webhook, never stored and never reconciled.
//!
//! The types exist for the schema and as a description of what clients see. Conversion works on JSON, not on them: a
//! partial object must not gain defaults (decision W2).

mod materialize;

pub use materialize::{Materialize, MaterializeSpec, MaterializeStatus};
