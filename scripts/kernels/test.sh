#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# weir on other kernels: fetches Debian's kernel of each VERSION (nothing is installed), boots it
# in qemu (emulation; ACCEL=kvm where that works) and runs guest.sh in it. Shows what each
# verifier walked for each program. The last line is `N passed, N failed`.
#
#   test.sh [--without-kernel-tests] [VERSION...]    such as 6.1 6.12 6.18; default 6.1 6.12
#
# WEIR_KERNELS  where kernels are kept (build/kernels)
# TIMEOUT       seconds for one kernel (900)

set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 2

kernels=${WEIR_KERNELS:-build/kernels}
tools="bash ip tc jq awk nsenter timeout date mktemp mount umount sed grep seq tail"
options=()
total_passed=0
total_failed=0

# The parts of the tree that guest.sh uses, at the same places.
make_payload() {
  rm -rf "$1"
  mkdir -p "$1"/{build/bpf,build/tests/kernel,tests,scripts}
  cp build/weir "$1/build/"
  cp build/bpf/*.bpf.o "$1/build/bpf/"
  cp build/tests/{flood,sink,verify} "$1/build/tests/"
  find build/tests/kernel -maxdepth 1 -name 'test_*' -perm -u+x ! -name '*.o' \
    -exec cp -t "$1/build/tests/kernel" {} +
  cp -r tests/net "$1/tests/"
  cp -r scripts/kernels "$1/scripts/"
}

# test_kernel VERSION PAYLOAD
test_kernel() {
  local tree log=build/log/kernel-$1.log passed failed code=0

  if ! tree=$(scripts/kernels/get-kernel.sh "$1" "$kernels"); then
    echo "FAIL kernel $1: can't be fetched"
    total_failed=$((total_failed + 1))
    return
  fi
  TOOLS=$tools TIMEOUT=${TIMEOUT:-900} scripts/kernels/run-in-kernel.sh "$tree" "$2" \
    "scripts/kernels/guest.sh ${options[*]}" 2>&1 | tee "$log" || code=$?
  if ! read -r passed _ failed _ < <(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
  then
    echo "FAIL kernel $1: exit $code without a count"
    passed=0
    failed=1
  fi
  total_passed=$((total_passed + passed))
  total_failed=$((total_failed + failed))
}

main() {
  local payload=build/kernel-payload version

  if [ "${1:-}" = --without-kernel-tests ]; then
    options=("$1")
    shift
  fi
  [ $# != 0 ] || set -- 6.1 6.12
  scripts/deps.sh || exit 2
  scripts/deps.sh qemu-system-x86 busybox-static kmod file xz-utils zstd || exit 2
  make -s -j2 all || exit 2
  mkdir -p build/log
  make_payload "$payload"
  for version in "$@"; do test_kernel "$version" "$payload"; done
  echo "$total_passed passed, $total_failed failed"
  [ "$total_failed" = 0 ] && [ "$total_passed" != 0 ]
}

main "$@"
