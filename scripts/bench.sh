#!/usr/bin/env bash
# Measures what SPECIFICATION.md promises, with a release build and server defaults, beside
# crun, bubblewrap and a bare bash in the same run. Arguments go to `hutch bench`.
set -euo pipefail
# shellcheck source=scripts/paths.sh
source "$(dirname "$0")/paths.sh"
cd "$root"

cargo build --workspace --bins --locked --release --quiet
unset HUTCH_URL
exec "$target/$triple/release/hutch" bench --plots benches/plots "$@"
