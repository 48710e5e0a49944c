//! Reads the public keys that sign licence keys.

use std::path::{Path, PathBuf};

use jsonwebtoken::DecodingKey;

/// Why a public key can't be used. A key that was given is never skipped (decision R13).
#[derive(Debug, thiserror::Error)]
pub enum LicenseKeyError {
    /// The file can't be read.
    #[error("--license-key-public-key: can't read {path}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A directory without a file: a Secret without keys, most likely. Never read as "no signatures to check".
    #[error(
        "--license-key-public-key: {path} is a directory without any file; expected at least one RSA public key in PEM"
    )]
    Empty {
        /// The directory.
        path: PathBuf,
    },
    /// The file holds no RSA public key in PEM.
    #[error("--license-key-public-key: {path} holds no RSA public key in PEM")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: jsonwebtoken::errors::Error,
    },
}

/// Reads every file, in order. A directory stands for its files in the order of their names, entries that begin with a dot
/// aside: a mounted Secret has its bookkeeping there (decision C9).
///
/// # Errors
/// See [`LicenseKeyError`].
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<DecodingKey>, LicenseKeyError> {
    let mut keys = Vec::new();
    for path in paths {
        if path.is_dir() {
            for file in files(path)? {
                keys.push(read_one(&file)?);
            }
        } else {
            keys.push(read_one(path)?);
        }
    }
    Ok(keys)
}

fn files(directory: &Path) -> Result<Vec<PathBuf>, LicenseKeyError> {
    let unreadable = |source| LicenseKeyError::Unreadable {
        path: directory.to_owned(),
        source,
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            files.push(entry.path());
        }
    }
    if files.is_empty() {
        return Err(LicenseKeyError::Empty {
            path: directory.to_owned(),
        });
    }
    files.sort();
    Ok(files)
}

fn read_one(path: &Path) -> Result<DecodingKey, LicenseKeyError> {
    let pem = std::fs::read(path).map_err(|source| LicenseKeyError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    DecodingKey::from_rsa_pem(&pem).map_err(|source| LicenseKeyError::Invalid {
        path: path.to_owned(),
        source,
    })
}
