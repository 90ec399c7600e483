#!/usr/bin/env bash
# Builds once, runs every test there is, and makes sure that the machine is left as it was.
set -euo pipefail
# shellcheck source=scripts/paths.sh
source "$(dirname "$0")/paths.sh"
cd "$root"

# Temporary files of all tests go into one folder, which must be empty in the end. It is
# readable for all, since sandboxes run under user ids of their own.
before=$(mktemp)
scripts/census.sh take "$before"
TMPDIR=$(mktemp -d /tmp/ht.XXXXXX)
export TMPDIR
chmod 755 "$TMPDIR"
trap 'rm -rf "$TMPDIR" "$before"' EXIT

step() { echo "== $*"; "$@"; }
failed=()

step cargo build --workspace --bins --locked
step cargo test --workspace --doc --locked --quiet || failed+=("documentation tests")
log=$TMPDIR/nextest.log
step cargo nextest run --workspace --locked 2>&1 | tee "$log" || failed+=("cargo nextest")
summary=$(grep -E '^ *Summary ' "$log" | tail -n 1)
rm -f "$log"
step scripts/fuzz.sh "${FUZZ_SECONDS:-10}" || failed+=("fuzz")

scripts/census.sh compare "$before" || failed+=("census")
left=$(find "$TMPDIR" -mindepth 1 -maxdepth 2 | head -n 20)
if [ -n "$left" ]; then
  printf 'left in the temporary folder:\n%s\n' "$left" >&2
  failed+=("temporary files")
fi

echo "$summary"
if [ ${#failed[@]} -gt 0 ]; then
  printf 'FAILED: %s\n' "${failed[@]}" >&2
  exit 1
fi
