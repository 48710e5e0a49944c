//! The archive format of `docker save`, written so that the same content always gives the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header};

use crate::cache::{Cache, Key, hex};

/// Where the bytes of a file in an image come from.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// A file of this machine.
    Of(PathBuf),
    /// These bytes.
    Bytes(Vec<u8>),
}

/// One image: its configuration, and its files in one or more layers.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    reference: String,
    /// `ENTRYPOINT`.
    pub(crate) entrypoint: Vec<String>,
    /// `USER`: uid, or uid:gid.
    pub(crate) user: String,
    /// `ENV`, as `KEY=VALUE`.
    pub(crate) env: Vec<String>,
    /// `LABEL`.
    pub(crate) labels: BTreeMap<String, String>,
    /// `EXPOSE`, as `8001/tcp`.
    pub(crate) ports: BTreeSet<String>,
    /// `WORKDIR`.
    pub(crate) directory: String,
    layers: Vec<Files>,
}

/// The files of a layer: mode and content by path.
type Files = BTreeMap<String, (u32, Content)>;

/// An image with its layers' bytes, ready to be written.
struct Packed<'a> {
    image: &'a Image,
    layers: Vec<Vec<u8>>,
    config: String,
}

// === impl Image ===

impl Image {
    /// An image without files that runs `entrypoint` as root.
    pub(crate) fn new(reference: &str, entrypoint: &[&str]) -> Self {
        Self {
            reference: reference.to_owned(),
            entrypoint: entrypoint.iter().map(|word| (*word).to_owned()).collect(),
            user: String::new(),
            env: vec!["PATH=/:/bin:/usr/bin".to_owned()],
            labels: BTreeMap::new(),
            ports: BTreeSet::new(),
            directory: String::new(),
            layers: Vec::new(),
        }
    }

    /// Puts a file into it, as a layer of its own: equal layers of several images are stored once.
    pub(crate) fn file(&mut self, path: &str, mode: u32, content: Content) -> &mut Self {
        self.layers.push(BTreeMap::from([(
            path.trim_start_matches('/').to_owned(),
            (mode, content),
        )]));
        self
    }

    fn pack(&self) -> Result<Packed<'_>> {
        let layers = self.layers.iter().map(layer).collect::<Result<Vec<_>>>()?;
        let config = self.config(&layers);
        Ok(Packed {
            image: self,
            layers,
            config,
        })
    }

    fn config(&self, layers: &[Vec<u8>]) -> String {
        let moment = "1970-01-01T00:00:00Z";
        let ports: BTreeMap<&str, serde_json::Value> =
            self.ports.iter().map(|port| (port.as_str(), json!({}))).collect();
        let digests: Vec<String> = layers.iter().map(|layer| format!("sha256:{}", digest(layer))).collect();
        let step = json!({ "created": moment, "created_by": "orchestratord e2e" });
        json!({
            "architecture": architecture(),
            "os": "linux",
            "created": moment,
            "config": {
                "Entrypoint": self.entrypoint,
                "Env": self.env,
                "User": self.user,
                "WorkingDir": self.directory,
                "Labels": self.labels,
                "ExposedPorts": ports,
            },
            "rootfs": { "type": "layers", "diff_ids": digests },
            "history": vec![step; layers.len()],
        })
        .to_string()
    }
}

/// The archive `NAME.tar` of some images in the cache, written if it is not there yet.
pub(crate) fn ensure(cache: &Cache, name: &str, images: &[Image]) -> Result<PathBuf> {
    let packed = images.iter().map(Image::pack).collect::<Result<Vec<_>>>()?;
    let mut key = Key::default();
    for packed in &packed {
        key.add(packed.image.reference.as_bytes()).add(packed.config.as_bytes());
    }
    let folder = cache.images().join(key.finish());
    let path = folder.join(format!("{name}.tar"));
    if path.exists() {
        return Ok(path);
    }
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let temporary = folder.join(format!(".unfinished.{}", std::process::id()));
    File::create(&temporary)
        .and_then(|file| {
            let mut file = BufWriter::new(file);
            write(&packed, &mut file)?;
            file.flush()
        })
        .and_then(|()| fs::rename(&temporary, &path))
        .with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

/// The bytes of a layer: the files, and the folders they need.
fn layer(files: &Files) -> Result<Vec<u8>> {
    let mut tar = Builder::new(Vec::new());
    let mut folders: BTreeSet<String> = BTreeSet::new();
    for path in files.keys() {
        let parents = Path::new(path)
            .ancestors()
            .skip(1)
            .filter(|parent| !parent.as_os_str().is_empty());
        folders.extend(parents.map(|parent| parent.to_string_lossy().into_owned()));
    }
    for folder in &folders {
        add(&mut tar, folder, 0o755, EntryType::Directory, &[]).context("writing a layer")?;
    }
    for (path, (mode, content)) in files {
        let bytes = match content {
            Content::Of(source) => {
                &fs::read(source).with_context(|| format!("reading {} for an image", source.display()))?
            }
            Content::Bytes(bytes) => bytes,
        };
        add(&mut tar, path, *mode, EntryType::Regular, bytes).context("writing a layer")?;
    }
    tar.into_inner().context("writing a layer")
}

/// Writes the archive; a layer that several images share is written once.
fn write(images: &[Packed<'_>], to: impl Write) -> io::Result<()> {
    let mut tar = Builder::new(to);
    let mut manifest = Vec::new();
    let mut written = BTreeSet::new();
    for packed in images {
        let config_name = format!("{}.json", digest(packed.config.as_bytes()));
        if written.insert(config_name.clone()) {
            add(
                &mut tar,
                &config_name,
                0o644,
                EntryType::Regular,
                packed.config.as_bytes(),
            )?;
        }
        let mut names = Vec::new();
        for layer in &packed.layers {
            let folder = digest(layer);
            let name = format!("{folder}/layer.tar");
            if written.insert(name.clone()) {
                add(&mut tar, &folder, 0o755, EntryType::Directory, &[])?;
                add(&mut tar, &name, 0o644, EntryType::Regular, layer)?;
            }
            names.push(name);
        }
        manifest.push(json!({ "Config": config_name, "RepoTags": [packed.image.reference], "Layers": names }));
    }
    add(
        &mut tar,
        "manifest.json",
        0o644,
        EntryType::Regular,
        json!(manifest).to_string().as_bytes(),
    )?;
    tar.finish()
}

/// Appends one entry without anything that depends on where and when it is written.
fn add(tar: &mut Builder<impl Write>, path: &str, mode: u32, kind: EntryType, content: &[u8]) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(content.len() as u64);
    tar.append_data(&mut header, path, content)
}

fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Go's name of this machine's architecture.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn image() -> Image {
        let mut image = Image::new("localhost/a:1", &["/usr/bin/a"]);
        image.user = "65532".to_owned();
        image.file("/usr/bin/a", 0o755, Content::Bytes(b"program".to_vec()));
        image
            .labels
            .insert("org.opencontainers.image.title".to_owned(), "a".to_owned());
        image
    }

    fn archive(images: &[Image]) -> Vec<u8> {
        let packed: Vec<Packed<'_>> = images.iter().map(|image| image.pack().unwrap()).collect();
        let mut bytes = Vec::new();
        write(&packed, &mut bytes).unwrap();
        bytes
    }

    fn entries(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(bytes);
        let read = |entry: io::Result<tar::Entry<'_, &[u8]>>| {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (
                entry.path().unwrap().to_string_lossy().trim_end_matches('/').to_owned(),
                content,
            )
        };
        archive.entries().unwrap().map(read).collect()
    }

    #[test]
    fn the_same_content_gives_the_same_bytes() {
        assert_eq!(archive(&[image()]), archive(&[image()]));
    }

    #[test]
    fn the_manifest_leads_to_a_configuration_whose_digest_matches_the_layer() {
        let all = entries(&archive(&[image()]));
        let manifest: serde_json::Value = serde_json::from_slice(&all["manifest.json"]).unwrap();
        assert_eq!(manifest[0]["RepoTags"], json!(["localhost/a:1"]));
        let config: serde_json::Value = serde_json::from_slice(&all[manifest[0]["Config"].as_str().unwrap()]).unwrap();
        assert_eq!(config["config"]["User"], "65532");
        let layer = &all[manifest[0]["Layers"][0].as_str().unwrap()];
        assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{}", digest(layer)));
        let files = entries(layer);
        assert_eq!(files["usr/bin/a"], b"program");
        assert!(files.contains_key("usr") && files.contains_key("usr/bin"));
    }

    #[test]
    fn a_layer_of_several_images_is_stored_once() {
        let mut other = image();
        other.reference = "localhost/b:1".to_owned();
        other.file("/version", 0o644, Content::Bytes(b"2".to_vec()));
        let all = entries(&archive(&[image(), other]));
        assert_eq!(all.keys().filter(|name| name.ends_with("/layer.tar")).count(), 2);
        let manifest: serde_json::Value = serde_json::from_slice(&all["manifest.json"]).unwrap();
        assert_eq!(manifest[0]["Layers"][0], manifest[1]["Layers"][0]);
        assert_eq!(manifest[1]["Layers"].as_array().unwrap().len(), 2);
    }
}
