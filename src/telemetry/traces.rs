//! The export of traces by OTLP over gRPC.

use opentelemetry::{KeyValue, trace::TracerProvider as _};
use opentelemetry_otlp::{
    SpanExporter, WithExportConfig as _, WithTonicConfig as _,
    tonic_types::{metadata::MetadataMap, transport::ClientTlsConfig},
};
use opentelemetry_sdk::{
    Resource,
    trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider, Tracer},
};
use tracing_opentelemetry::OpenTelemetryLayer;

use super::Error;
use crate::args::Telemetry;

/// Name of this service in traces.
const SERVICE_NAME: &str = "orchestratord";

/// Builds the exporter, or none if no endpoint is given. Nothing is connected yet, and an unreachable collector never
/// holds anything up: spans that find the queue full are dropped.
pub(super) fn provider(settings: &Telemetry) -> Result<Option<SdkTracerProvider>, Error> {
    let Some(endpoint) = &settings.opentelemetry_endpoint else {
        return Ok(None);
    };
    let mut builder = SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint)
        .with_timeout(settings.opentelemetry_max_export_timeout)
        .with_metadata(metadata(settings)?);
    if endpoint.starts_with("https:") {
        builder = builder.with_tls_config(ClientTlsConfig::new().with_native_roots());
    }
    let exporter = builder.build().map_err(|source| Error::Traces {
        endpoint: endpoint.clone(),
        source,
    })?;
    let batches = BatchConfigBuilder::default()
        .with_max_queue_size(settings.opentelemetry_max_batch_queue_size)
        .with_max_export_batch_size(settings.opentelemetry_max_export_batch_size)
        .with_scheduled_delay(settings.opentelemetry_sched_delay)
        .build();
    let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batches).build();
    Ok(Some(
        SdkTracerProvider::builder()
            .with_span_processor(processor)
            .with_resource(resource(settings))
            .build(),
    ))
}

/// The layer that turns spans of `tracing` into those of OpenTelemetry.
pub(super) fn layer<S>(provider: &SdkTracerProvider) -> OpenTelemetryLayer<S, Tracer>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    tracing_opentelemetry::layer().with_tracer(provider.tracer(SERVICE_NAME))
}

fn resource(settings: &Telemetry) -> Resource {
    let given = settings
        .opentelemetry_resource
        .iter()
        .map(|item| KeyValue::new(item.key.clone(), item.value.clone()));
    Resource::builder()
        .with_service_name(SERVICE_NAME)
        .with_attributes(given)
        .build()
}

fn metadata(settings: &Telemetry) -> Result<MetadataMap, Error> {
    let mut headers = http::HeaderMap::new();
    for (name, value) in &settings.opentelemetry_header {
        let invalid = || Error::Header(name.clone());
        let header = name.parse::<http::HeaderName>().map_err(|_| invalid())?;
        let mut value = http::HeaderValue::from_str(value.expose()).map_err(|_| invalid())?;
        value.set_sensitive(true);
        headers.append(header, value);
    }
    Ok(MetadataMap::from_headers(headers))
}

#[cfg(test)]
mod tests {
    use opentelemetry::{Key, Value};

    use super::*;
    use crate::args::Config;

    fn settings(flags: &[&str]) -> Telemetry {
        Config::for_tests(flags).telemetry
    }

    #[test]
    fn nothing_is_exported_without_an_endpoint() {
        assert!(provider(&settings(&[])).unwrap().is_none());
    }

    #[tokio::test]
    async fn endpoints_with_and_without_tls_are_taken() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        for endpoint in ["http://127.0.0.1:1", "https://127.0.0.1:1"] {
            let provider = provider(&settings(&["--opentelemetry-endpoint", endpoint])).unwrap();
            assert!(provider.is_some(), "{endpoint}");
        }
    }

    #[test]
    fn the_resource_carries_our_name_and_the_given_attributes() {
        let resource = resource(&settings(&["--opentelemetry-resource=a=1,b=x=y"]));
        let get = |key| resource.get(&Key::new(key)).map(|value: Value| value.to_string());
        assert_eq!(get("service.name").as_deref(), Some("orchestratord"));
        assert_eq!((get("a").as_deref(), get("b").as_deref()), (Some("1"), Some("x=y")));
    }

    #[test]
    fn headers_become_metadata_that_does_not_show() {
        let metadata = metadata(&settings(&[
            "--opentelemetry-endpoint=http://c:1",
            "--opentelemetry-header=Authorization=hush",
        ]))
        .unwrap();
        assert_eq!(metadata.get("authorization").unwrap(), "hush");
        assert!(!format!("{metadata:?}").contains("hush"));
    }
}
