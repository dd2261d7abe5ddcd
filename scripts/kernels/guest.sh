#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# What scripts/kernels/test.sh runs inside the guest: every program before this kernel's
# verifier, the kernel tests, and weir itself in the lab of the net tests (native XDP on veth, and
# at tc). The clock of an emulated machine crawls, so limits here are so slow that time adds next
# to nothing: what must pass is then a number, whatever the machine's load.
#
#   guest.sh [--without-kernel-tests]

# shellcheck source-path=SCRIPTDIR source=../../tests/net/lib.sh disable=SC2317,SC2119
. "$(dirname "$0")/../../tests/net/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../../tests/net/weir.sh
. "$(dirname "$0")/../../tests/net/weir.sh"

release=$(uname -r)
test_seconds=${WEIR_GUEST_TEST_SECONDS:-120}
burst=100
asked=1000

# take_over NAME COMMAND...: another program's verdicts, counted with ours.
take_over() {
  local name=$1 code=0 log=$LAB_ROOT/$1.log passed failed

  shift
  timeout "$test_seconds" "$@" >"$log" 2>&1 || code=$?
  if ! read -r passed _ failed _ < <(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log"); then
    fail "$name" "exit $code and no count: $(tail -n 3 "$log")"
    return
  fi
  grep -E '^(FAIL|skip|ok weir_|ok drive_)' "$log"
  [ "$failed" = 0 ] || grep -B 6 '^FAIL' "$log" | grep -v '^ok '
  echo "$name: $passed passed, $failed failed"
  LAB_PASSED=$((LAB_PASSED + passed))
  LAB_FAILED=$((LAB_FAILED + failed))
}

test_verifier() {
  local object

  for object in "$LAB_ROOT"/build/bpf/*.bpf.o; do
    take_over "$(basename "$object" .bpf.o)" "$LAB_TOOLS/verify" "$object"
  done
}

test_kernel() {
  local program

  for program in "$LAB_TOOLS"/kernel/test_*; do
    take_over "$(basename "$program")" "$program"
  done
}

# --- weir itself ----------------------------------------------------------------------------

write_guest_config() {
  cat >"$CONFIG" <<END
version: 1
ledger: {keys: 4096}
interfaces:
  - {name: $LAB_IF_S, mode: native}
limits:
  - name: per-ip
    match: {proto: udp, to_port: 9000}
    key: source
    bucket: {rate: 1/min, burst: $burst}
  - name: arrives
    match: {hook: tc-ingress, proto: udp, to_port: 9001}
    key: none
    bucket: {rate: 1/min, burst: 50}
  - name: leaves
    match: {hook: tc-egress, proto: udp, to_port: 9002}
    key: none
    bucket: {rate: 1/min, burst: 50}
END
}

start_here() {
  spawn weir s "$WEIR" run -c "$CONFIG" --overrides "$LAB_DIR/overrides.json"
  wait_for 100 weir_ready_or_ended
  grep -q ^ready: "$LAB_DIR/weir.err" || fail "$1" "$(cat "$LAB_DIR/weir.err")"
}

# flow SIDE OPTIONS: frames out of that side's interface.
flow() {
  local side=$1 to=s dev=$LAB_IF_C

  [ "$side" = c ] || { to=c; dev=$LAB_IF_S; }
  in_ns "$side" timeout 60 "$LAB_TOOLS/flood" -i "$dev" --seconds 40 \
    --flow "mac=$(lab_mac $to),rate=0,$2" >/dev/null
}

ask() {
  flow c "to=$LAB_SERVER4,from=10.77.1.$1,port=9000,frames=$2"
}

# count NAME FIELD: of a limit.
count() {
  json ".limits[0].$2" show "$1"
}

# expect_count NAME LIMIT ADMITTED SENT: all were counted, and so many passed; one more a minute.
expect_count() {
  local admitted

  admitted=$(count "$2" admitted)
  expect_between "$1: as many pass as the limit grants" "$admitted" "$3" $(($3 + 4))
  expect_equal "$1: the rest is refused" "$(count "$2" refused)" $(($4 - admitted))
}

test_limit() {
  expect_equal "native XDP" "$(xdp_mode)" xdp
  ask 1 $asked
  expect_count "XDP" per-ip $burst $asked
  ask 2 50
  expect_count "another source" per-ip $((burst + 50)) $((asked + 50))
}

test_tc() {
  flow c "to=$LAB_SERVER4,from=10.77.1.1,port=9001,frames=200"
  expect_count "tc-ingress" arrives 50 200
  flow s "to=10.77.1.1,from=$LAB_SERVER4,port=9002,frames=200"
  expect_count "tc-egress" leaves 50 200
}

test_set() {
  weir set per-ip burst=300 >/dev/null || fail "weir set" "exit $?"
  ask 3 $asked
  expect_count "a burst that was raised" per-ip $((burst + 350)) $((2 * asked + 50))
}

test_gap() {
  kill_weir
  ask 3 $asked
  expect_count "after kill -9, nobody there" per-ip $((burst + 350)) $((3 * asked + 50))
  start_here "a start after kill -9"
  ask 3 $asked
  expect_count "after a start" per-ip $((burst + 350)) $((4 * asked + 50))
}

test_detach() {
  start_sink --only udp
  weir stop --detach >/dev/null || fail "stop --detach" "exit $?"
  await weir
  expect_equal "stop --detach: no program is left" "$(xdp_id)" 0
  check "stop --detach: no pin is left" test ! -e "$WEIR_PINS"
  expect_equal "stop --detach: no filter is left" "$(in_ns s tc filter show dev "$LAB_IF_S" \
    ingress; in_ns s tc filter show dev "$LAB_IF_S" egress)" ""
  ask 3 200
  wait_for 10 true
  sleep 1
  stop sink
  expect_equal "stop --detach: everything passes" "$(received 10.77.1.3)" 200
}

echo "kernel $release"
test_verifier
[ "${1:-}" = --without-kernel-tests ] || test_kernel
weir_lab 4
write_guest_config
start_here "weir runs"
test_limit
test_tc
test_set
test_gap
test_detach
finish
