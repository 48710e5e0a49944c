//! The Go programs a cluster and its checks are made of, built from pinned modules under `e2e/tools/` and kept in the cache.
//!
//! A new program is a new [`Module`] or a further package of one; how the programs are *run* stands in `cluster/`.

mod build;
mod modules;

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::cache::{Cache, Key};
pub(crate) use modules::Module;

/// Where the programs of the modules are, once they are built.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    cache: Cache,
    modules: Vec<(Module, String)>,
}

// === impl Tools ===

impl Tools {
    /// Builds what is missing. With everything in place this only hashes a few small files.
    pub(crate) fn ensure(cache: &Cache, modules: &[Module]) -> Result<Self> {
        let mut keyed = Vec::new();
        for module in modules {
            let key = module.key()?;
            build::ensure(cache, *module, &key)?;
            keyed.push((*module, key));
        }
        Ok(Self {
            cache: cache.clone(),
            modules: keyed,
        })
    }

    /// The path of a program. One of a module that was not asked for has no path; starting it then fails with its bare name.
    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.modules
            .iter()
            .find(|(module, _)| module.programs().any(|name| name == program))
            .map_or_else(
                || PathBuf::from(program),
                |(module, key)| build::folder(&self.cache, *module, key).join(program),
            )
    }

    /// A command of a program.
    pub(crate) fn command(&self, program: &str) -> Command {
        Command::new(self.path(program))
    }

    /// Names the versions of all programs together.
    pub(crate) fn key(&self) -> String {
        let mut key = Key::default();
        for (_, module) in &self.modules {
            key.add(module.as_bytes());
        }
        key.finish()
    }
}
