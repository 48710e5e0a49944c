//! The rendered hash: what `status.resourcesHash` is compared with to see whether there is anything to roll out.

use std::io;

use serde::Serialize;
use sha2::{Digest, Sha256};

/// SHA-256, in lower-case hexadecimal, of the compact JSON of `content`.
#[expect(clippy::missing_panics_doc, reason = "it can't, see below")]
pub fn of(content: &impl Serialize) -> String {
    let mut hasher = Hasher(Sha256::new());
    #[expect(
        clippy::expect_used,
        reason = "the hasher never refuses bytes, and Kubernetes objects are plain JSON data"
    )]
    serde_json::to_writer(&mut hasher, content).expect("rendered objects serialise");
    let digest = hasher.0.finalize();
    digest.iter().fold(String::with_capacity(64), |mut hex, byte| {
        use std::fmt::Write as _;
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Feeds the serialised bytes to the digest, without holding them all.
struct Hasher(Sha256);

// === impl Hasher ===

impl io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::of;

    /// The digest of the two bytes `{}`, as `sha256sum` gives it.
    #[test]
    fn is_the_sha256_of_the_compact_json() {
        let empty = std::collections::BTreeMap::<String, String>::new();
        assert_eq!(
            of(&empty),
            "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        );
    }
}
