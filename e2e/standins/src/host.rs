//! Where a stand-in runs: its role, its version, and the variables that let it run beside others on one machine instead of in a container.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::version::Version;

/// Which program this process stands in for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Environmentd,
    Clusterd,
    Balancerd,
    Console,
}

/// The process environment, read once.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    variables: BTreeMap<String, String>,
}

// === impl Role ===

impl Role {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "environmentd" => Some(Self::Environmentd),
            "clusterd" => Some(Self::Clusterd),
            "balancerd" => Some(Self::Balancerd),
            "console" => Some(Self::Console),
            _ => None,
        }
    }
}

// === impl Host ===

impl Host {
    pub(crate) fn new(variables: BTreeMap<String, String>) -> Self {
        Self { variables }
    }

    /// A variable; one that is set to nothing counts as not set.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// The role, and the arguments that are left for it: by the program's own name, else by the first argument, else by `STANDIN`.
    pub(crate) fn role(&self, argv: &[String]) -> anyhow::Result<(Role, Vec<String>)> {
        let program = argv.first().map_or("", String::as_str);
        let name = Path::new(program)
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if let Some(role) = Role::parse(name) {
            return Ok((role, argv.iter().skip(1).cloned().collect()));
        }
        if let Some(role) = argv.get(1).and_then(|first| Role::parse(first)) {
            return Ok((role, argv.iter().skip(2).cloned().collect()));
        }
        if let Some(role) = self.variable("STANDIN").and_then(Role::parse) {
            return Ok((role, argv.iter().skip(1).cloned().collect()));
        }
        bail!(
            "which stand-in? Give environmentd, clusterd, balancerd or console as program name, first argument, or in STANDIN"
        );
    }

    /// The version: `STANDIN_VERSION`, else the file `/version` of the image.
    pub(crate) fn version(&self) -> anyhow::Result<Version> {
        if let Some(tag) = self.variable("STANDIN_VERSION") {
            return Ok(Version::parse(tag));
        }
        let path = self.file("/version");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("the image has neither STANDIN_VERSION nor {}", path.display()))?;
        Ok(Version::parse(text.trim()))
    }

    /// A file that is named by an absolute path: under `STANDIN_ROOT` where that is set.
    pub(crate) fn file(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        match self.variable("STANDIN_ROOT") {
            Some(root) => Path::new(root).join(path.strip_prefix("/").unwrap_or(path)),
            None => path.to_path_buf(),
        }
    }

    /// The address to really bind for one that was configured: `STANDIN_LISTEN_HOST` replaces the host, `STANDIN_PORT_<port>` the port.
    pub(crate) fn listen_address(&self, configured: &str) -> anyhow::Result<String> {
        let (host, port) = split_address(configured)?;
        let host = self.variable("STANDIN_LISTEN_HOST").unwrap_or(&host);
        let port = self
            .variable(&format!("STANDIN_PORT_{port}"))
            .map_or(Ok(port), str::parse)?;
        Ok(format!("{host}:{port}"))
    }

    /// The address to really dial: `STANDIN_CONNECT_HOST` replaces the host, `STANDIN_CONNECT_PORT_<port>` the port.
    pub(crate) fn connect_address(&self, configured: &str) -> anyhow::Result<String> {
        let (host, port) = split_address(configured)?;
        let host = self.variable("STANDIN_CONNECT_HOST").unwrap_or(&host);
        let port = self
            .variable(&format!("STANDIN_CONNECT_PORT_{port}"))
            .map_or(Ok(port), str::parse)?;
        Ok(format!("{host}:{port}"))
    }
}

/// Splits `host:port`; neither may be missing.
pub(crate) fn split_address(address: &str) -> anyhow::Result<(String, u16)> {
    let (host, port) = address
        .rsplit_once(':')
        .with_context(|| format!("{address:?} is not of the form host:port"))?;
    let number: u16 = port
        .parse()
        .with_context(|| format!("{address:?} does not end in a port"))?;
    if host.is_empty() || number == 0 {
        bail!("{address:?} is not of the form host:port");
    }
    Ok((host.to_owned(), number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(variables: &[(&str, &str)]) -> Host {
        Host::new(
            variables
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
        )
    }

    fn strings(values: &[&str]) -> Vec<String> {
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    #[test]
    fn the_role_comes_from_name_then_argument_then_variable() {
        let rest = strings(&["--a"]);
        let console = (Role::Console, rest.clone());
        assert_eq!(host(&[]).role(&strings(&["/bin/console", "--a"])).unwrap(), console);
        assert_eq!(
            host(&[]).role(&strings(&["/standins", "console", "--a"])).unwrap(),
            console
        );
        let variable = host(&[("STANDIN", "console")]);
        assert_eq!(variable.role(&strings(&["/standins", "--a"])).unwrap(), console);
        assert_eq!(
            variable.role(&strings(&["/standins", "clusterd", "--a"])).unwrap(),
            (Role::Clusterd, rest)
        );
        assert!(host(&[]).role(&strings(&["/standins"])).is_err());
    }

    #[test]
    fn addresses_are_taken_as_they_are_in_a_container_and_moved_by_variables_outside() {
        assert_eq!(host(&[]).listen_address("0.0.0.0:6875").unwrap(), "0.0.0.0:6875");
        let local = host(&[
            ("STANDIN_LISTEN_HOST", "127.0.0.1"),
            ("STANDIN_PORT_6875", "16875"),
            ("STANDIN_CONNECT_HOST", "127.0.0.2"),
            ("STANDIN_CONNECT_PORT_6876", "16876"),
        ]);
        assert_eq!(local.listen_address("0.0.0.0:6875").unwrap(), "127.0.0.1:16875");
        assert_eq!(local.listen_address("0.0.0.0:6876").unwrap(), "127.0.0.1:6876");
        assert_eq!(local.connect_address("a.svc:6876").unwrap(), "127.0.0.2:16876");
        for wrong in ["6875", ":6875", "host:", "host:0", "host:70000", "host:x"] {
            assert!(host(&[]).listen_address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn files_move_under_the_root() {
        assert_eq!(host(&[]).file("/a/b"), Path::new("/a/b"));
        assert_eq!(host(&[("STANDIN_ROOT", "/r")]).file("/a/b"), Path::new("/r/a/b"));
    }
}
