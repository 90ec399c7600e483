#!/usr/bin/env bash
# First CHAOS_STEPS (default 1000) operations of many clients on 20 sandboxes, with servers and
# daemons that are killed, for each of CHAOS_SEEDS, against a model (tests/e2e/tests/chaos).
# Then 200 races of calls and destroys, and a process that runs for longer than any deadline.
# Then a tree of 200,000 files is saved and restored.
# Then runs sandboxes through their whole life for SOAK_SECONDS (default 600), checks their work
# after every wake, and fails when the server keeps memory or descriptors.
set -euo pipefail
# shellcheck source=scripts/paths.sh
source "$(dirname "$0")/paths.sh"
# shellcheck source=scripts/server.sh
source "$root/scripts/server.sh"
cd "$root"
seconds=${SOAK_SECONDS:-600}

cargo build --workspace --bins --locked --quiet

before=$(mktemp)
scripts/census.sh take "$before"
for seed in ${CHAOS_SEEDS:-1 2 3}; do
  echo "soak: chaos, seed $seed"
  HUTCH_CHAOS_SEED=$seed HUTCH_CHAOS_STEPS=${CHAOS_STEPS:-1000} cargo nextest run --workspace --locked \
    --cargo-quiet -E 'binary(chaos) & test(asked_for)'
done
echo "soak: 200 races, and a process of 130 seconds"
HUTCH_RACES=200 HUTCH_PROCESS_SECONDS=130 cargo nextest run --workspace --locked --cargo-quiet \
  -E 'binary(product) & (test(racing_calls) | test(no_deadline))'
echo "soak: a snapshot of 200,000 files"
cargo nextest run --workspace --locked --cargo-quiet --run-ignored only -E 'binary(large)'
scripts/census.sh compare "$before"
rm -f "$before"

start_server "$target/$triple/debug"

memory_kib() { awk '/^VmRSS/ { print $2 }' "/proc/$server_pid/status"; }
descriptors() { find "/proc/$server_pid/fd" -mindepth 1 | wc -l; }

# life NAME: one sandbox from create to destroy, with work that must survive two sleeps.
life() {
  local text
  hutch sandbox create "$1" --type lite >/dev/null
  for text in one two; do
    hutch exec "$1" -c "echo $text-$1 >> kept; head -c 3000000 /dev/urandom > noise; sha256sum noise > sum"
    hutch sandbox sleep "$1" >/dev/null
    hutch exec "$1" -c "grep -qx $text-$1 kept && sha256sum --quiet -c sum"
  done
  hutch sandbox destroy "$1" --yes >/dev/null
}

for round in 1 2 3; do life "warm-$round"; done
memory=$(memory_kib) open=$(descriptors) lives=0 end=$((SECONDS + seconds))
while [ $SECONDS -lt $end ]; do
  lives=$((lives + 1))
  life "soak-$lives"
done
memory_after=$(memory_kib) open_after=$(descriptors)
echo "soak: $lives lives, memory $memory -> $memory_after KiB, descriptors $open -> $open_after"
if [ $((memory_after - memory)) -gt $((16384 + lives * 16)) ] || [ $((open_after - open)) -gt 8 ]; then
  echo "soak: the server grows" >&2
  exit 1
fi
