//! Image references: the tag, and the image of another program of the same release.

/// The tag of an image reference, without registry port and digest; `None` if it has none.
pub fn tag(image: &str) -> Option<&str> {
    let without_digest = image.split('@').next().unwrap_or(image);
    let last = without_digest.rsplit('/').next().unwrap_or(without_digest);
    last.rsplit_once(':').map(|(_, tag)| tag).filter(|tag| !tag.is_empty())
}

/// The image of the program `name` that belongs to `environmentd_image`: same registry and repository prefix, and
/// `tag` or else environmentd's own, else `latest`. A digest names one image only and is left out.
pub fn matching_image(environmentd_image: &str, name: &str, tag: Option<&str>) -> String {
    let prefix = environmentd_image
        .rsplit_once('/')
        .map_or("materialize", |(prefix, _)| prefix);
    let tag = tag.or_else(|| self::tag(environmentd_image)).unwrap_or("latest");
    format!("{prefix}/{name}:{tag}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags() {
        for (image, expected) in [
            ("materialize/environmentd:v0.27.0", Some("v0.27.0")),
            ("materialize/environmentd", None),
            ("gcr.io:443/materialize/environmentd", None),
            ("gcr.io:443/materialize/environmentd:v1", Some("v1")),
            ("repo/environmentd:v1@sha256:abc", Some("v1")),
            ("repo/environmentd@sha256:abc", None),
            ("environmentd:v1", Some("v1")),
            ("environmentd:", None),
            ("", None),
        ] {
            assert_eq!(tag(image), expected, "{image}");
        }
    }

    #[test]
    fn matching_images() {
        for (image, explicit, expected) in [
            (
                "materialize/environmentd:v26.1.0",
                None,
                "materialize/balancerd:v26.1.0",
            ),
            ("environmentd:v26.1.0", None, "materialize/balancerd:v26.1.0"),
            ("materialize/environmentd", None, "materialize/balancerd:latest"),
            (
                "reg.example:5000/a/b/environmentd:v1",
                None,
                "reg.example:5000/a/b/balancerd:v1",
            ),
            (
                "reg.example:5000/a/environmentd",
                None,
                "reg.example:5000/a/balancerd:latest",
            ),
            (
                "reg.example/a/environmentd:v1@sha256:abc",
                None,
                "reg.example/a/balancerd:v1",
            ),
            (
                "reg.example/a/environmentd@sha256:abc",
                Some("25.1"),
                "reg.example/a/balancerd:25.1",
            ),
            (
                "materialize/environmentd:v26.1.0",
                Some("25.1"),
                "materialize/balancerd:25.1",
            ),
        ] {
            assert_eq!(matching_image(image, "balancerd", explicit), expected, "{image}");
        }
    }
}
