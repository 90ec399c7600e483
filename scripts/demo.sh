#!/usr/bin/env bash
# What hutch is for, once, on real input and with timings: a project goes into a sandbox, is
# tested and edited there, sleeps, wakes with the edit, and shows its history.
#
# Builds with the dev profile, as the tests do: a first build is minutes shorter than a
# release build, and each step below is slower by some milliseconds.
set -euo pipefail
# shellcheck source=scripts/paths.sh
source "$(dirname "$0")/paths.sh"
# shellcheck source=scripts/server.sh
source "$root/scripts/server.sh"
cd "$root"

now() { echo "${EPOCHREALTIME/[^0-9]/}"; }
# since START: the time since then, for people.
since() {
  local us=$(($(now) - $1))
  if [ $us -lt 1000000 ]; then echo "$((us / 1000)) ms"; else printf '%d.%01d s\n' $((us / 1000000)) $((us / 100000 % 10)); fi
}
bold="" plain=""
if [ -t 1 ] && [ -z "${NO_COLOR-}" ]; then bold=$'\e[1m' plain=$'\e[0m'; fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
# run COMMAND: shows a line of shell, runs it, and says how long it took.
run() {
  local start status=0
  printf '$ %s\n' "$1"
  start=$(now)
  bash -o pipefail -c "$1" 2>&1 | sed 's/^/    /' || status=$?
  printf '    (%s)\n' "$(since "$start")"
  return $status
}

say "Build (dev profile)"
start=$(now)
cargo build --workspace --bins --locked --quiet
echo "    ($(since "$start"))"

say "Start a server of its own, on a free port, in a temporary data directory"
start=$(now)
start_server "$target/$triple/debug"
echo "    ready at $HUTCH_URL ($(since "$start"))"
export HUTCH_PROJECT=demo

say "A project and a sandbox in it"
run 'hutch project create demo'
run 'hutch sandbox create main --type standard-1'

say "Bring a small Python project in and run its tests. The first command boots the sandbox."
run 'hutch cp examples/tally main:/workspace'
run 'hutch exec main --cwd /workspace/tally -- python3 -m unittest'

say "Edit a file there"
run 'hutch exec main --cwd /workspace/tally -c "echo 2026-10-23,books,18.50 >> expenses.csv"'
run 'hutch exec main --cwd /workspace/tally -- python3 tally.py --month 2026-10 expenses.csv'

say "Sleep: the work is kept, the machine is gone"
run 'hutch sandbox sleep main'
run 'hutch sandbox list'

say "The next command wakes it; the edit is there"
run 'hutch exec main --cwd /workspace/tally -- tail -n 2 expenses.csv'
run 'hutch exec main --cwd /workspace/tally -- python3 tally.py --month 2026-10 expenses.csv'

say "Everything that happened to it"
run 'hutch sandbox events main'

say "The same from JavaScript"
run "hutch itx run --context demo -e 'const path = \"/sandboxes/smoke\";
      const sb = await itx.sandboxes.get(path).create({ instanceType: \"lite\" });
      const r = await sb.exec(\"ls /\");
      return { exitCode: r.exitCode, stdout: r.stdout };'"

say "Destroy both; their names are retired"
run 'hutch sandbox destroy main --yes'
run 'hutch sandbox destroy smoke --yes'
run 'hutch sandbox list --all'

say "Done. A server of your own, in one terminal and as root:"
cat <<END
    $target/$triple/debug/hutch serve
and in another:
    $target/$triple/debug/hutch sandbox create main
    $target/$triple/debug/hutch exec main -- uname -a
README.md goes on from there.
END
