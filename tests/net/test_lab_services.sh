#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# The lab of the services, in short: the loops keep what they promise to real HTTP clients (G1:
# a breaker's own refusals don't keep it open), a weir that does nothing can't pass, and nothing
# is left behind.

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"

run=$LAB_ROOT/scripts/run.sh

# A weir that starts, answers and protects nothing.
write_idle_weir() {
  cat >"$LAB_DIR/weir" <<'END_OF_WEIR'
#!/bin/sh
case $1 in
  run) echo ready: >&2; echo $$ >"$WEIR_SOCKET.pid"; exec sleep 60 ;;
  show) echo '{"services": [{"attempts": 0, "breaker": {"drop": 0}}]}' ;;
  stop) kill "$(cat "$WEIR_SOCKET.pid")" ;;
esac
END_OF_WEIR
  chmod +x "$LAB_DIR/weir"
}

declare -A PART=() # what a lab was started with

# start_part NAME PART [COMMAND...]: a lab of its own, which COMMAND starts.
start_part() {
  local name=$1

  PART[$name]=$2
  shift 2
  # shellcheck disable=SC2086 # options of the part
  "$@" "$run" services ${PART[$name]} >"$LAB_DIR/$name.out" 2>"$LAB_DIR/$name.err" &
  LAB_PID[$name]=$!
}

# wait_part NAME: its exit status; all it said, should it not have been 0.
wait_part() {
  local code=0

  wait "${LAB_PID[$1]}" || code=$?
  unset "LAB_PID[$1]"
  [ "$code" = 0 ] || cat "$LAB_DIR/$1.out" "$LAB_DIR/$1.err"
  return "$code"
}

# end_part NAME CODE: its exit status. A server that a busy machine gives no CPU for seconds
# answers nobody: what is to keep a promise has three tries.
end_part() {
  local name=$1 want=$2 code=0 tries=2

  wait_part "$name" || code=$?
  while [ "$code" != 0 ] && [ "$want" = 0 ] && [ "$tries" != 0 ]; do
    tries=$((tries - 1)) code=0
    start_part "$name" "${PART[$name]}"
    wait_part "$name" || code=$?
  done
  expect_equal "$name: exit status" "$code" "$want"
}

# said NAME PATTERN COUNT: so many lines begin so.
said() {
  expect_equal "$1: lines of '$2'" "$(grep -c "^$2" "$LAB_DIR/$1.out")" "$3"
}

# The servers burn CPU, so nothing is beside it.
test_shedder() {
  start_part shedder "shedder --seconds 14"
  end_part shedder 0
  said shedder kept 3
  expect_equal "a row a second" "$(grep -cE '^ +[0-9]+ +[0-9]+ ' "$LAB_DIR/shedder.out")" 14
  expect_between "of 80 columns at most" \
    "$(grep -E '^ +[0-9s]+ ' "$LAB_DIR/shedder.out" | LC_ALL=C.UTF-8 wc -L)" 70 80
}

test_others() {
  start_part breaker "breaker --seconds 12"
  start_part governor "governor --seconds 24"
  start_part idle "breaker --seconds 12" env "WEIR=$LAB_DIR/weir"
  end_part breaker 0
  said breaker kept 4
  end_part idle 1
  said idle "BROKEN  while it fails the fraction dropped rises, to 0%" 1
  said idle "BROKEN  probes go on" 1
  end_part governor 0
  said governor kept 4
}

test_usage() {
  expect_exit "no such loop" 64 "unknown 'valve': give shedder, breaker" "$run" services valve
  expect_exit "too short" 64 "'11': give a whole number from 12 to 600" \
    "$run" services --seconds 11
  expect_exit "a weir that doesn't start" 2 "weir failed" \
    env WEIR=/bin/false "$run" services breaker --seconds 12
}

no_cgroup_left() {
  local folder pid

  for folder in /sys/fs/cgroup/{,*/}weir-*; do
    pid=${folder##*/weir-}
    [ ! -d "$folder" ] || kill -0 "${pid%-*}" 2>/dev/null || return 1
  done
}

lab_make 1
write_idle_weir
test_usage
test_shedder
test_others
check "no cgroup is left" no_cgroup_left
finish
