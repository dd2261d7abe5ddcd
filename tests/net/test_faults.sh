#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# kill -9 at every step: of start, reload, set, freeze, lists, a change that waits for `weir
# confirm`, confirm, the going back, stop and detach, at each call by which the controller would
# change something (tests/tools/kill-at.c). After each the flood is
# limited as before, the next start goes on from there, and `stop --detach` leaves nothing.
# (Which steps are taken: faults.sh.)

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2317,SC2119
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=weir.sh
. "$(dirname "$0")/weir.sh"
# shellcheck source-path=SCRIPTDIR source=faults.sh
. "$(dirname "$0")/faults.sh"

# start_and_kill N: true if the start was killed; else the controller runs, as `fault`.
start_and_kill() {
  begin_at "$1"
  [ "$(report event)" = killed ] && await fault
}

# ask_and_kill N [--to-end] WEIR-ARGUMENTS...: true if the controller was killed over it. With
# `sleep SECONDS` for arguments: over what it does by itself meanwhile.
ask_and_kill() {
  local n=$1 more=() command=("$WEIR")

  shift
  [ "$1" != sleep ] || command=()
  if [ "$1" = --to-end ]; then
    more=(--to-end)
    shift
  fi
  timeout 60 "$LAB_TOOLS/kill-at" "$n" --pid "${LAB_PID[weir]}" "${more[@]}" -- \
    "${command[@]}" "$@" >"$LAB_DIR/fault.out" 2>"$LAB_DIR/fault.err" || return 1
  forget_weir
}

forget_weir() {
  wait "${LAB_PID[weir]}" 2>/dev/null
  unset "LAB_PID[weir]"
}

# A start after the fault, or (every other time) none; then off with it, and nothing is left.
goes_on_or_off() {
  local left

  note_maps
  if [ $((faults % 2)) = 0 ]; then
    start_weir
    wait_for 5 refuses_more_than 0 || fail "$at: the next start limits" "it refuses nothing"
    note_maps
    detach
    await weir
  else
    detach
  fi
  left=$(leftovers)
  [ -z "$left" ] || fail "$at: nothing is left" "$left"
  [ -z "$left" ]
}

fresh_start() {
  local killed=1

  start_and_kill "$1" || killed=0
  if [ "$killed" = 1 ]; then
    verdict goes_on_or_off
  else
    note_maps
    detach
    await fault
    expect_equal "a start that nobody killed leaves nothing after its end" "$(leftovers)" ""
  fi
  [ "$killed" = 1 ]
}

# The plane of before limits through the start that dies, and through the next one.
adopting_start() {
  local before

  before=$(look)
  if start_and_kill "$1"; then
    verdict limits_since "$before"
  else
    at="$1 steps: nobody killed it"
    check "adopting start, $at" limits_since "$before"
    weir stop >/dev/null || fail "stop" "exit $?"
    await fault
    return 1
  fi
}

# running NAME ARGUMENTS...: a controller runs; asked, it dies; the next one goes on.
asked() {
  local n=${*: -1} before

  [ -n "${LAB_PID[weir]:-}" ] || start_weir
  before=$(look)
  ask_and_kill "$n" "${@:1:$#-1}" || return 1
  verdict limits_since "$before"
  start_weir
  check_overrides
  limits_since "$before" || fail "$at: and over the next start"
}

check_overrides() {
  local left

  [ ! -e "$LAB_DIR/overrides.json" ] || jq -e .version "$LAB_DIR/overrides.json" >/dev/null ||
    fail "$at: the saved values" "$(cat "$LAB_DIR/overrides.json")"
  left=$(compgen -G "$LAB_DIR/overrides.json*.new")
  [ -z "$left" ] || fail "$at: no file is left after a start" "$left"
}

reloaded() {
  write_policy "$([ $((faults % 2)) = 0 ] && echo odd || echo even)"
  asked reload "$1"
}

# What `set --save` kept is forgotten: on file and in force, or the next start still has it.
forgotten() {
  local value

  [ -n "${LAB_PID[weir]:-}" ] || start_weir
  weir set other rate=7kpps --save >/dev/null || fail "$at: set --save" "exit $?"
  asked unset other "$1" || return 1
  value=$(json '.limits[] | select(.name == "other") | .settings.rate' show)
  if grep -q 7kpps "$LAB_DIR/overrides.json"; then
    expect_equal "$at: the kept value is in force" "$value" 7000
  else
    expect_equal "$at: the file's value is in force" "$value" 9000
  fi
}

# --- a change that waits --------------------------------------------------------------------

# waits_or_not: "waiting", "undone" or "nothing".
waits_or_not() {
  json '.confirm.state // "nothing"' show limits
}

# The limits and their settings, whatever else is shown.
in_force() {
  json '[.limits[] | {name, settings}]' show limits
}

# undo_waiting BEFORE AFTER: what waits is in force, and goes back.
undo_waiting() {
  expect_equal "$at: what waits is in force" "$(in_force)" "$2"
  weir confirm --undo >/dev/null || fail "$at: confirm --undo" "exit $?"
  expect_equal "$at: and goes back" "$(in_force)" "$1"
}

# The next start has the values of before, and nothing that waits; or the new ones, that wait.
waiting_set() {
  local before after

  [ -n "${LAB_PID[weir]:-}" ] || start_weir
  before=$(in_force)
  weir set other rate=6kpps >/dev/null || fail "$at: set" "exit $?"
  after=$(in_force)
  weir reload >/dev/null || fail "$at: reload" "exit $?"
  asked set other rate=6kpps --save --confirm 1h "$1" || {
    undo_waiting "$before" "$after"
    return 1
  }
  case $(waits_or_not) in
    waiting) undo_waiting "$before" "$after" ;;
    *) expect_equal "$at: nothing waits, nothing has changed" "$(in_force)" "$before" ;;
  esac
}

# The file is in force after the next start, and waits if it had been in force before.
waiting_reload() {
  local before after killed=0

  [ -n "${LAB_PID[weir]:-}" ] || start_weir
  write_other_policy
  weir reload >/dev/null || fail "$at: reload" "exit $?"
  after=$(in_force)
  write_other_policy
  weir reload >/dev/null || fail "$at: reload" "exit $?"
  before=$(in_force)
  write_other_policy
  asked reload --confirm 1h "$1" || killed=$?
  if [ "$(waits_or_not)" = waiting ]; then
    undo_waiting "$before" "$after"
  else
    expect_equal "$at: nothing waits, a start takes the file" "$(in_force)" "$after"
  fi
  weir reload >/dev/null || fail "$at: then it works" "exit $?"
  return "$killed"
}

write_other_policy() {
  if grep -q "name: out" "$CONFIG"; then write_policy odd; else write_policy even; fi
}

# A set with --save waits; `weir confirm` is killed: it is confirmed and saved, or waits on.
confirmed() {
  local rate="$((5000 + $1))pps"

  [ -n "${LAB_PID[weir]:-}" ] || start_weir
  weir set other "rate=$rate" --save --confirm 1h >/dev/null || fail "$at: set" "exit $?"
  asked confirm "$1" || return 1
  if [ "$(waits_or_not)" = waiting ]; then
    weir confirm >/dev/null || fail "$at: confirmed again" "exit $?"
  fi
  expect_equal "$at: in the end nothing waits" "$(waits_or_not)" nothing
  check "$at: and it is saved" grep -q "\"$rate\"" "$LAB_DIR/overrides.json"
}

# A reload that waits is gone back from, by hand or as its time is over; killed over that, it is
# gone back from by the next start, or waits on.
gone_back() {
  local before n=${*: -1}

  [ -n "${LAB_PID[weir]:-}" ] || start_weir
  weir reload >/dev/null || fail "$at: reload" "exit $?"
  before=$(in_force)
  write_other_policy
  weir reload --confirm "$1" >/dev/null || fail "$at: reload --confirm" "exit $?"
  asked "${@:2:$#-2}" "$n" || return 1
  [ "$(waits_or_not)" != waiting ] || weir confirm --undo >/dev/null ||
    fail "$at: confirm --undo" "exit $?"
  expect_equal "$at: remembered as gone back from" "$(waits_or_not)" undone
  expect_equal "$at: the policy of before" "$(in_force)" "$before"
}

# What was gone back from is remembered on file until the next reload.
taken_as_it_is() {
  [ -n "${LAB_PID[weir]:-}" ] || start_weir
  expect_exit "the file as it is, in the end" 0 reloaded weir reload
  check "and nothing is remembered" test ! -e "$LAB_DIR/overrides.json.confirm"
}

stopped() {
  [ -n "${LAB_PID[weir]:-}" ] || start_weir
  asked --to-end stop "$1" && return
  forget_weir
  return 1
}

detached() {
  [ -n "${LAB_PID[weir]:-}" ] || start_weir
  note_maps
  if ask_and_kill "$1" --to-end stop --detach; then
    verdict goes_on_or_off
  else
    forget_weir
    return 1
  fi
}

# No controller runs any more, and `weir stop --detach` itself is killed.
detached_without() {
  start_weir
  note_maps
  stop weir
  timeout 60 nsenter --net="/run/netns/$LAB_NS_S" "$LAB_TOOLS/kill-at" "$1" -- \
    "$WEIR" stop --detach >"$LAB_DIR/fault.out" 2>"$LAB_DIR/fault.err" || return 1
  verdict goes_on_or_off
}

# Without CAP_SYS_ADMIN the kernel opens no program by its id: ours is known by its pin alone, and
# must be, whenever the start before died. (A user of its own makes the pins.)
start_as_user() {
  local caps=-all,+bpf,+net_admin,+perfmon before

  export WEIR_PINS=$LAB_DIR/bpf/user/weir WEIR_SOCKET=$LAB_DIR/user/weir.sock
  rm -f "$LAB_DIR/overrides.json"
  as=(setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps "$caps"
    --ambient-caps "$caps" --bounding-set "$caps")
  [ -e "$WEIR_PINS" ] || plain_start_as_user "$at: first"
  before=$(look)
  if begin_at "$1" && [ "$(report event)" = killed ]; then
    await fault
    verdict limits_since "$before"
    plain_start_as_user "$at: the next"
    return 0
  fi
  note_maps
  detach
  await fault
  as=()
  expect_equal "without CAP_SYS_ADMIN: nothing is left" "$(leftovers)" ""
  return 1
}

plain_start_as_user() {
  begin_at 100000
  [ "$(report event)" = free ] || fail "$1 start" "$(cat "$LAB_DIR/fault.err")"
  kill -KILL "$(report pid)"
  await fault 2>/dev/null
}

weir_lab 4
or_give_up chmod 711 "$LAB_DIR" "$LAB_DIR/bpf"
or_give_up install -d -o 65534 "$LAB_DIR/user" "$LAB_DIR/bpf/user"
need tc iproute2
echo "# seed $WEIR_FAULT_SEED"
write_policy even
flood_anew
every "a first start" 24 fresh_start

start_weir
sleep 0.5 # the burst is spent
first=$(look)
every "reload" 4 reloaded
every "set" 1 asked set other rate=8kpps
every "set --save" 3 asked set other rate=7kpps --save
every "unset" 4 forgotten
every "freeze" 1 asked freeze web
every "deny" 2 asked deny add 192.0.2.1
every "set --confirm" 4 waiting_set
every "reload --confirm" 7 waiting_reload
every "confirm" 5 confirmed
every "confirm --undo" 9 gone_back 1h confirm --undo
every "the going back by itself" 9 gone_back 1s sleep 2
taken_as_it_is
every "stop" 1 stopped
every "a start over what is there" 14 adopting_start
check "all of that let no more than the rate through" limits_since "$first"

flood_anew
every "stop --detach" 20 detached
every "stop --detach, the controller dead" 20 detached_without
every "a start without CAP_SYS_ADMIN" 12 start_as_user
expect_between "steps that were killed" "$faults" 20 1000
stop flood
finish
