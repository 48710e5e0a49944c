//! Licence keys: JSON Web Tokens that say which environment may run (docs/reference/rollouts.md, "Licence keys").
//!
//! An expired key is as good as any here: environmentd decides what follows from the expiry.

use std::borrow::Cow;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, TokenData, Validation, dangerous, decode};
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use uuid::Uuid;

/// The issuer of every licence key.
const ISSUER: &str = "Materialize, Inc.";

/// The `jti` of keys that were withdrawn.
const REVOKED: [&str; 1] = ["eddaf004-dc1e-48cf-9cc1-41d1543d940a"];

/// How far clocks may disagree, in seconds.
const LEEWAY: i64 = 60;

/// What a valid licence key says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct License {
    /// The environment that it is for; `None` if it is for any.
    pub environment_id: Option<Uuid>,
    /// Whether it has expired.
    pub expired: bool,
}

/// Why a licence key is not valid. Never contains any part of the key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLicense {
    /// Not text.
    #[error("it is not UTF-8 text")]
    NotText,
    /// Nothing but white space.
    #[error("it is empty")]
    Empty,
    /// Not a token, or its header or claims can't be read.
    #[error("it is not a licence key: {0}")]
    Malformed(String),
    /// The header names another type than `JWT`.
    #[error("its header does not say that it is a JWT")]
    Type,
    /// Signed in another way than licence keys are.
    #[error("it is not signed with PS256")]
    Algorithm,
    /// None of the configured public keys verifies it.
    #[error("its signature does not match any of the public keys given by --license-key-public-key")]
    Signature,
    /// Issued by somebody else.
    #[error("it was not issued by {ISSUER}")]
    Issuer,
    /// Another version of the format than 1.
    #[error("its version is {0}, this operator knows version 1")]
    Version(u64),
    /// `nbf` lies ahead.
    #[error("it is not valid before {0}")]
    NotYetValid(Timestamp),
    /// `iat` lies outside of `nbf` and `exp`.
    #[error("its time of issue lies outside the time it is valid")]
    IssuedOutside,
    /// On the list of withdrawn keys.
    #[error("it has been revoked")]
    Revoked,
    /// The audience is no environment id.
    #[error("its audience is not an environment id (a UUID)")]
    Audience,
}

#[derive(Debug, Deserialize)]
struct Claims {
    exp: i64,
    nbf: i64,
    iat: i64,
    iss: String,
    #[serde(rename = "sub")]
    _sub: String,
    aud: Audience,
    jti: String,
    version: u64,
}

/// `aud` is one text, or a list of them.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

// === impl License ===

impl License {
    /// Checks the licence key `bytes` at the time `now`.
    ///
    /// Without `keys` everything but the signature is checked (decision R13).
    ///
    /// # Errors
    /// If the key is not valid.
    pub fn check(bytes: &[u8], keys: &[DecodingKey], now: Timestamp) -> Result<Self, InvalidLicense> {
        let text = std::str::from_utf8(bytes).map_err(|_| InvalidLicense::NotText)?.trim();
        if text.is_empty() {
            return Err(InvalidLicense::Empty);
        }
        let token = verify(text, keys)?;
        if token.header.typ.as_deref() != Some("JWT") {
            return Err(InvalidLicense::Type);
        }
        judge(&token.claims, now)
    }
}

fn verify(text: &str, keys: &[DecodingKey]) -> Result<TokenData<Claims>, InvalidLicense> {
    let unverified = dangerous::insecure_decode::<Claims>(text).map_err(|error| malformed(&error))?;
    if unverified.header.alg != Algorithm::PS256 {
        return Err(InvalidLicense::Algorithm);
    }
    if keys.is_empty() {
        return Ok(unverified);
    }
    // Times and audience are judged below, on the same claims with and without a key.
    let mut validation = Validation::new(Algorithm::PS256);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.validate_aud = false;
    keys.iter()
        .find_map(|key| decode(text, key, &validation).ok())
        .ok_or(InvalidLicense::Signature)
}

fn judge(claims: &Claims, now: Timestamp) -> Result<License, InvalidLicense> {
    if claims.iss != ISSUER {
        return Err(InvalidLicense::Issuer);
    }
    if claims.version != 1 {
        return Err(InvalidLicense::Version(claims.version));
    }
    if claims.nbf > now.as_second().saturating_add(LEEWAY) {
        let not_before = Timestamp::from_second(claims.nbf).unwrap_or(Timestamp::MAX);
        return Err(InvalidLicense::NotYetValid(not_before));
    }
    if !(claims.nbf..=claims.exp).contains(&claims.iat) {
        return Err(InvalidLicense::IssuedOutside);
    }
    if REVOKED.contains(&claims.jti.as_str()) {
        return Err(InvalidLicense::Revoked);
    }
    let audience = match &claims.aud {
        Audience::One(audience) => audience,
        Audience::Many(audiences) => match audiences.as_slice() {
            [audience] => audience,
            _ => return Err(InvalidLicense::Audience),
        },
    };
    let id: Uuid = audience.parse().map_err(|_| InvalidLicense::Audience)?;
    Ok(License {
        environment_id: (!id.is_nil()).then_some(id),
        expired: claims.exp < now.as_second(),
    })
}

/// What the library says, without any part of the key.
fn malformed(error: &jsonwebtoken::errors::Error) -> InvalidLicense {
    let text: Cow<'static, str> = match error.kind() {
        ErrorKind::InvalidToken => "it does not have three parts separated by dots".into(),
        ErrorKind::Base64(_) => "a part of it is not base64url".into(),
        ErrorKind::Json(error) if error.is_data() => format!("its header or claims are incomplete: {error}").into(),
        _ => "its header or claims can't be read".into(),
    };
    InvalidLicense::Malformed(text.into_owned())
}

#[cfg(test)]
#[path = "license_tests.rs"]
mod tests;
