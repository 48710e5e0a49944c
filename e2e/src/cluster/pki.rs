//! Certificates of a cluster: two authorities, a certificate for each component, the key of the service accounts' tokens.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType,
};
use serde_json::json;

use super::level::Level;
use super::network;

/// Where a cluster's API server is.
pub(crate) const SERVER: &str = "https://172.30.0.1:6443";

/// A folder of certificates under construction.
struct Pki {
    folder: PathBuf,
    authority: Authority,
}

/// An authority and its certificate.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

/// Makes everything a level needs.
pub(crate) fn create(level: Level) -> Result<()> {
    let folder = level.pki();
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let pki = Pki {
        authority: authority(&folder, "ca")?,
        folder,
    };
    let front_proxy = authority(&pki.folder, "front-proxy-ca")?;

    let mut names = vec![
        network::CONTROL_PLANE.to_owned(),
        network::KUBERNETES_SERVICE.to_owned(),
        "127.0.0.1".to_owned(),
        "localhost".to_owned(),
    ];
    names.extend(
        [
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ]
        .map(str::to_owned),
    );
    pki.pair(&pki.authority, "apiserver", "kube-apiserver", None, &names)?;
    pki.pair(
        &pki.authority,
        "apiserver-kubelet-client",
        "kube-apiserver-kubelet-client",
        Some("system:masters"),
        &[],
    )?;
    pki.pair(&front_proxy, "front-proxy-client", "front-proxy-client", None, &[])?;

    pki.client("admin", "admin", Some("system:masters"))?;
    for component in ["kube-controller-manager", "kube-scheduler", "kube-proxy"] {
        pki.client(component, &format!("system:{component}"), None)?;
    }
    pki.client("coredns", "coredns", None)?;
    for node in level.nodes() {
        let name = node.name();
        let names = [name.clone(), node.address(), "127.0.0.1".to_owned()];
        let (certificate, key) = pki.pair(
            &pki.authority,
            &name,
            &format!("system:node:{name}"),
            Some("system:nodes"),
            &names,
        )?;
        pki.kubeconfig(&name, &certificate, &key)?;
    }

    let tokens = KeyPair::generate().context("making the key of service account tokens")?;
    write(&pki.folder.join("sa.key"), &tokens.serialize_pem())?;
    write(&pki.folder.join("sa.pub"), &tokens.public_key_pem())
}

/// A kubeconfig whose only credentials are a bearer token.
pub(crate) fn kubeconfig_with_token(level: Level, server: &str, namespace: &str, token: &str) -> Result<String> {
    let authority = fs::read_to_string(level.pki().join("ca.crt")).context("reading the cluster's authority")?;
    Ok(kubeconfig(&authority, server, namespace, &json!({ "token": token })))
}

// === impl Pki ===

impl Pki {
    /// A client certificate and its kubeconfig.
    fn client(&self, name: &str, user: &str, group: Option<&str>) -> Result<()> {
        let (certificate, key) = self.pair(&self.authority, name, user, group, &[])?;
        self.kubeconfig(name, &certificate, &key)
    }

    /// A certificate for `user`, a server's one too if it has `names`.
    fn pair(
        &self,
        authority: &Authority,
        file: &str,
        user: &str,
        group: Option<&str>,
        names: &[String],
    ) -> Result<(String, String)> {
        let mut params = CertificateParams::default();
        for name in names {
            params.subject_alt_names.push(match name.parse::<IpAddr>() {
                Ok(address) => SanType::IpAddress(address),
                Err(_) => SanType::DnsName(name.as_str().try_into().context("a DNS name")?),
            });
        }
        params.distinguished_name = rcgen::DistinguishedName::new();
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.distinguished_name.push(DnType::CommonName, user);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if !names.is_empty() {
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        }
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().with_context(|| format!("making the key of {user}"))?;
        let certificate = params
            .signed_by(&key, &authority.issuer)
            .with_context(|| format!("signing the certificate of {user}"))?;
        let (certificate, key) = (certificate.pem(), key.serialize_pem());
        write(&self.folder.join(format!("{file}.crt")), &certificate)?;
        write(&self.folder.join(format!("{file}.key")), &key)?;
        Ok((certificate, key))
    }

    fn kubeconfig(&self, name: &str, certificate: &str, key: &str) -> Result<()> {
        let user =
            json!({ "client-certificate-data": STANDARD.encode(certificate), "client-key-data": STANDARD.encode(key) });
        write(
            &self.folder.join(format!("{name}.kubeconfig")),
            &kubeconfig(&self.authority.certificate, SERVER, "default", &user),
        )
    }
}

fn authority(folder: &Path, name: &str) -> Result<Authority> {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, format!("orchestratord-e2e {name}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    let key = KeyPair::generate().with_context(|| format!("making the key of {name}"))?;
    let certificate = params
        .self_signed(&key)
        .with_context(|| format!("signing {name}"))?
        .pem();
    write(&folder.join(format!("{name}.crt")), &certificate)?;
    write(&folder.join(format!("{name}.key")), &key.serialize_pem())?;
    Ok(Authority {
        issuer: Issuer::new(params, key),
        certificate,
    })
}

/// A kubeconfig that needs no other file. JSON, which every reader of YAML reads.
fn kubeconfig(authority: &str, server: &str, namespace: &str, user: &serde_json::Value) -> String {
    let cluster = json!({ "server": server, "certificate-authority-data": STANDARD.encode(authority) });
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "e2e", "cluster": cluster }],
        "users": [{ "name": "e2e", "user": user }],
        "contexts": [{ "name": "e2e", "context": { "cluster": "e2e", "user": "e2e", "namespace": namespace } }],
        "current-context": "e2e",
    })
    .to_string()
}

/// Writes a file that only root reads.
pub(crate) fn write(path: &Path, content: &str) -> Result<()> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(content.as_bytes()))
        .with_context(|| format!("writing {}", path.display()))
}
