# shellcheck shell=bash
# Sourced by the scripts that need a running product: a server of their own in a temporary
# data directory on a free port of 127.0.0.1, and its end, whatever happens.
#
# Sets HUTCH_DATA_DIR and HUTCH_URL and puts the built binaries first in PATH.

server_pid=
data_dir=

# launch: runs the server and waits until it answers. Fails when it does not.
launch() {
  local tries
  : >"$data_dir/log"
  # In a session of its own, so that Ctrl-C reaches this script alone, which then clears up.
  setsid hutch serve --listen 127.0.0.1:0 2>>"$data_dir/log" </dev/null &
  server_pid=$!
  for ((tries = 0; tries < 300; tries++)); do
    HUTCH_URL=$(sed -n 's/.*ready: \(http:[^ ]*\).*/\1/p' "$data_dir/log" | head -n 1)
    export HUTCH_URL
    [ -n "$HUTCH_URL" ] && return 0
    kill -0 "$server_pid" 2>/dev/null || break
    sleep 0.1
  done
  echo "hutch serve did not become ready:" >&2
  cat "$data_dir/log" >&2
  return 1
}

# start_server FOLDER: starts the `hutch` of FOLDER.
start_server() {
  if [ "$(id -u)" != 0 ]; then
    echo "Sandboxes need root on this machine: run the same command with sudo." >&2
    exit 1
  fi
  PATH=$1:$PATH
  data_dir=$(mktemp -d "${TMPDIR:-/tmp}/hutch-data.XXXXXX")
  chmod 711 "$data_dir"
  export PATH HUTCH_DATA_DIR=$data_dir/data
  unset HUTCH_PROJECT HUTCH_TOKEN
  trap stop_server EXIT
  trap 'exit 130' INT TERM
  launch
}

# Process ids of hutch programs that were started for this data directory.
ours() {
  local process
  for process in /proc/[0-9]*; do
    case $(readlink "$process/exe" 2>/dev/null) in
      */hutch | */sandboxd)
        if cat "$process/cmdline" "$process/environ" 2>/dev/null | grep -qzF -- "$data_dir"; then
          echo "${process#/proc/}"
        fi
        ;;
    esac
  done
}

# Destroys every sandbox of the server, stops it, and removes its data directory.
stop_server() {
  local status=$? project process waits
  trap - EXIT
  trap '' INT TERM
  if [ "$status" != 0 ] && [ -s "$data_dir/log" ]; then
    echo "last lines of the server's log:" >&2
    tail -n 20 "$data_dir/log" >&2
  fi
  # A server that died has left its sandboxes running; another one takes them over.
  if kill -0 "$server_pid" 2>/dev/null || launch; then
    for project in $(hutch project list --json 2>/dev/null | grep -o '"slug": *"[^"]*"' | cut -d'"' -f4); do
      hutch sandbox destroy --all --yes -p "$project" >/dev/null 2>&1 || true
    done
    kill -TERM "$server_pid"
    wait "$server_pid" 2>/dev/null || true
  fi
  # What serves this data directory (the spawner) ends by itself when it holds nothing.
  for waits in $(seq 50); do
    process=$(ours)
    [ -z "$process" ] && break
    if [ "$waits" = 50 ]; then
      echo "still running, killed: $process" >&2
      # shellcheck disable=SC2086 # a list of numbers
      kill -KILL $process 2>/dev/null || true
      status=1
    fi
    sleep 0.1
  done
  rm -rf "$data_dir"
  exit "$status"
}
