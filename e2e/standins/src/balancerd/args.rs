//! balancerd's command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{CommandFactory as _, FromArgMatches as _, Parser};

use crate::host::split_address;
use crate::settings::{self, TlsMode, duration, tls_files};
use crate::version::{Bound, Version};

/// The first version with `--config-sync-*`.
const CONFIG_SYNC: Bound = Bound::dev(26, 44, 0);

/// The command line.
#[derive(Clone, Debug, Parser)]
#[command(name = "balancerd", disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct Args {
    /// The mode; there is one.
    #[arg(value_parser = ["service"])]
    mode: String,
    #[arg(long)]
    pub(crate) pgwire_listen_addr: String,
    #[arg(long)]
    pub(crate) https_listen_addr: String,
    #[arg(long)]
    pub(crate) internal_http_listen_addr: String,
    #[arg(long)]
    pub(crate) https_resolver_template: String,
    #[arg(long)]
    pub(crate) static_resolver_addr: String,
    #[arg(long)]
    pub(crate) internal_tls: bool,
    #[arg(long)]
    tls_mode: TlsMode,
    #[arg(long)]
    tls_cert: Option<PathBuf>,
    #[arg(long)]
    tls_key: Option<PathBuf>,
    #[arg(long, requires = "config_sync_loop_interval")]
    pub(crate) config_sync_file_path: Option<PathBuf>,
    #[arg(long, requires = "config_sync_file_path", value_parser = duration)]
    pub(crate) config_sync_loop_interval: Option<Duration>,
}

// === impl Args ===

impl Args {
    /// Parses and checks.
    pub(crate) fn load(arguments: &[String], version: &Version) -> anyhow::Result<Self> {
        let args = Self::from_arg_matches(&settings::parse(Self::command(), arguments)?)?;
        let addresses = [
            ("--pgwire-listen-addr", &args.pgwire_listen_addr),
            ("--https-listen-addr", &args.https_listen_addr),
            ("--internal-http-listen-addr", &args.internal_http_listen_addr),
            ("--https-resolver-template", &args.https_resolver_template),
            ("--static-resolver-addr", &args.static_resolver_addr),
        ];
        for (flag, address) in addresses {
            split_address(address).context(flag)?;
        }
        let listen = [
            &args.pgwire_listen_addr,
            &args.https_listen_addr,
            &args.internal_http_listen_addr,
        ];
        if listen[0] == listen[1] || listen[0] == listen[2] || listen[1] == listen[2] {
            bail!("two of the listen addresses are the same");
        }
        args.tls_files()?;
        if args.config_sync_file_path.is_some() && !version.at_least(CONFIG_SYNC) {
            bail!("unexpected argument --config-sync-file-path: it begins with {CONFIG_SYNC}, this is {version}");
        }
        Ok(args)
    }

    /// Certificate and key, where clients must use TLS.
    pub(crate) fn tls_files(&self) -> anyhow::Result<Option<(&Path, &Path)>> {
        tls_files(self.tls_mode, self.tls_cert.as_deref(), self.tls_key.as_deref())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    const ARGS: &[&str] = &[
        "service",
        "--pgwire-listen-addr=0.0.0.0:6875",
        "--https-listen-addr=0.0.0.0:6876",
        "--internal-http-listen-addr=0.0.0.0:8080",
        "--https-resolver-template=mzabc-environmentd.ns.svc.cluster.local:6876",
        "--static-resolver-addr=mzabc-environmentd.ns.svc.cluster.local:6875",
        "--tls-mode=disable",
    ];

    fn load(without: &str, more: &[&str], version: &str) -> anyhow::Result<Args> {
        let kept = ARGS
            .iter()
            .filter(|arg| without.is_empty() || !arg.starts_with(without));
        let arguments: Vec<String> = kept.chain(more).map(|arg| (*arg).to_owned()).collect();
        Args::load(&arguments, &Version::parse(version))
    }

    #[test]
    fn the_operators_command_lines_are_accepted() {
        let plain = load("", &[], "v26.43.0").unwrap();
        assert!(!plain.internal_tls && plain.tls_files().unwrap().is_none());
        let tls = [
            "--internal-tls",
            "--tls-mode=require",
            "--tls-cert=/etc/external_tls/tls.crt",
            "--tls-key=/etc/external_tls/tls.key",
        ];
        let tls = load("--tls-mode", &tls, "v26.43.0").unwrap();
        assert!(tls.internal_tls && tls.tls_files().unwrap().is_some());
    }

    #[test]
    fn everything_else_is_refused() {
        for (without, more) in [
            ("service", &[][..]),
            ("service", &["serve"]),
            ("--tls-mode", &[]),
            ("--static-resolver-addr", &[]),
            ("--static-resolver-addr", &["--static-resolver-addr=mzabc-environmentd"]),
            ("--pgwire-listen-addr", &["--pgwire-listen-addr=0.0.0.0:8080"]),
            ("--tls-mode", &["--tls-mode=require", "--tls-cert=/c"]),
            ("", &["--tls-key=/k"]),
            ("", &["--internal-tls", "--internal-tls"]),
            ("", &["--internal-tls=true"]),
            ("", &["--frontegg-admin-role=x"]),
        ] {
            assert!(load(without, more, "v26.43.0").is_err(), "{without} {more:?}");
        }
    }

    #[test]
    fn the_configuration_file_begins_with_a_version_and_needs_both_flags() {
        let both = [
            "--config-sync-file-path=/etc/balancerd/config.json",
            "--config-sync-loop-interval=1s",
        ];
        assert!(load("", &both, "v26.43.9").is_err());
        assert_eq!(
            load("", &both, "v26.44.0-dev.0").unwrap().config_sync_loop_interval,
            Some(Duration::from_secs(1))
        );
        assert!(load("", &both[..1], "v26.44.0").is_err());
        assert!(load("", &both[1..], "v26.44.0").is_err());
    }
}
