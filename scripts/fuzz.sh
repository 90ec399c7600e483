#!/usr/bin/env bash
# Runs each fuzz target for SECONDS (default 60) on its corpus in fuzz/corpus. What a run
# finds new stays out of the repository unless FUZZ_KEEP=1.
#
# libFuzzer needs only coverage instrumentation, which the stable compiler has. There is no
# address sanitizer: the parsers are in crates that forbid unsafe code.
set -euo pipefail
# shellcheck source=scripts/paths.sh
source "$(dirname "$0")/paths.sh"
cd "$root/fuzz" 2>/dev/null || exit 0
seconds=${1:-60}

export CARGO_TARGET_DIR=$target/fuzz
export RUSTFLAGS="--cfg fuzzing -C passes=sancov-module -C debug-assertions -C codegen-units=1
  -C llvm-args=-sanitizer-coverage-level=4 -C llvm-args=-sanitizer-coverage-inline-8bit-counters
  -C llvm-args=-sanitizer-coverage-pc-table -C llvm-args=-sanitizer-coverage-trace-compares"
cargo build --release --quiet --target "$triple"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for source in fuzz_targets/*.rs; do
  name=$(basename "$source" .rs)
  mkdir -p "corpus/$name" "$scratch/$name"
  new=$scratch/$name
  [ "${FUZZ_KEEP-}" = 1 ] && new=corpus/$name
  if ! "$CARGO_TARGET_DIR/$triple/release/$name" "$new" "corpus/$name" -max_total_time="$seconds" \
    -artifact_prefix="$scratch/$name-" -rss_limit_mb=1024 -timeout=5 -print_final_stats=1 \
    >"$scratch/log" 2>&1; then
    tail -n 40 "$scratch/log" >&2
    for artifact in "$scratch/$name-"*; do
      [ -f "$artifact" ] && echo "input, in base64: $(base64 -w0 "$artifact")" >&2
    done
    echo "fuzz: $name failed" >&2
    exit 1
  fi
  runs=$(grep -oP 'number_of_executed_units: *\K\d+' "$scratch/log" || echo 0)
  echo "fuzz: $name: $runs runs, no finding"
done
