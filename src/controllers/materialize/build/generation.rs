//! The objects that exist once per generation, and the hash that tells whether they changed.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use serde::Serialize;
use uuid::Uuid;

use super::connection::ConnectionInfo;
use super::environment::Environment;
use super::record::Record;
use super::{hash, listeners, services, stateful_set};

/// Everything that one generation consists of.
#[derive(Clone, Debug, PartialEq)]
pub struct GenerationObjects {
    /// The generation's number, from 1.
    pub generation: u64,
    /// The environment's Service, selecting this generation. It is applied only once this generation leads.
    pub public_service: Service,
    /// The Service that always selects this generation.
    pub generation_service: Service,
    /// The Service through which clusterd pods reach this generation's persist-pubsub server.
    pub persist_pubsub_service: Service,
    /// The listeners that environmentd is started with.
    pub listeners: ConfigMap,
    /// environmentd itself, without the [`Record`] of what it was deployed for: [`Self::stateful_set_for`] adds it.
    pub stateful_set: StatefulSet,
    /// Where this generation's leader API answers.
    pub connection: ConnectionInfo,
    /// SHA-256 of all of the above, in hexadecimal.
    pub hash: String,
}

/// What the hash is made of, in this order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HashInput<'a> {
    generation: u64,
    public_service: &'a Service,
    generation_service: &'a Service,
    persist_pubsub_service: &'a Service,
    stateful_set: &'a StatefulSet,
    connection_info: &'a ConnectionInfo,
    listeners: &'a ConfigMap,
}

// === impl GenerationObjects ===

impl GenerationObjects {
    /// What the given generation would consist of under the current spec and configuration.
    pub fn build(environment: &Environment<'_>, generation: u64) -> Self {
        let public_service = services::public(environment, generation);
        let generation_service = services::generation(environment, generation);
        let persist_pubsub_service = services::persist_pubsub(environment, generation);
        let listeners = listeners::config_map(environment, generation, listeners::json(environment));
        let stateful_set = stateful_set::build(environment, generation);
        let connection = ConnectionInfo::new(environment, generation);
        let hash = hash::of(&HashInput {
            generation,
            public_service: &public_service,
            generation_service: &generation_service,
            persist_pubsub_service: &persist_pubsub_service,
            stateful_set: &stateful_set,
            connection_info: &connection,
            listeners: &listeners,
        });
        Self {
            generation,
            public_service,
            generation_service,
            persist_pubsub_service,
            listeners,
            stateful_set,
            connection,
            hash,
        }
    }

    /// What is recorded about a `StatefulSet` that is applied for `request` (decisions R1 and R20).
    pub fn record(&self, request: Uuid) -> Record {
        Record {
            request,
            hash: self.hash.clone(),
            listeners: listeners::content(&self.listeners).map(str::to_owned),
        }
    }

    /// The `StatefulSet` as it is applied for `request`: with its [`Record`], which the hash does not cover.
    pub fn stateful_set_for(&self, request: Uuid) -> StatefulSet {
        let mut stateful_set = self.stateful_set.clone();
        self.record(request).write(&mut stateful_set.metadata);
        stateful_set
    }
}

#[cfg(test)]
mod tests;
