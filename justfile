# Short names for the commands of the README. `just --list` shows them.

# Build everything, show a rollout and a fail-over on a real cluster, leave it running
demo:
    cargo demo

# Everything CI checks; `just verify --long` for what takes longer
verify *ARGS:
    cargo verify {{ARGS}}

# Formatting and lints alone
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# Unit and doc tests alone
test *ARGS:
    cargo test --workspace --exclude e2e {{ARGS}}

# The local cluster: up, down, status, kubectl, logs, test
e2e *ARGS:
    cargo e2e {{ARGS}}

# The chart's unit tests
chart:
    cargo verify --only chart

# The operator's image with a container engine
image TAG="localhost/orchestratord:v0.1.0":
    docker build --tag {{TAG}} .
