# syntax=docker/dockerfile:1
# The operator's image: one static binary and the CA certificates, nothing else.
# glibc is linked statically, so that the final stage needs no C library; `--target` keeps that flag away from
# proc macros and build scripts, which are loaded dynamically.
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
ENV RUSTFLAGS="-C target-feature=+crt-static"
RUN target="$(uname -m)-unknown-linux-gnu" \
 && cargo build --locked --release --package orchestratord --target "$target" --target-dir /build \
 && mkdir /out && cp "/build/$target/release/orchestratord" /out/

FROM scratch
LABEL org.opencontainers.image.title="orchestratord" \
      org.opencontainers.image.description="The Kubernetes operator of self-managed Materialize" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="v0.1.0"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/orchestratord /orchestratord
USER 65532:65532
ENTRYPOINT ["/orchestratord"]
