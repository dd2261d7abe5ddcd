#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# What scripts/kernels/test.sh runs inside the guest, in a tree like the project's. The clock of an
# emulated machine crawls, so limits here are so slow that time adds next to nothing: what must pass
# is then a number, whatever the machine's load.
#
#   guest.sh GROUP...   of: refused verifier kernel traffic sockets vlan bond dispatcher

# shellcheck source-path=SCRIPTDIR source=../../tests/net/lib.sh disable=SC2317,SC2119
. "$(dirname "$0")/../../tests/net/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../../tests/net/weir.sh
. "$(dirname "$0")/../../tests/net/weir.sh"
# shellcheck source-path=SCRIPTDIR source=guest-lib.sh
. "$(dirname "$0")/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=guest-traffic.sh
. "$(dirname "$0")/guest-traffic.sh"
# shellcheck source-path=SCRIPTDIR source=guest-devices.sh
. "$(dirname "$0")/guest-devices.sh"

test_seconds=${WEIR_GUEST_TEST_SECONDS:-600}

# take_over NAME COMMAND...: another program's verdicts, counted with ours.
take_over() {
  local name=$1 code=0 log=$LAB_ROOT/$1.log began=$SECONDS passed failed

  shift
  timeout "$test_seconds" "$@" >"$log" 2>&1 || code=$?
  if ! read -r passed _ failed _ < <(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log"); then
    fail "$name" "exit $code and no count: $(tail -n 3 "$log")"
    return
  fi
  grep -E '^(skip |ok weir_)' "$log"
  [ "$failed" = 0 ] || grep -B 6 '^FAIL' "$log" | grep -v '^ok '
  echo "$name: $passed passed, $failed failed, $((SECONDS - began)) s"
  LAB_PASSED=$((LAB_PASSED + passed))
  LAB_FAILED=$((LAB_FAILED + failed))
}

# A kernel that weir can't run on: said by name, and nothing was touched.
group_refused() {
  weir_lab 1
  write_guest_config
  expect_exit "the start names the kernel and what it lacks" 2 \
    "kernel $(uname -r) has no bpf_loop for XDP (Linux has it since 5.17): weir needs Linux 6.1" \
    in_ns s timeout 60 "$WEIR" run -c "$CONFIG"
  expect_nothing_left "a refused start"
  check "a configuration is still checked" weir check "$CONFIG"
}

group_verifier() {
  take_over verifier "$LAB_TOOLS/verify" --budget "$LAB_ROOT/tests/kernel/verifier-budget.txt" \
    "$LAB_ROOT"/build/bpf/{weir,connections}.bpf.o
}

# Without libxdp's dispatcher (the group of that name has it): what libxdp 1.3 holds open until a
# process ends would keep programs and maps whose end these tests wait for.
group_kernel() {
  local program

  export WEIR_SKIP_TESTS=$LAB_ROOT/scripts/kernels/not-emulated.txt LIBXDP_SKIP_DISPATCHER=1
  for program in "$LAB_TOOLS"/kernel/test_*; do
    take_over "$(basename "$program")" "$program"
  done
  unset WEIR_SKIP_TESTS LIBXDP_SKIP_DISPATCHER
}

echo "kernel $(uname -r), $(basename "$LAB_ROOT"): $*"
[ "$1" = refused ] || weir_lab 4
for group; do "group_$group"; done
finish
