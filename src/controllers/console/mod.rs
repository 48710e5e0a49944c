//! The Console controller: the web console of an environment.
pub mod build;
