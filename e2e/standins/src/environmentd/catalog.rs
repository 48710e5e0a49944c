//! The catalogue: a Secret that says which generation leads. Every write is bound to the version that was read.

use std::collections::BTreeMap;

use anyhow::Context as _;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::PostParams;
use kube::{Api, Client};

const LEADER: &str = "leader";
const CRASHES: &str = "crashes-";

/// What the Secret holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    /// The generation that leads; none before the first.
    pub(crate) leader: Option<u64>,
    /// How many times a generation has crashed as ordered by `crashBeforeDurable`.
    pub(crate) crashes: BTreeMap<u64, u32>,
}

/// The Secret of one environment.
#[derive(Clone)]
pub(crate) struct Catalog {
    api: Api<Secret>,
    name: String,
    owners: Vec<OwnerReference>,
}

/// What a write came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Done,
    /// Somebody else wrote since the read: read again, and decide again.
    Conflict,
}

// === impl Catalog ===

impl Catalog {
    /// The Secret `{prefix}catalog`; `owners` is set when it is created, so that it goes away with the environment.
    pub(crate) fn new(client: Client, namespace: &str, prefix: &str, owners: Vec<OwnerReference>) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            name: format!("{prefix}catalog"),
            owners,
        }
    }

    /// Reads it.
    pub(crate) async fn load(&self) -> anyhow::Result<(Content, Option<Secret>)> {
        let secret = self
            .api
            .get_opt(&self.name)
            .await
            .with_context(|| format!("cannot read Secret {}", self.name))?;
        let content = secret
            .as_ref()
            .map(read)
            .transpose()
            .with_context(|| format!("Secret {}", self.name))?;
        Ok((content.unwrap_or_default(), secret))
    }

    /// Writes `content` in place of what was read.
    pub(crate) async fn store(&self, content: &Content, read: Option<Secret>) -> anyhow::Result<Write> {
        let data = Some(data(content));
        let result = if let Some(mut secret) = read {
            secret.data = data;
            self.api.replace(&self.name, &PostParams::default(), &secret).await
        } else {
            let metadata = ObjectMeta {
                name: Some(self.name.clone()),
                owner_references: Some(self.owners.clone()),
                ..ObjectMeta::default()
            };
            self.api
                .create(
                    &PostParams::default(),
                    &Secret {
                        metadata,
                        data,
                        ..Secret::default()
                    },
                )
                .await
        };
        match result {
            Ok(_) => Ok(Write::Done),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(Write::Conflict),
            Err(error) => Err(error).with_context(|| format!("cannot write Secret {}", self.name)),
        }
    }
}

fn read(secret: &Secret) -> anyhow::Result<Content> {
    let mut content = Content::default();
    for (key, ByteString(value)) in secret.data.iter().flatten() {
        let text = std::str::from_utf8(value).with_context(|| format!("key {key} is no text"))?;
        if key == LEADER {
            content.leader = Some(text.parse().with_context(|| format!("key {key} is no generation"))?);
        } else if let Some(generation) = key.strip_prefix(CRASHES) {
            let generation = generation
                .parse()
                .with_context(|| format!("key {key} has no generation"))?;
            content.crashes.insert(
                generation,
                text.parse().with_context(|| format!("key {key} is no number"))?,
            );
        }
    }
    Ok(content)
}

fn data(content: &Content) -> BTreeMap<String, ByteString> {
    let leader = content.leader.map(|leader| (LEADER.to_owned(), leader.to_string()));
    let crashes = content
        .crashes
        .iter()
        .map(|(generation, count)| (format!("{CRASHES}{generation}"), count.to_string()));
    leader
        .into_iter()
        .chain(crashes)
        .map(|(key, value)| (key, ByteString(value.into_bytes())))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn secret(pairs: &[(&str, &[u8])]) -> Secret {
        let data = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), ByteString(value.to_vec())))
            .collect();
        Secret {
            data: Some(data),
            ..Secret::default()
        }
    }

    #[test]
    fn the_secret_is_read_and_written_alike() {
        let content = Content {
            leader: Some(12),
            crashes: BTreeMap::from([(13, 2)]),
        };
        let secret = secret(&[("leader", b"12"), ("crashes-13", b"2")]);
        assert_eq!(read(&secret).unwrap(), content);
        assert_eq!(Some(data(&content)), secret.data);
        assert_eq!(read(&Secret::default()).unwrap(), Content::default());
    }

    #[test]
    fn what_is_no_generation_is_an_error_and_never_no_leader() {
        assert!(read(&secret(&[("leader", b"")])).is_err());
        assert!(read(&secret(&[("leader", b"-1")])).is_err());
        assert!(read(&secret(&[("leader", b"\xff")])).is_err());
        assert!(read(&secret(&[("crashes-x", b"1")])).is_err());
    }
}
