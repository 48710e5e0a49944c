//! How environmentd authenticates its users.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How environmentd authenticates the users of its external listeners (`spec.authenticatorKind`).
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
pub enum AuthenticatorKind {
    /// Frontegg, Materialize's cloud identity provider.
    Frontegg,
    /// User name and password, kept by environmentd.
    Password,
    /// SASL (SCRAM) with passwords kept by environmentd.
    Sasl,
    /// Tokens of an `OpenID` Connect provider.
    Oidc,
    /// No authentication.
    #[default]
    None,
}

// === impl AuthenticatorKind ===

impl AuthenticatorKind {
    /// Whether environmentd keeps passwords itself, so that the operator too has to log in (`Password`, `Sasl`, `Oidc`).
    pub fn needs_login(self) -> bool {
        match self {
            Self::Password | Self::Sasl | Self::Oidc => true,
            Self::Frontegg | Self::None => false,
        }
    }

    /// The name as it stands in the resource.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Frontegg => "Frontegg",
            Self::Password => "Password",
            Self::Sasl => "Sasl",
            Self::Oidc => "Oidc",
            Self::None => "None",
        }
    }
}
