//! Server-side apply that sends nothing when nothing would change (decision R23).

use std::fmt::Debug;

use kube::{
    Api, Resource,
    api::{Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{Difference, Error, FIELD_MANAGER, error::ObjectName, first_difference};

/// What an apply came to.
#[derive(Clone, Debug)]
pub enum Applied<K> {
    /// The object did not exist and was created.
    Created(K),
    /// The object was changed.
    Changed {
        /// The object as the API server returned it.
        object: K,
        /// The first difference that made the request necessary.
        difference: Difference,
    },
    /// Nothing would have changed and nothing was sent.
    Unchanged(K),
}

/// Applies `desired` with force as [`FIELD_MANAGER`], after reading the live object.
///
/// # Errors
/// [`Error::Request`] if the API server refuses or does not answer.
pub async fn apply<K>(api: &Api<K>, desired: &K) -> Result<Applied<K>, Error>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
    K::DynamicType: Default,
{
    let name = name_of(desired)?;
    let live = api.get_opt(name).await.map_err(|source| Error::Request {
        verb: "get",
        object: Box::new(ObjectName::in_api(api, name)),
        source,
    })?;
    apply_over(api, desired, live).await
}

/// Applies `desired` with force as [`FIELD_MANAGER`] over `live`, the object as the caller knows it, if it exists.
///
/// `live` must have its `managedFields`: they say which fields this operator applied before, and without them the
/// request is always sent. A stale `live` costs at most one request that changes nothing, or one more pass.
///
/// # Errors
/// [`Error::Request`] if the API server refuses or does not answer.
pub async fn apply_over<K>(api: &Api<K>, desired: &K, live: Option<K>) -> Result<Applied<K>, Error>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
    K::DynamicType: Default,
{
    let name = name_of(desired)?;
    let object = || Box::new(ObjectName::in_api(api, name));
    let to_json = |value: &K| {
        serde_json::to_value(value).map_err(|source| Error::Serialize {
            object: object(),
            source,
        })
    };
    let body = body(to_json(desired)?);
    let difference = match &live {
        Some(live) => first_difference(&body, &to_json(live)?, FIELD_MANAGER),
        None => None,
    };
    if let (Some(live), None) = (&live, &difference) {
        return Ok(Applied::Unchanged(live.clone()));
    }
    let parameters = PatchParams::apply(FIELD_MANAGER).force();
    let applied = api
        .patch(name, &parameters, &Patch::Apply(&body))
        .await
        .map_err(|source| Error::Request {
            verb: "apply",
            object: object(),
            source,
        })?;
    Ok(match difference {
        Some(difference) => Applied::Changed {
            object: applied,
            difference,
        },
        None => Applied::Created(applied),
    })
}

fn name_of<K>(object: &K) -> Result<&str, Error>
where
    K: Resource,
    K::DynamicType: Default,
{
    let unnamed = || Error::Unnamed {
        kind: K::kind(&K::DynamicType::default()).into_owned(),
    };
    object.meta().name.as_deref().ok_or_else(unnamed)
}

/// What is sent: no nulls, no status, and none of the metadata that only the API server writes.
fn body(mut desired: Value) -> Value {
    if let Value::Object(fields) = &mut desired {
        fields.remove("status");
        if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
            for field in ["managedFields", "creationTimestamp", "generation", "selfLink"] {
                metadata.remove(field);
            }
        }
    }
    remove_nulls(&mut desired);
    desired
}

/// Removes members that are null: server-side apply would take each for a value.
fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

// === impl Applied ===

impl<K> Applied<K> {
    /// The object as it is now.
    pub fn into_object(self) -> K {
        match self {
            Self::Created(object) | Self::Changed { object, .. } | Self::Unchanged(object) => object,
        }
    }

    /// The object as it is now.
    pub fn object(&self) -> &K {
        match self {
            Self::Created(object) | Self::Changed { object, .. } | Self::Unchanged(object) => object,
        }
    }

    /// Whether a request was sent.
    pub fn was_sent(&self) -> bool {
        !matches!(self, Self::Unchanged(_))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_body_has_no_nulls_no_status_and_no_metadata_of_the_server() {
        let desired = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "a", "managedFields": [], "creationTimestamp": null, "generation": 3, "uid": null},
            "spec": {"type": null, "selector": {}, "ports": [{"port": 1, "name": null}]},
            "status": {"loadBalancer": {}},
        });
        assert_eq!(
            body(desired),
            json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": {"name": "a"},
                "spec": {"selector": {}, "ports": [{"port": 1}]},
            })
        );
    }
}
