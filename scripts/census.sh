#!/usr/bin/env bash
# Counts what hutch could leave behind on a machine.
#   census.sh take FILE     writes the present state to FILE
#   census.sh compare FILE  waits up to 10 s for the state in FILE to return; fails with the difference
set -euo pipefail

# One line for each process that is ours or lives in namespaces other than this shell's, each
# mount, network namespace, control group, loop device and temporary file of ours.
# Read in one pass of /proc, so that the census starts few processes of its own.
census() {
  local process pid exe name own_pid own_mnt own_net
  own_pid=$(readlink /proc/self/ns/pid)
  own_mnt=$(readlink /proc/self/ns/mnt)
  own_net=$(readlink /proc/self/ns/net)
  for process in /proc/[0-9]*; do
    pid=${process#/proc/}
    # Kernel threads have no exe, and a process may end while it is looked at.
    exe=$(readlink "$process/exe" 2>/dev/null) || continue
    name=$(tr '\0' ' ' 2>/dev/null <"$process/cmdline" | cut -c1-120) || continue
    case ${exe##*/} in
      hutch | hutch\ * | sandboxd | sandboxd\ * | hutch-*) echo "process $pid $name" ;;
      *)
        if [ "$(readlink "$process/ns/pid" 2>/dev/null)" != "$own_pid" ] ||
          [ "$(readlink "$process/ns/mnt" 2>/dev/null)" != "$own_mnt" ]; then
          [ -d "$process" ] && echo "process $pid $name"
        fi
        ;;
    esac
    local net
    net=$(readlink "$process/ns/net" 2>/dev/null) || continue
    [ "$net" = "$own_net" ] || echo "network namespace $net"
  done
  # Mount ids change; where, of what kind and from where do not.
  awk '{ for (i = 7; $i != "-"; i++); print "mount " $5, $(i+1), $(i+2) }' /proc/self/mountinfo
  find /sys/fs/cgroup -type d -name '*hutch*' -printf 'control group %p\n' 2>/dev/null || true
  for process in /sys/block/loop*/loop/backing_file; do
    [ -e "$process" ] && echo "loop device $process $(cat "$process" 2>/dev/null)"
  done
  find /tmp /dev/shm -maxdepth 1 -name 'hutch*' -printf 'file %p\n' 2>/dev/null || true
}

state() { census | LC_ALL=C sort -u; }

case ${1-} in
  take)
    state >"$2"
    ;;
  compare)
    for _ in $(seq 20); do
      difference=$(diff <(cat "$2") <(state) | grep '^[<>]') || { echo "census: nothing is left behind"; exit 0; }
      sleep 0.5
    done
    echo "census: the machine is not as it was (< is gone, > is new):" >&2
    echo "$difference" >&2
    exit 1
    ;;
  *)
    echo "usage: census.sh take|compare FILE" >&2
    exit 2
    ;;
esac
