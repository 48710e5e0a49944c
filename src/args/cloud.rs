//! Flags that describe the cloud the cluster runs in.

use std::fmt;

/// Cloud provider, region and what only AWS has (docs/reference/flags.md).
#[derive(Clone, Debug, clap::Args)]
pub struct Cloud {
    /// Where the cluster runs.
    #[arg(long, value_name = "PROVIDER", value_enum, ignore_case = true)]
    pub cloud_provider: CloudProvider,

    /// Region reported to environmentd.
    #[arg(long, value_name = "REGION")]
    pub region: String,

    /// What keeps the secrets of SQL users; passed on to environmentd.
    #[arg(long, value_name = "KIND", value_enum, default_value_t = SecretsController::Kubernetes)]
    pub secrets_controller: SecretsController,

    /// AWS: account that environments run in.
    #[arg(long, value_name = "ID")]
    pub aws_account_id: Option<String>,

    /// AWS: IAM role of environmentd's `ServiceAccount`.
    #[arg(long, value_name = "ARN")]
    pub environmentd_iam_role_arn: Option<String>,

    /// AWS: role that environmentd assumes for connections.
    #[arg(long, value_name = "ARN")]
    pub environmentd_connection_role_arn: Option<String>,

    /// AWS: a tag of secrets in AWS Secrets Manager; repeatable.
    #[arg(long, value_name = "TAG")]
    pub aws_secrets_controller_tags: Option<Vec<String>>,

    /// An availability zone that clusters may use; repeatable.
    #[arg(long, value_name = "ZONE")]
    pub environmentd_availability_zones: Option<Vec<String>>,
}

/// Where the cluster runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum CloudProvider {
    /// A local cluster.
    Local,
    /// Docker.
    Docker,
    /// mzcompose, Materialize's test compositions.
    Mzcompose,
    /// cloudtest, Materialize's tests on kind.
    Cloudtest,
    /// Amazon Web Services.
    Aws,
    /// Google Cloud.
    Gcp,
    /// Microsoft Azure.
    Azure,
    /// Any other.
    Generic,
}

/// What keeps the secrets of SQL users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SecretsController {
    /// Kubernetes Secrets.
    Kubernetes,
    /// AWS Secrets Manager.
    AwsSecretsManager,
}

// === impl CloudProvider ===

impl CloudProvider {
    /// The name that environmentd's flags and environment ids use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Docker => "docker",
            Self::Mzcompose => "mzcompose",
            Self::Cloudtest => "cloudtest",
            Self::Aws => "aws",
            Self::Gcp => "gcp",
            Self::Azure => "azure",
            Self::Generic => "generic",
        }
    }

    /// Whether this is a real cloud rather than a place for tests: aws, gcp, azure or generic.
    pub fn is_cloud(self) -> bool {
        matches!(self, Self::Aws | Self::Gcp | Self::Azure | Self::Generic)
    }
}

impl fmt::Display for CloudProvider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

// === impl SecretsController ===

impl SecretsController {
    /// The name that environmentd's `--secrets-controller` takes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kubernetes => "kubernetes",
            Self::AwsSecretsManager => "aws-secrets-manager",
        }
    }
}

impl fmt::Display for SecretsController {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
