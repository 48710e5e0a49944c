//! Container images made without a registry or a daemon: archives as `docker save` writes them, kept in the cache, loaded into the nodes.
//!
//! What goes into which image stands here; `archive` is the format, `dockerfile` reads the operator's settings, `programs` builds what is inside.

mod archive;
mod dockerfile;
mod programs;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::cache::{Cache, Key, repository};
use archive::{Content, Image, ensure};
use dockerfile::FinalStage;
pub(crate) use programs::{Program, build, build_for_development};

/// The repository of the operator's image.
pub(crate) const OPERATOR: &str = "localhost/orchestratord";

/// What the names of all stand-ins' images begin with.
pub(crate) const STANDINS: &str = "localhost/materialize";

/// The operator's image.
#[derive(Clone, Debug)]
pub(crate) struct OperatorImage {
    /// Its archive.
    pub(crate) archive: PathBuf,
    /// Its tag, which names the build: pods are replaced when the program has changed, and only then.
    pub(crate) tag: String,
}

/// The image that holds the namespaces of a pod: one process that does nothing but bury orphans.
pub(crate) fn pause(cache: &Cache) -> Result<PathBuf> {
    let mut image = Image::new("localhost/pause:1", &["/catatonit", "-P"]);
    image.file(
        "/catatonit",
        0o755,
        Content::Of(Path::new("/usr/bin/catatonit").to_path_buf()),
    );
    ensure(cache, "pause", &[image])
}

/// The operator's image, with what the final stage of the `Dockerfile` says about it.
pub(crate) fn operator(cache: &Cache) -> Result<OperatorImage> {
    let program = build(cache, Program::Operator)?;
    let path = repository().join("Dockerfile");
    let stage = FinalStage::parse(&fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?)
        .with_context(|| format!("understanding {}", path.display()))?;
    let mut key = Key::default();
    key.add_file(&program)?.add_file(&path)?;
    let tag = format!("e2e-{}", key.finish());
    let mut image = Image::new(&format!("{OPERATOR}:{tag}"), &[]);
    image.entrypoint = stage.entrypoint;
    image.user = stage.user;
    image.labels = stage.labels;
    image.ports = stage.ports;
    image.directory = stage.directory;
    image.env.extend(stage.env);
    for (source, destination) in &stage.copies {
        if Path::new(source).file_name() == program.file_name() {
            image.file(destination, 0o755, Content::Of(program.clone()));
        } else if Path::new(source).is_file() {
            image.file(destination, 0o644, Content::Of(PathBuf::from(source)));
        } else {
            bail!(
                "the Dockerfile copies {source} from its build stage and this machine has no such file: install the package it comes from"
            );
        }
    }
    Ok(OperatorImage {
        archive: ensure(cache, "orchestratord", &[image])?,
        tag,
    })
}

/// The stand-ins' images with these tags, all in one archive.
pub(crate) fn standins(cache: &Cache, tags: &[&str]) -> Result<PathBuf> {
    let program = build(cache, Program::Standins)?;
    let mut images = Vec::new();
    for tag in tags {
        for role in ["environmentd", "clusterd", "balancerd", "console"] {
            let mut image = Image::new(&format!("{STANDINS}/{role}:{tag}"), &["/standins", role]);
            "999:999".clone_into(&mut image.user);
            image.file("/standins", 0o755, Content::Of(program.clone()));
            image.file("/version", 0o644, Content::Bytes(tag.as_bytes().to_vec()));
            images.push(image);
        }
    }
    ensure(cache, "standins", &images)
}
