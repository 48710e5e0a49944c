//! The one folder outside the clone where everything built for the cluster is kept.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

/// The cache folder (docs/local-cluster.md): `tools/`, `images/`, and `target/` where cargo's output goes unless `CARGO_TARGET_DIR` says otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    root: PathBuf,
}

// === impl Cache ===

impl Cache {
    /// `$ORCHESTRATORD_E2E_CACHE`, else `$XDG_CACHE_HOME/orchestratord-e2e`, else `~/.cache/orchestratord-e2e`.
    pub(crate) fn locate() -> Result<Self> {
        Self::from_variables(|name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<Self> {
        let root = if let Some(own) = variable("ORCHESTRATORD_E2E_CACHE") {
            own
        } else if let Some(shared) = variable("XDG_CACHE_HOME") {
            shared.join("orchestratord-e2e")
        } else if let Some(home) = variable("HOME") {
            home.join(".cache/orchestratord-e2e")
        } else {
            bail!("no place for the cache: set ORCHESTRATORD_E2E_CACHE (or HOME) to a folder with 8 GB of space");
        };
        if !root.is_absolute() {
            bail!(
                "the cache folder {} must be an absolute path: correct ORCHESTRATORD_E2E_CACHE or XDG_CACHE_HOME",
                root.display()
            );
        }
        Ok(Self { root })
    }

    /// The folder itself.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where the Go programs are kept.
    pub(crate) fn tools(&self) -> PathBuf {
        self.root.join("tools")
    }

    /// Where image archives are kept.
    pub(crate) fn images(&self) -> PathBuf {
        self.root.join("images")
    }

    /// Where cargo builds what goes into images: `CARGO_TARGET_DIR`, else `target/` here.
    pub(crate) fn cargo_target(&self) -> PathBuf {
        env::var_os("CARGO_TARGET_DIR")
            .filter(|value| !value.is_empty())
            .map_or_else(|| self.root.join("target"), PathBuf::from)
    }
}

/// A short name for what something was made from: each part counts together with its length, so that shifting bytes between parts changes the key.
#[derive(Default)]
pub(crate) struct Key(Sha256);

// === impl Key ===

impl Key {
    /// Adds a part.
    pub(crate) fn add(&mut self, part: &[u8]) -> &mut Self {
        self.0.update(part.len().to_be_bytes());
        self.0.update(part);
        self
    }

    /// Adds the content of a file.
    pub(crate) fn add_file(&mut self, path: &Path) -> Result<&mut Self> {
        let content = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        Ok(self.add(&content))
    }

    /// Sixteen hexadecimal digits.
    pub(crate) fn finish(self) -> String {
        hex(&self.0.finalize()[..8])
    }
}

/// Bytes in lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The top of the clone: cargo tells it when it runs the program, and it is known from the build otherwise.
pub(crate) fn repository() -> PathBuf {
    let package =
        env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map_or_else(|| package.clone(), Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> Result<Cache> {
        Cache::from_variables(|name| {
            pairs
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| PathBuf::from(value))
        })
    }

    #[test]
    fn the_own_variable_wins_over_the_shared_one_and_that_over_home() {
        let all = [
            ("ORCHESTRATORD_E2E_CACHE", "/own"),
            ("XDG_CACHE_HOME", "/xdg"),
            ("HOME", "/home/a"),
        ];
        assert_eq!(with(&all).unwrap().root(), Path::new("/own"));
        assert_eq!(with(&all[1..]).unwrap().root(), Path::new("/xdg/orchestratord-e2e"));
        assert_eq!(
            with(&all[2..]).unwrap().root(),
            Path::new("/home/a/.cache/orchestratord-e2e")
        );
    }

    #[test]
    fn no_place_and_a_relative_place_say_which_variable_to_set() {
        for pairs in [&[][..], &[("ORCHESTRATORD_E2E_CACHE", "cache")]] {
            assert!(with(pairs).unwrap_err().to_string().contains("ORCHESTRATORD_E2E_CACHE"));
        }
    }

    #[test]
    fn a_key_depends_on_where_a_part_ends() {
        let key = |parts: &[&[u8]]| {
            let mut key = Key::default();
            for part in parts {
                key.add(part);
            }
            key.finish()
        };
        assert_ne!(key(&[b"ab", b"c"]), key(&[b"a", b"bc"]));
        assert_eq!(key(&[b"ab"]).len(), 16);
    }
}
