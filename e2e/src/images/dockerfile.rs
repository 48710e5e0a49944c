//! What the final stage of a `Dockerfile` says about the image, so that the image of the local cluster and the one a container engine builds are the same.
//!
//! Only the few instructions that a final stage with one static program needs are understood; any other is refused rather than ignored.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail};

/// The final stage.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FinalStage {
    /// `ENTRYPOINT` in its JSON form.
    pub(super) entrypoint: Vec<String>,
    /// `USER`.
    pub(super) user: String,
    /// `LABEL`.
    pub(super) labels: BTreeMap<String, String>,
    /// `ENV`, as `KEY=VALUE`.
    pub(super) env: Vec<String>,
    /// `EXPOSE`, with the protocol.
    pub(super) ports: BTreeSet<String>,
    /// `WORKDIR`.
    pub(super) directory: String,
    /// `COPY --from=…`: source and destination.
    pub(super) copies: Vec<(String, String)>,
}

// === impl FinalStage ===

impl FinalStage {
    /// Reads a whole `Dockerfile`.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut stage = None;
        for line in instructions(text) {
            let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((&line, ""));
            let (name, rest) = (name.to_ascii_uppercase(), rest.trim());
            if name == "FROM" {
                stage = Some((rest.to_owned(), Vec::new()));
            } else if let Some((_, lines)) = &mut stage {
                lines.push((name, rest.to_owned()));
            }
        }
        let (base, lines) = stage.context("it has no FROM")?;
        if base.split_whitespace().next() != Some("scratch") {
            bail!("its final stage starts from {base}; without a registry only `FROM scratch` can be built");
        }
        let mut found = Self::default();
        for (name, rest) in lines {
            found.take(&name, &rest).with_context(|| format!("{name} {rest}"))?;
        }
        Ok(found)
    }

    fn take(&mut self, name: &str, rest: &str) -> Result<()> {
        match name {
            "LABEL" => self.labels.extend(pairs(rest)?),
            "ENV" => self
                .env
                .extend(pairs(rest)?.into_iter().map(|(key, value)| format!("{key}={value}"))),
            "USER" => rest.clone_into(&mut self.user),
            "WORKDIR" => rest.clone_into(&mut self.directory),
            "ENTRYPOINT" => {
                self.entrypoint = serde_json::from_str(rest).context("only the JSON form works without a shell")?;
            }
            "EXPOSE" => self.ports.extend(rest.split_whitespace().map(|port| {
                if port.contains('/') {
                    port.to_owned()
                } else {
                    format!("{port}/tcp")
                }
            })),
            "COPY" => {
                let words: Vec<&str> = rest.split_whitespace().collect();
                match words[..] {
                    [from, source, destination] if from.starts_with("--from=") => {
                        self.copies.push((source.to_owned(), destination.to_owned()));
                    }
                    _ => bail!("expected `COPY --from=STAGE SOURCE DESTINATION`"),
                }
            }
            _ => bail!("an instruction that the local cluster's images do not know"),
        }
        Ok(())
    }
}

/// Instructions without comments, continued lines joined.
fn instructions(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = String::new();
    for line in text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        match line.strip_suffix('\\') {
            Some(part) => {
                open.push_str(part);
                open.push(' ');
            }
            None => found.push(std::mem::take(&mut open) + line),
        }
    }
    found
}

/// `key=value key="quoted value"`.
fn pairs(text: &str) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=').context("expected KEY=VALUE")?;
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').context("a quote is not closed")?,
            None => after.split_once(char::is_whitespace).unwrap_or((after, "")),
        };
        found.push((key.trim().to_owned(), value.to_owned()));
        rest = after.trim_start();
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = r#"# comment
FROM rust AS build
RUN cargo build \
 && true
FROM scratch
LABEL a.title="two words" \
      a.version=v1
ENV A=1
EXPOSE 3100 53/udp
COPY --from=build /out/orchestratord /orchestratord
USER 65532:65532
ENTRYPOINT ["/orchestratord"]
"#;

    #[test]
    fn only_the_final_stage_counts() {
        let stage = FinalStage::parse(EXAMPLE).unwrap();
        assert_eq!(stage.labels["a.title"], "two words");
        assert_eq!(stage.labels["a.version"], "v1");
        assert_eq!(stage.env, ["A=1"]);
        assert_eq!(
            stage.ports,
            BTreeSet::from(["3100/tcp".to_owned(), "53/udp".to_owned()])
        );
        assert_eq!(
            stage.copies,
            [("/out/orchestratord".to_owned(), "/orchestratord".to_owned())]
        );
        assert_eq!(
            (stage.user.as_str(), stage.entrypoint.as_slice()),
            ("65532:65532", &["/orchestratord".to_owned()][..])
        );
    }

    #[test]
    fn what_could_not_be_built_here_is_refused() {
        for (text, reason) in [
            ("FROM debian\nUSER 1\n", "FROM scratch"),
            ("FROM scratch\nRUN true\n", "do not know"),
            ("FROM scratch\nENTRYPOINT /a\n", "JSON form"),
            ("FROM scratch\nCOPY a b\n", "COPY --from"),
            ("USER 1\n", "no FROM"),
        ] {
            let error = format!("{:#}", FinalStage::parse(text).unwrap_err());
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
