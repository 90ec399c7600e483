#!/usr/bin/env bash
# Measures what SPECIFICATION.md promises, with a release build and server defaults, beside
# crun, bubblewrap and a bare bash in the same run. BENCH_OUT names a file for the JSON.
set -euo pipefail
# shellcheck source=scripts/paths.sh
source "$(dirname "$0")/paths.sh"
# shellcheck source=scripts/server.sh
source "$root/scripts/server.sh"
cd "$root"

cargo build --workspace --bins --locked --release --quiet
start_server "$target/$triple/release"
hutch bench "$@"
if [ -n "${BENCH_OUT-}" ]; then hutch bench --json >"$BENCH_OUT"; fi
