#!/usr/bin/env bash
# Everything that can be judged without running hutch.
set -euo pipefail
cd "$(dirname "$0")/.."
step() { echo "== $*"; "$@"; }

step cargo fmt --all --check
step rustfmt --check --edition 2024 fuzz/fuzz_targets/*.rs
step cargo xtask tidy
step shellcheck -x scripts/*.sh .ci/run
step cargo deny --log-level error check bans licenses sources
step cargo clippy --workspace --all-targets --locked -- -D warnings
RUSTDOCFLAGS="-D warnings" step cargo doc --workspace --no-deps --locked --document-private-items --quiet
