#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# weir on other kernels: fetches Debian's kernel of each VERSION (nothing is installed), boots it
# in qemu (emulation; ACCEL=kvm where that works) and runs guest.sh in it: with weir as clang builds
# it everything, with weir as clang-19 builds it verifier and traffic. Shows what each verifier
# walked for each program. The last line is `N passed, N failed`.
#
#   test.sh [VERSION...]   such as 6.1, or newest; 5.10 is to be refused; here: this machine's own,
#                          for what isn't tested elsewhere. Default: here 5.10 6.1 6.12 newest
#   test.sh --groups G,... [VERSION...]    only these groups of guest.sh, built by clang alone
#
# WEIR_KERNELS  where kernels are kept (build/kernels)
# TIMEOUT       seconds for one kernel (3600; with --groups 900)

set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 2

kernels=${WEIR_KERNELS:-build/kernels}
payload=build/kernel-payload
programs="bash ip tc bpftool ethtool xdp-filter jq awk nsenter timeout date mktemp mount umount
  sed grep seq head tail tr cut wc rm cp ls cat find stat dirname basename"
modules="veth ifb sch_ingress cls_bpf act_bpf 8021q bonding"
groups="verifier traffic sockets vlan bond dispatcher kernel"
both_compilers=1
total_passed=0
total_failed=0

# make_tree NAME BUILD: the parts of this tree that guest.sh uses, at the same places in
# $payload/NAME. The tests' tools come from the ordinary build.
make_tree() {
  local to=$payload/$1

  mkdir -p "$to"/{build/bpf,build/tests/kernel,tests/kernel,scripts}
  cp "$2/weir" "$to/build/"
  cp "$2"/bpf/{weir,connections}.bpf.o "$to/build/bpf/"
  cp build/tests/{flood,sink,client,verify} "$to/build/tests/"
  cp tests/kernel/verifier-budget.txt "$to/tests/kernel/"
  cp -r tests/net "$to/tests/"
  cp -r scripts/kernels "$to/scripts/"
}

make_payload() {
  rm -rf "$payload"
  make_tree clang build
  find build/tests/kernel -maxdepth 1 -name 'test_*' -perm -u+x ! -name '*.o' \
    -exec cp -t "$payload/clang/build/tests/kernel" {} +
  [ "$both_compilers" = 0 ] || make_tree clang-19 build/clang-19
}

build() {
  local b=build/clang-19 tests

  scripts/deps.sh || exit 2
  scripts/deps.sh qemu-system-x86 busybox-static kmod file xz-utils zstd xdp-tools || exit 2
  tests=$(find tests/kernel -name 'test_*.c' | sed 's|\.c$||; s|^|build/|')
  # shellcheck disable=SC2086 # one target a word
  make -s -j2 build/weir build/tests/{flood,sink,client,verify} $tests || exit 2
  [ "$both_compilers" = 1 ] || return 0
  scripts/deps.sh clang-19 || exit 2
  make -s -j2 CLANG=clang-19 B=$b $b/weir || exit 2
}

# command_for VERSION: what the guest runs.
command_for() {
  local both=

  case $1 in 5.*) echo "bash clang/scripts/kernels/guest.sh refused" && return ;; esac
  [ "$both_compilers" = 0 ] || both="bash clang-19/scripts/kernels/guest.sh verifier traffic; "
  echo "${both}bash clang/scripts/kernels/guest.sh $groups"
}

# add_up LOG COUNTS: what each of so many guest.sh counted.
add_up() {
  local passed failed counts=0

  while read -r passed _ failed _; do
    counts=$((counts + 1))
    total_passed=$((total_passed + passed))
    total_failed=$((total_failed + failed))
  done < <(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$1")
  [ "$counts" = "$2" ]
}

# Both compilers' weir on this kernel. The kernel tests are scripts/test.sh's.
test_here() {
  local log=build/log/kernel-here.log tree

  for tree in "$payload"/clang*; do
    bash "$tree/scripts/kernels/guest.sh" verifier traffic sockets 2>&1 | tee "$log"
    add_up "$log" 1 && continue
    echo "FAIL this kernel: no count"
    total_failed=$((total_failed + 1))
  done
}

# test_kernel VERSION: in a guest.
test_kernel() {
  local tree log=build/log/kernel-$1.log code=0 command

  if ! tree=$(scripts/kernels/get-kernel.sh "$1" "$kernels"); then
    echo "FAIL kernel $1: can't be fetched"
    total_failed=$((total_failed + 1))
    return
  fi
  command=$(command_for "$1")
  # Without mitigations the emulated verifier is three times as fast.
  TOOLS=$programs MODULES=$modules FILES=$(dirname "$(dpkg -L libxdp1 | grep dispatcher.o)") \
    APPEND=mitigations=off TIMEOUT=$seconds CONSOLE_LOG=build/log/kernel-$1-console.log \
    scripts/kernels/run-in-kernel.sh "$tree" "$payload" "$command" 2>&1 | tee "$log" || code=$?
  if ! add_up "$log" "$(grep -o guest.sh <<<"$command" | wc -l)"; then
    echo "FAIL kernel $1: exit $code without a count"
    total_failed=$((total_failed + 1))
  fi
}

main() {
  local version

  seconds=${TIMEOUT:-3600}
  if [ "${1:-}" = --groups ]; then
    groups=${2//,/ }
    both_compilers=0
    seconds=${TIMEOUT:-900}
    shift 2
  fi
  [ $# != 0 ] || set -- here 5.10 6.1 6.12 newest
  build
  mkdir -p build/log
  make_payload
  for version in "$@"; do
    if [ "$version" = here ]; then test_here; else test_kernel "$version"; fi
  done
  echo "$total_passed passed, $total_failed failed"
  [ "$total_failed" = 0 ] && [ "$total_passed" != 0 ]
}

main "$@"
