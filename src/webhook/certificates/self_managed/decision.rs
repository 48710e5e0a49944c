//! What to do about the Secret of the self-managed certificate (decision W5). Pure.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use rcgen::KeyPair;

use super::issue::{self, Issued};
use crate::api::labels::{LABEL_KUBERNETES_MANAGED_BY, MANAGED_BY};
use crate::webhook::certificates::authority::{Validity, certificates};
use crate::webhook::certificates::pair::{Material, Pair, Part};

/// Key of the Secret with the authority's key.
const CA_KEY: &str = "ca.key";

/// The content of the Secret.
#[derive(Clone, Eq, PartialEq)]
pub(super) struct Contents {
    pub(super) authority: Issued,
    pub(super) leaf: Issued,
}

/// What to do.
#[derive(Clone, Eq, PartialEq)]
pub(super) enum Action {
    /// The content is good until then.
    Keep {
        /// The content.
        contents: Contents,
        /// When to look again.
        until: Timestamp,
    },
    /// Write this.
    Write {
        /// The content.
        contents: Contents,
        /// Why.
        why: Why,
    },
    /// The Secret is somebody else's.
    Refuse,
}

/// Why the Secret is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Why {
    /// There is none.
    Missing,
    /// The serving certificate is due.
    LeafDue,
    /// The authority is due.
    AuthorityDue,
    /// The serving certificate is damaged, or for another name.
    LeafUnfit,
    /// The authority is damaged.
    AuthorityUnfit,
}

/// Decides about `secret`, of which this replica remembers `memory`, for a Service with the DNS name `name`.
pub(super) fn decide(
    secret: Option<&Secret>,
    memory: Option<&Contents>,
    name: &str,
    now: Timestamp,
) -> Result<Action, rcgen::Error> {
    let (contents, missing) = match (secret, memory) {
        (Some(secret), _) if !is_ours(secret) => return Ok(Action::Refuse),
        (Some(secret), _) => (Contents::of(secret), false),
        (None, Some(memory)) => (memory.clone(), true),
        (None, None) => {
            let authority = issue::authority(now)?;
            let leaf = issue::leaf(&authority, name, now)?;
            return Ok(Action::Write {
                contents: Contents { authority, leaf },
                why: Why::Missing,
            });
        }
    };
    let Some(authority_due) = authority_due(&contents.authority) else {
        return renew(None, name, now, Why::AuthorityUnfit);
    };
    if authority_due <= now {
        return renew(None, name, now, Why::AuthorityDue);
    }
    let Ok(pair) = Pair::read(&contents.material(), name, now) else {
        return renew(Some(contents.authority), name, now, Why::LeafUnfit);
    };
    let leaf_due = due(pair.validity);
    if leaf_due <= now {
        return renew(Some(contents.authority), name, now, Why::LeafDue);
    }
    Ok(if missing {
        Action::Write {
            contents,
            why: Why::Missing,
        }
    } else {
        Action::Keep {
            contents,
            until: leaf_due.min(authority_due),
        }
    })
}

fn renew(authority: Option<Issued>, name: &str, now: Timestamp, why: Why) -> Result<Action, rcgen::Error> {
    let authority = authority.map_or_else(|| issue::authority(now), Ok)?;
    let leaf = issue::leaf(&authority, name, now)?;
    Ok(Action::Write {
        contents: Contents { authority, leaf },
        why,
    })
}

/// When the authority is due; none if it can't issue anything.
fn authority_due(authority: &Issued) -> Option<Timestamp> {
    let chain = certificates(&authority.certificate).ok()?;
    let [(certificate, validity)] = chain.as_slice() else {
        return None;
    };
    let key = KeyPair::from_pem(&String::from_utf8_lossy(&authority.key)).ok()?;
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    // A key that is not the certificate's would issue what nobody believes.
    let belongs = parsed.public_key().subject_public_key.data.as_ref() == key.public_key_raw();
    (belongs && parsed.is_ca()).then(|| due(*validity))
}

/// When a third of the lifetime is left.
fn due(validity: Validity) -> Timestamp {
    validity.not_after - validity.not_after.duration_since(validity.not_before) / 3
}

/// Whether the operator made this Secret.
fn is_ours(secret: &Secret) -> bool {
    let labels = secret.metadata.labels.as_ref();
    labels
        .and_then(|labels| labels.get(LABEL_KUBERNETES_MANAGED_BY))
        .map(String::as_str)
        == Some(MANAGED_BY)
}

// === impl Contents ===

impl Contents {
    fn of(secret: &Secret) -> Self {
        let part = |key: &str| {
            let data = secret.data.as_ref().and_then(|data| data.get(key));
            data.map(|bytes| bytes.0.clone()).unwrap_or_default()
        };
        Self {
            authority: Issued {
                certificate: part(Part::Authorities.key()),
                key: part(CA_KEY),
            },
            leaf: Issued {
                certificate: part(Part::Certificate.key()),
                key: part(Part::Key.key()),
            },
        }
    }

    /// What the server needs of it.
    pub(super) fn material(&self) -> Material {
        Material {
            authorities: self.authority.certificate.clone(),
            certificate: self.leaf.certificate.clone(),
            key: self.leaf.key.clone(),
        }
    }

    /// The Secret with this content: `live` with everything that others put there, or a new one.
    pub(super) fn secret(&self, live: Option<&Secret>, namespace: &str, name: &str) -> Secret {
        let mut secret = live.cloned().unwrap_or_else(|| {
            let mut secret = Secret {
                type_: Some("Opaque".to_owned()),
                ..Secret::default()
            };
            secret.metadata.namespace = Some(namespace.to_owned());
            secret.metadata.name = Some(name.to_owned());
            let label = (LABEL_KUBERNETES_MANAGED_BY.to_owned(), MANAGED_BY.to_owned());
            secret.metadata.labels = Some(BTreeMap::from([label]));
            secret
        });
        secret.data.get_or_insert_default().extend(
            [
                (Part::Authorities.key(), &self.authority.certificate),
                (CA_KEY, &self.authority.key),
                (Part::Certificate.key(), &self.leaf.certificate),
                (Part::Key.key(), &self.leaf.key),
            ]
            .map(|(key, bytes)| (key.to_owned(), ByteString(bytes.clone()))),
        );
        secret
    }
}

#[cfg(test)]
mod tests;
