#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# What weir stands on fails: any one call of a start, reload, set or detach gets ENOSPC, ENOMEM
# or EMFILE (kill-at --fail); the disk is full, the BPF file system read-only or somebody else's,
# memory and descriptors are short, a cgroup's too; another tool takes the interface. It is said in
# words, what was in force stays, nothing is left over. (Which steps are taken: faults.sh.)

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2317,SC2119
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=weir.sh
. "$(dirname "$0")/weir.sh"
# shellcheck source-path=SCRIPTDIR source=faults.sh
. "$(dirname "$0")/faults.sh"
# shellcheck source-path=SCRIPTDIR source=../../scripts/lab-cgroup.sh
. "$(dirname "$0")/../../scripts/lab-cgroup.sh"

errors=(28 12 24) # ENOSPC, ENOMEM, EMFILE

# --- any call fails -------------------------------------------------------------------------

next_error() {
  echo "${errors[faults % 3]}"
}

# ended_in_words: the start is over, not by a signal, and has said why.
ended_in_words() {
  local code

  code=$(report exit)
  [ "$code" = 1 ] || [ "$code" = 2 ] || return 1
  grep -q "^weir: ." "$LAB_DIR/fault.err"
}

# Ended in words with nothing left, or up in spite of it.
failing_start() {
  local had=1 left

  begin_at "$1" --fail "$(next_error)"
  [ "$(report failed)" = true ] || had=0
  if [ "$(report event)" = free ]; then
    note_maps
    detach
    await fault
  else
    await fault
    [ "$had" = 0 ] || verdict ended_in_words
  fi
  left=$(leftovers)
  [ -z "$left" ] || fail "$at: nothing is left" "$left"
  [ "$had" = 1 ]
}

# On what is there: the plane limits on, whether the start fails or not.
failing_adoption() {
  local had=1 before

  before=$(look)
  begin_at "$1" --fail "$(next_error)"
  [ "$(report failed)" = true ] || had=0
  if [ "$(report event)" = free ]; then
    weir stop >/dev/null || fail "$at: stop" "exit $?"
    await fault
  else
    await fault
    [ "$had" = 0 ] || verdict ended_in_words
  fi
  limits_since "$before" || fail "$at: the flood is limited"
  [ "$had" = 1 ]
}

# ask_and_fail N WEIR-ARGUMENTS...: true if a call of the controller failed over it; `code` is
# the command's.
ask_and_fail() {
  local n=$1

  shift
  timeout 60 "$LAB_TOOLS/kill-at" "$n" --fail "$(next_error)" --pid "${LAB_PID[weir]}" -- \
    "$WEIR" "$@" >"$LAB_DIR/fault.out" 2>"$LAB_DIR/fault.err"
  code=$(report command_exit)
  [ "$(report failed)" = true ]
}

names() {
  json '[.limits[].name] | sort | join(" ")' show
}

# Refused and as before, or done; and the next one, that nothing disturbs, is done.
failing_reload() {
  local before names_before wanted

  before=$(look)
  names_before=$(names)
  wanted=$([ "$faults" = "$((faults / 2 * 2))" ] && echo odd || echo even)
  write_policy "$wanted"
  ask_and_fail "$1" reload || return 1
  at="$at ($(report call), exit $code)"
  # An answer that can't be written is lost, not what it tells of.
  [ "$code" = 0 ] || [ "$(report call)" = write ] ||
    expect_equal "$at: the policy of before" "$(names)" "$names_before"
  check "$at: the flood is limited" limits_since "$before"
  weir reload >/dev/null || fail "$at: then it works" "exit $?"
}

other_rate() {
  json '.limits[] | select(.name == "other") | .settings.rate' show
}

failing_save() {
  local rate_before

  rate_before=$(other_rate)
  ask_and_fail "$1" set other "rate=$((5000 + $1))pps" --save || return 1
  at="$at ($(report call), exit $code)"
  # Without an answer (the write of it failed) it may be done or not.
  case $code in
    0) expect_equal "$at: it acts" "$(other_rate)" $((5000 + $1)) ;;
    1 | 2) check "$at: in words" grep -q "^weir: ." "$LAB_DIR/fault.err" ;;
    *) fail "$at" "exit $code" ;;
  esac
  if [ "$(other_rate)" = "$rate_before" ]; then
    check "$at: the saved value is not one that doesn't act" \
      no_line "$((5000 + $1))pps" "$LAB_DIR/overrides.json"
  fi
}

# no_line TEXT FILE
no_line() {
  ! grep -qs "$1" "$2"
}

failing_detach() {
  local had=1 left

  start_weir
  note_maps
  stop weir
  timeout 60 nsenter --net="/run/netns/$LAB_NS_S" "$LAB_TOOLS/kill-at" "$1" \
    --fail "$(next_error)" -- "$WEIR" stop --detach >"$LAB_DIR/fault.out" \
    2>"$LAB_DIR/fault.err" || had=0
  at="$at ($(report call), exit $(report exit))"
  [ "$(report exit)" -le 2 ] || fail "$at" "exit $(report exit)"
  detach
  left=$(leftovers)
  expect_equal "$at: a second one leaves nothing" "$left" ""
  [ "$had" = 1 ]
}

test_any_call() {
  every "a first start" 40 failing_start
  start_weir
  sleep 0.5
  every "reload" 5 failing_reload
  every "set --save" 3 failing_save
  rm -f "$LAB_DIR/overrides.json"
  stop weir
  every "a start over what is there" 40 failing_adoption
  every "stop --detach" 20 failing_detach
}

# --- what it stands on ----------------------------------------------------------------------

run_weir() {
  in_ns s timeout 20 "$WEIR" run -c "$CONFIG" --overrides "$LAB_DIR/overrides.json"
}

test_full_disk() {
  or_give_up mkdir "$LAB_DIR/small"
  or_give_up mount -t tmpfs -o size=8k weir-small "$LAB_DIR/small"
  spawn weir s "$WEIR" run -c "$CONFIG" --overrides "$LAB_DIR/small/overrides.json"
  wait_for 20 weir_ready_or_ended
  weir set other rate=7kpps --save >/dev/null || fail "set --save" "exit $?"
  cp "$LAB_DIR/small/overrides.json" "$LAB_DIR/before.json"
  head -c 8192 /dev/zero >"$LAB_DIR/small/ballast" 2>/dev/null
  expect_exit "a full disk: set --save is refused" 2 "No space left on device" \
    "$WEIR" set other rate=6kpps --save
  expect_equal "and not done" "$(other_rate)" 7000
  check "what was saved is as it was" cmp "$LAB_DIR/before.json" "$LAB_DIR/small/overrides.json"
  expect_equal "nothing is beside it" "$(ls "$LAB_DIR/small")" "ballast
overrides.json"
  expect_exit "nor can a change wait that can't be noted" 2 "No space left on device" \
    "$WEIR" set other rate=6kpps --confirm 1h
  expect_equal "and it is not done" "$(other_rate)" 7000
  weir set other rate=6kpps >/dev/null || fail "set without --save" "exit $?"
  expect_equal "without --save it acts" "$(other_rate)" 6000
  stop weir
  umount "$LAB_DIR/small"
}

# The data plane of before is there: pins can't be made, changed, taken away.
test_read_only_pins() {
  local before

  before=$(look)
  or_give_up mount -o remount,ro "$LAB_DIR/bpf"
  expect_exit "read-only pins: a start says so" 2 "$WEIR_PINS" run_weir
  expect_exit "a detach says so too" 2 "$WEIR_PINS" in_ns s timeout 20 "$WEIR" stop --detach
  or_give_up mount -o remount,rw "$LAB_DIR/bpf"
  check "and the limits stay" limits_since "$before"
  start_weir
  check "writable again, a start goes on from there" wait_for 5 refuses_more_than 0
  note_maps
  or_give_up mount -o remount,ro "$LAB_DIR/bpf"
  expect_exit "a controller that can't take its pins away says so" 2 "not all of it is away" \
    "$WEIR" stop --detach
  await weir
  check "and so does its log" grep -q "$WEIR_PINS can't be removed" "$LAB_DIR/weir.err"
  or_give_up mount -o remount,rw "$LAB_DIR/bpf"
  detach
  expect_equal "and a detach leaves nothing" "$(leftovers)" ""
}

test_foreign_folder() {
  or_give_up mount -o remount,ro "$LAB_DIR/bpf"
  expect_exit "no pins and none to be made: a start says so" 2 "$WEIR_PINS-new" run_weir
  or_give_up mount -o remount,rw "$LAB_DIR/bpf"
  expect_exit "a folder that this user may not write" 2 "$WEIR_PINS-new: Permission denied" \
    in_ns s timeout 20 setpriv --reuid 65534 --regid 65534 --clear-groups \
    --inh-caps -all,+bpf,+net_admin,+perfmon --ambient-caps -all,+bpf,+net_admin,+perfmon \
    "$WEIR" run -c "$LAB_DIR/open/weir.yaml" --socket "$LAB_DIR/open/weir.sock" \
    --overrides "$LAB_DIR/open/overrides.json"
  expect_equal "nothing is left" "$(leftovers)" ""
}

# short NAME PRLIMIT...: too little of something: up, or ended in words.
short() {
  local name=$1 left

  shift
  at="with $name"
  spawn fault s timeout -s KILL 30 prlimit "$@" "$LAB_TOOLS/kill-at" 100000 --until ready: -- \
    "$WEIR" run -c "$CONFIG" --overrides "$LAB_DIR/overrides.json"
  wait_for 30 start_is_decided
  if [ "$(report event)" = free ]; then
    note_maps
    pass "$at it runs"
    detach
    await fault
  else
    await fault 2>/dev/null
    check "$at it ends in words" ended_in_words
  fi
  left=$(leftovers)
  [ -z "$left" ] || fail "$at: nothing is left" "$left"
}

test_short() {
  local n

  for n in 12 24 40 70 200; do short "$n descriptors" --nofile=$n; done
  for n in 16 24 40 60 100; do short "$n MB of address space" --as=$((n << 20)); done
  short "no locked memory" --memlock=0
}

# --- a cgroup's memory ----------------------------------------------------------------------

# A cgroup of this run's own whose memory has a limit, of either version: MEMORY, MEMORY_LIMIT.
memory_make() {
  MEMORY=$(cgroup_mount cgroup memory)
  MEMORY_LIMIT=memory.limit_in_bytes
  if [ -z "$MEMORY" ]; then
    MEMORY=$CGROUP_2
    MEMORY_LIMIT=memory.max
    or_give_up grep -qw memory "$MEMORY/cgroup.controllers"
    echo +memory >"$MEMORY/cgroup.subtree_control"
  fi
  MEMORY+=/weir-$$-memory
  trap 'lab_on_exit; memory_remove' EXIT
  or_give_up mkdir "$MEMORY"
}

memory_remove() {
  [ "$BASHPID" = $$ ] || return 0
  [ ! -d "$MEMORY" ] || wait_for 5 rmdir "$MEMORY" 2>/dev/null
}

# start_within MB: a controller whose cgroup has so much; it is up, or has ended, or was killed.
start_within() {
  rm -f "$LAB_DIR/weir.err"
  or_give_up tee "$MEMORY/$MEMORY_LIMIT" <<<$(($1 << 20)) >/dev/null
  # shellcheck disable=SC2016
  spawn weir s bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$MEMORY" \
    "$WEIR" run -c "$CONFIG" --overrides "$LAB_DIR/overrides.json"
  wait_for 30 weir_ready_or_ended
}

first_start_within() {
  local code=0 left

  at="$1 MB in a cgroup"
  start_within "$1"
  if grep -q ^ready: "$LAB_DIR/weir.err"; then
    note_maps
    pass "$at: it runs"
    detach
    await weir
  else
    await weir 2>/dev/null || code=$?
    if [ "$code" = 137 ]; then
      pass "$at: killed"
      detach
    else
      check "$at: it ends in words" grep -q "^weir: ." "$LAB_DIR/weir.err"
    fi
  fi
  left=$(leftovers)
  [ -z "$left" ] || fail "$at: nothing is left" "$left"
}

# The kernel kills the controller for somebody's greed in its cgroup.
killed_for_memory() {
  local before

  start_within 256
  at="killed for want of memory"
  sleep 0.5
  before=$(look)
  echo 1000 >"/proc/${LAB_PID[weir]}/oom_score_adj"
  # shellcheck disable=SC2016
  timeout 20 bash -c 'echo $$ >"$0/cgroup.procs" && head -c 1G /dev/zero | tail >/dev/null' \
    "$MEMORY" 2>/dev/null
  expect_equal "$at" "$(wait "${LAB_PID[weir]}" 2>/dev/null || echo $?)" 137
  unset "LAB_PID[weir]"
  check "$at: the limits stay" limits_since "$before"
  start_weir
  check "$at: the next start goes on from there" limits_since "$before"
  note_maps
  detach
  await weir
  expect_equal "$at: nothing is left" "$(leftovers)" ""
}

test_memory() {
  local mb

  memory_make
  for mb in 10 20 40; do first_start_within $mb; done
  killed_for_memory
  memory_remove
}

# --- another tool ---------------------------------------------------------------------------

said() {
  json '.events[].text' events | grep -q "$1"
}

shown() {
  json ".interfaces[0].$1" show interfaces
}

shown_is() {
  [ "$(shown "$1")" = "$2" ]
}

# B10: our program is exchanged for another one. That one stays until somebody takes it off.
test_replaced() {
  local id

  make_strangers
  start_weir
  or_give_up in_ns s bpftool net attach xdpdrv pinned "$LAB_DIR/bpf/strangers/stranger" \
    dev "$LAB_IF_S" overwrite
  id=$(xdp_id)
  check "replaced by another tool: events name it within seconds" \
    wait_for 5 said "our program was replaced by somebody's: id $id, name stranger"
  check "show says that nothing is limited" wait_for 5 shown_is attached no
  check "and why" grep -q "id $id, name stranger" <<<"$(shown reason)"
  sleep 2.2 # two looks
  expect_equal "it is not taken back" "$(xdp_id)" "$id"
  weir reload >/dev/null
  expect_equal "nor by a reload" "$(xdp_id)" "$id"
  stranger detach xdpdrv "$LAB_IF_S"
  check "once it is off, ours is on again" wait_for 10 shown_is attached native
  check "and limits" wait_for 5 refuses_more_than "$(total refused)"
  note_maps
  detach
  await weir
  rm -r "$LAB_DIR/bpf/strangers"
  expect_equal "nothing is left" "$(leftovers)" ""
}

weir_lab 4
need tc iproute2
or_give_up chmod 711 "$LAB_DIR" "$LAB_DIR/bpf"
or_give_up install -d -o 65534 "$LAB_DIR/open"
echo "# seed $WEIR_FAULT_SEED"
write_policy even
cp "$CONFIG" "$LAB_DIR/open/weir.yaml"
flood_anew
test_any_call
flood_anew
test_full_disk
test_read_only_pins
test_foreign_folder
test_short
test_memory
test_replaced
stop flood
finish
