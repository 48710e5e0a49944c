//! Reads the files that cert-manager or users provide.

use std::path::{Path, PathBuf};

use super::pair::{Material, Part};

/// Where the three parts are.
#[derive(Clone, Debug)]
pub struct Files {
    /// `--tls-ca`.
    pub authorities: PathBuf,
    /// `--tls-cert`.
    pub certificate: PathBuf,
    /// `--tls-key`.
    pub key: PathBuf,
}

/// A file that can't be read.
#[derive(Debug, thiserror::Error)]
#[error("can't read {}", path.display())]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: std::io::Error,
}

// === impl Files ===

impl Files {
    /// The path of a part.
    pub fn path(&self, part: Part) -> &Path {
        match part {
            Part::Authorities => &self.authorities,
            Part::Certificate => &self.certificate,
            Part::Key => &self.key,
        }
    }

    /// Reads all three. They are exchanged one by one, so that they may belong to different pairs; then the pair is
    /// not usable, and the next look finds them complete.
    ///
    /// # Errors
    /// [`Unreadable`], with the first file that can't be read.
    pub async fn read(&self) -> Result<Material, Unreadable> {
        let read = async |part| {
            let path = self.path(part);
            tokio::fs::read(path).await.map_err(|source| Unreadable {
                path: path.to_owned(),
                source,
            })
        };
        Ok(Material {
            authorities: read(Part::Authorities).await?,
            certificate: read(Part::Certificate).await?,
            key: read(Part::Key).await?,
        })
    }
}
