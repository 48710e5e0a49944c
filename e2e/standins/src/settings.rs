//! Small parts of command lines that more than one stand-in has.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};

/// A `KEY=VALUE` argument, split at the first `=`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyValue {
    pub(crate) key: String,
    pub(crate) value: String,
}

/// What `--tls-mode` may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TlsMode {
    Disable,
    Require,
}

// === impl KeyValue ===

impl std::str::FromStr for KeyValue {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok(Self {
                key: key.to_owned(),
                value: value.to_owned(),
            }),
            _ => Err(format!("{text:?} is not of the form KEY=VALUE")),
        }
    }
}

/// A map of `KEY=VALUE` arguments; the last of equal keys wins.
pub(crate) fn map(pairs: &[KeyValue]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|pair| (pair.key.clone(), pair.value.clone()))
        .collect()
}

/// Checks that mode, certificate and key belong together, and returns the files where TLS is on.
pub(crate) fn tls_files<'a>(
    mode: TlsMode,
    certificate: Option<&'a Path>,
    key: Option<&'a Path>,
) -> anyhow::Result<Option<(&'a Path, &'a Path)>> {
    match (mode, certificate, key) {
        (TlsMode::Disable, None, None) => Ok(None),
        (TlsMode::Require, Some(certificate), Some(key)) => Ok(Some((certificate, key))),
        (TlsMode::Disable, ..) => bail!("--tls-mode=disable goes with neither --tls-cert nor --tls-key"),
        (TlsMode::Require, ..) => bail!("--tls-mode=require needs --tls-cert and --tls-key"),
    }
}

/// Parses a command line, turning clap's answer into an error that says what is wrong with it.
pub(crate) fn parse(command: clap::Command, arguments: &[String]) -> anyhow::Result<clap::ArgMatches> {
    command
        .no_binary_name(true)
        .try_get_matches_from(arguments)
        .map_err(|error| anyhow::anyhow!("{}", error.to_string().trim().trim_start_matches("error: ").to_owned()))
}

/// A duration such as `1s`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{text:?}: {error}"))
}

/// Reads a JSON object of parameters, as config-sync files are.
pub(crate) fn parameters(path: &Path) -> anyhow::Result<BTreeMap<String, serde_json::Value>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not a JSON object", path.display()))
}
