#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Installs the Debian packages that building and testing weir needs and that aren't there yet.
# Touches nothing that is installed: no upgrade, no recommended extras.
#
#   deps.sh             installs what is missing
#   deps.sh --check     only names it, one a line; exits 1 if there is any
#   deps.sh PACKAGE...  these instead of the list below

set -eu -o pipefail

packages=(
  # build
  gcc g++ libc6-dev linux-libc-dev make pkg-config clang llvm bpftool
  libbpf-dev libxdp-dev libelf-dev zlib1g-dev
  libyaml-dev libjansson-dev libevent-dev libncurses-dev scdoc
  # tests: CUnit, libFuzzer's runtime, the lab's tools, checks of scripts
  libcunit1-dev libclang-rt-14-dev
  clang-tidy cppcheck
  iproute2 ethtool iperf3 jq mawk procps util-linux shellcheck
  # tests: the packages, the unit, man pages, completion; what the docs' pages use
  dpkg-dev debhelper lintian systemd man-db groff git zsh fish python3 curl nftables iptables
)

is_installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing_of() {
  local package

  for package in "$@"; do is_installed "$package" || echo "$package"; done
}

# apt's own words are shown only when it fails.
quietly() {
  local log

  log=$(mktemp)
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    echo "deps: '$*' failed: see apt's message above" >&2
    exit 2
  fi
  rm -f "$log"
}

install_missing() {
  if [ "$(id -u)" != 0 ]; then
    echo "deps: missing: $*: run with sudo, or install them yourself" >&2
    exit 2
  fi
  echo "deps: installing $*"
  export DEBIAN_FRONTEND=noninteractive
  quietly apt-get -q update
  quietly apt-get -q install -y --no-upgrade --no-install-recommends "$@"
}

main() {
  local check=0 missing

  if ! command -v dpkg-query >/dev/null; then
    echo "deps: this isn't Debian (no dpkg-query): install by hand: ${packages[*]}" >&2
    exit 2
  fi
  if [ "${1:-}" = --check ]; then
    check=1
    shift
  fi
  case ${1:-} in
    -*)
      echo "deps: unknown '$1': give --check, package names or nothing" >&2
      exit 64
      ;;
  esac
  [ $# = 0 ] || packages=("$@")
  mapfile -t missing < <(missing_of "${packages[@]}")
  [ "${#missing[@]}" != 0 ] || exit 0
  if [ "$check" = 1 ]; then
    printf '%s\n' "${missing[@]}"
    exit 1
  fi
  install_missing "${missing[@]}"
}

main "$@"
