//! Flags about the certificates that cert-manager issues for environments.

use serde::Deserialize;

use super::parse;
use crate::api::MaterializeCertSpec;

/// Default certificate settings, as flags.
#[derive(Clone, Debug, clap::Args)]
pub struct CertificatesArgs {
    /// Default certificate settings: a JSON object with any of balancerdExternal, consoleExternal and internal.
    #[arg(long, value_name = "JSON", value_parser = parse::json_object::<CertificateDefaults>, default_value = "{}")]
    pub default_certificate_specs: CertificateDefaults,
}

/// What a certificate specification of a custom resource leaves open, field by field
/// (docs/reference/flags.md).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CertificateDefaults {
    /// Of balancerd's certificate for clients.
    pub balancerd_external: Option<MaterializeCertSpec>,
    /// Of the console's certificate for browsers.
    pub console_external: Option<MaterializeCertSpec>,
    /// Of certificates between the pods of an environment.
    pub internal: Option<MaterializeCertSpec>,
}
