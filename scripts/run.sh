#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Installs what is missing, builds weir, shows it at work.
#
#   run.sh [lab] [--seconds N] [--without-weir]    in a lab of its own: nothing else is touched
#   run.sh services [shedder|breaker|governor]... [--seconds N]    the loops, in a lab too
#   run.sh INTERFACE                               on a real interface, by packaging/weir.yaml
#
# The lab (scripts/lab.sh) takes 20 seconds, that of the services (scripts/lab-services.sh) 90 for
# all three loops, or N for each. They end with a verdict in figures and exit 1 if weir didn't keep
# its promise. --without-weir shows the same traffic with no limit.

set -eu -o pipefail
ROOT=$(cd "$(dirname "$0")/.." && pwd)
cd "$ROOT"

usage() {
  sed -n '3,11s/^# \{0,1\}//p' "$0"
}

# The default config for this interface, in build/. A group that doesn't exist is left out: the
# control socket is then root's alone.
write_config() {
  local interface=$1 out=$2

  sed "s/^interfaces: \[\]\$/interfaces: [{name: $interface, mode: auto}]/" packaging/weir.yaml \
    >"$out"
  if ! grep -qF "interfaces: [{name: $interface," "$out"; then
    echo "run.sh: packaging/weir.yaml has no line 'interfaces: []' to fill in" >&2
    exit 1
  fi
  getent group weir >/dev/null || sed -i -E 's/,?[[:space:]]*group:[[:space:]]*weir\b//' "$out"
}

run_interface() {
  local interface=$1 config

  if [ ! -e "/sys/class/net/$interface" ]; then
    echo "run.sh: no interface '$interface' here; there are:" /sys/class/net/* |
      sed 's|/sys/class/net/||g' >&2
    exit 1
  fi
  scripts/build.sh build/weir
  config=build/run-$interface.yaml
  write_config "$interface" "$config"
  cat <<END
weir now limits what arrives on $interface, as $config says:
$(sed 's/#.*//; /^[[:space:]]*$/d; s/^/    /' "$config")
From another terminal:
    sudo build/weir show                          what passed, what was refused
    sudo build/weir set per-ip rate=500pps        change a limit now
    sudo build/weir stop --detach                 take weir off $interface
Ctrl-C ends the controller here; the limits stay on $interface until 'stop --detach'.
END
  exec build/weir run -c "$config"
}

main() {
  case ${1:-lab} in
    -h | --help)
      usage
      exit 0
      ;;
  esac
  if [ "$(id -u)" != 0 ]; then
    echo "run.sh: needs root (namespaces, XDP): sudo $0 $*" >&2
    exit 1
  fi
  case ${1:-lab} in
    lab)
      shift $(($# > 0))
      exec scripts/lab.sh "$@"
      ;;
    services)
      shift
      exec scripts/lab-services.sh "$@"
      ;;
    --*) exec scripts/lab.sh "$@" ;;
    *)
      if [ $# != 1 ]; then
        usage >&2
        exit 64
      fi
      run_interface "$1"
      ;;
  esac
}

main "$@"
