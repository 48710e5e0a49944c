//! Deletes of one certain object: with its uid, in the foreground, without waiting for the end.

use std::fmt::Debug;

use kube::{
    Api, Resource, ResourceExt as _,
    api::{DeleteParams, Preconditions},
};
use serde::de::DeserializeOwned;

use super::{Error, error::ObjectName};

/// What a delete came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// The API server took the request. The object goes once what it owns has gone; nobody waited for that.
    Requested,
    /// There is no such object any more: none of this name, or one with another uid.
    Gone,
}

/// Deletes the object `name` in the foreground if it still has this uid (decision R11).
///
/// # Errors
/// [`Error::Request`] if the API server refuses or does not answer.
pub async fn delete_foreground<K>(api: &Api<K>, name: &str, uid: &str) -> Result<Deletion, Error>
where
    K: Resource + Clone + Debug + DeserializeOwned,
    K::DynamicType: Default,
{
    let failed = |verb, source| Error::Request {
        verb,
        object: Box::new(ObjectName::in_api(api, name)),
        source,
    };
    let precondition = Preconditions {
        uid: Some(uid.to_owned()),
        resource_version: None,
    };
    match api
        .delete(name, &DeleteParams::foreground().preconditions(precondition))
        .await
    {
        Ok(_) => Ok(Deletion::Requested),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Deletion::Gone),
        // Either the uid is another one, or the API server lost a race that is not ours.
        Err(kube::Error::Api(status)) if status.code == 409 => {
            match api
                .get_metadata_opt(name)
                .await
                .map_err(|source| failed("get", source))?
            {
                Some(object) if object.uid().as_deref() == Some(uid) => Err(failed("delete", kube::Error::Api(status))),
                _ => Ok(Deletion::Gone),
            }
        }
        Err(source) => Err(failed("delete", source)),
    }
}
