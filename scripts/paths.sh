# shellcheck shell=bash disable=SC2034
# Sourced by the other scripts: where this repository and its build are.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
triple=x86_64-unknown-linux-gnu
