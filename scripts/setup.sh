#!/usr/bin/env bash
# Installs what checks and tests need and the machine lacks. `setup.sh checks` or
# `setup.sh tests` limits it to one of the two. Run twice, it does nothing the second time.
set -euo pipefail
# shellcheck source=scripts/paths.sh
source "$(dirname "$0")/paths.sh"
wanted=${1:-all}

missing=()
# need COMMAND PACKAGE: notes the package when the command is not there.
need() { [ -x "$1" ] || command -v "$1" >/dev/null || missing+=("$2"); }

if [ "$wanted" != checks ]; then
  need /usr/bin/python3 python3 # the example project, seen from inside a sandbox
  need node nodejs              # the official capnweb as a peer
  need npm npm
  need g++ g++      # libFuzzer
  need crun crun    # what start-up is measured against
  need bwrap bubblewrap
fi
need gcc gcc
if [ "$wanted" != tests ]; then need shellcheck shellcheck; fi

if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "setup: installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  else
    echo "setup: please install ${missing[*]}" >&2
    exit 1
  fi
fi

# Tools are built outside the repository, whose build settings are not meant for them.
tool() {
  command -v "$1" >/dev/null && return
  echo "setup: building $1 $2 (once)"
  (cd / && env -u CARGO_TARGET_DIR -u RUSTFLAGS cargo install --quiet --locked --debug "$1" --version "$2")
}
if [ "$wanted" != tests ]; then tool cargo-deny 0.20.2; fi
if [ "$wanted" != checks ]; then
  tool cargo-nextest 0.9.143
  for packages in "$root/tests/interop" "$root/sdk/typescript"; do
    if [ -f "$packages/package-lock.json" ] &&
      ! cmp -s "$packages/package-lock.json" "$packages/node_modules/.installed"; then
      (cd "$packages" && npm ci --silent --no-audit --no-fund)
      cp "$packages/package-lock.json" "$packages/node_modules/.installed"
    fi
  done
fi
