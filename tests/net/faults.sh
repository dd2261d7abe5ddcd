# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Faults in the lab, one at a time: source it after weir.sh. A test takes a sample of the steps,
# from a phase drawn anew each time; WEIR_FAULT_ALL=1 takes every step, WEIR_FAULT_SEED=N the same
# ones again.

rate=1000
burst=400
RANDOM=${WEIR_FAULT_SEED:=$RANDOM}
kept_maps=() # ids of maps that every program or link of ours holds on to
faults=0
as=() # a command before the controller that begin_at starts

# write_policy even|odd: per-ip is the same in both; the rest differs in everything a reload can
# change (programs at TC, a limit's own maps, prefixes, lists).
write_policy() {
  write_config ${rate}pps $burst
  cat >>"$CONFIG" <<END
  - {name: conns, match: {proto: tcp, to_port: 8080}, key: source, gate: {limit: 50}}
  - {name: other, match: {proto: udp, to_port: 53}, key: none, bucket: {rate: 9kpps}}
services:
  - {name: web, match: {proto: tcp, to_port: 8080}, breaker: {}}
END
  case $1 in
    even)
      sed -i '/^services:/i\
  - {name: out, match: {hook: tc-egress}, key: none, bucket: {rate: 1gbit, burst: 10mbyte}}\
lists: {deny: [198.51.100.0/24]}' "$CONFIG"
      ;;
    odd)
      sed -i '/^services:/i\
  - {name: slow, match: {from: [203.0.113.0/24]}, key: source, sliding: {quota: 9, window: 1s}}\
lists: {deny: [198.51.100.0/25, "2001:db8::/32"]}' "$CONFIG"
      ;;
  esac
}

# --- the state of things --------------------------------------------------------------------

note_maps() {
  local pin

  for pin in "$WEIR_PINS"{,-new}/{weir_board,weir_sockets,weir_services}; do
    [ ! -e "$pin" ] || kept_maps+=("$(bpftool -j map show pinned "$pin" | jq .id)")
  done
}

# A program or link of ours that is left holds a map, whatever it hangs on.
maps_are_gone() {
  local id

  for id in "${kept_maps[@]}"; do
    ! bpftool map show id "$id" >/dev/null 2>&1 || return 1
  done
}

leftovers() {
  [ "$(xdp_id)" = 0 ] || echo "an XDP program;"
  in_ns s tc qdisc show dev "$LAB_IF_S" | grep clsact
  in_ns s tc filter show dev "$LAB_IF_S" egress
  compgen -G "$LAB_DIR/bpf/weir*"
  compgen -G "$WEIR_SOCKET*"
  compgen -G "$LAB_DIR/overrides.json?*"
  # The kernel frees them when it gets to it, which on a busy machine takes seconds.
  wait_for 20 maps_are_gone || echo "maps, held by a program or a link"
  kept_maps=()
}

# Instant, admitted and refused, from whoever answers.
look() {
  json '"\(.time_ns) \(.limits[0].admitted) \(.limits[0].refused)"' show per-ip
}

refuses_more_than() {
  local refused

  read -r _ _ refused < <(look)
  [[ $refused =~ ^[0-9]+$ ]] && [ "$refused" -gt "$1" ]
}

# limits_since "NS ADMITTED REFUSED": no more than the rate passed since, and refusals go on. On a
# busy machine a look's instant and its counts are apart; a new burst would still show.
limits_since() {
  local a b

  read -ra a <<<"$1"
  [[ ${a[2]:-} =~ ^[0-9]+$ ]] || return 1
  wait_for 5 refuses_more_than "${a[2]}" || return 1
  read -ra b < <(look)
  awk -v r=$rate -v t=$((b[0] - a[0])) -v n=$((b[1] - a[1])) 'BEGIN {
    exit !(n <= 1.02 * r * (t / 1e9 + 0.25) + 10) }'
}

# A flood of the tools ends by itself after a while: then another one, its burst spent.
flood_goes_on() {
  kill -0 "${LAB_PID[flood]}" 2>/dev/null && return
  await flood
  flood_anew
  sleep 0.7
  # shellcheck disable=SC2034 # the test looks from there on
  first=$(look)
}

flood_anew() {
  [ -z "${LAB_PID[flood]:-}" ] || stop flood
  start_flood flood 690 "to=$LAB_SERVER4,from=10.78.0.1,rate=5000"
}

# --- faults ---------------------------------------------------------------------------------

# Of the tool's report: killed, free, ended, and the call before which it was.
report() {
  jq -rs ".[-1].$1" "$LAB_DIR/fault.out"
}

# begin_at N [OPTION...]: a controller, until its N-th step or until it is ready.
begin_at() {
  local n=$1

  shift
  spawn fault s "$LAB_TOOLS/kill-at" "$n" "$@" --until ready: -- \
    "${as[@]}" "$WEIR" run -c "$CONFIG" --overrides "$LAB_DIR/overrides.json"
  wait_for 30 start_is_decided
}

start_is_decided() {
  local event

  event=$(report event)
  [ "$event" = free ] || ! kill -0 "${LAB_PID[fault]}" 2>/dev/null
}

# every NAME STEP CASE...: CASE with N = phase, phase + STEP, ... until there is no such step.
every() {
  local name=$1 step=$2 n

  shift 2
  [ -z "${WEIR_FAULT_ALL:-}" ] || step=1
  for ((n = 1 + RANDOM % step; n < 1000; n += step)); do
    at="$name, step $n"
    flood_goes_on
    "$@" "$n" || break
    faults=$((faults + 1))
  done
  [ "$n" -gt 1 ] || [ "$step" -gt 1 ] || fail "$name" "has no step"
  echo "# $name: fewer than $n steps"
}

# verdict COMMAND...: of the fault at hand; the call is known from the report.
verdict() {
  at="$at ($(report call))"
  check "$at" "$@"
}

detach() {
  local code=0

  timeout 30 nsenter --net="/run/netns/$LAB_NS_S" "$WEIR" stop --detach >/dev/null \
    2>"$LAB_DIR/detach.err" || code=$?
  [ "$code" = 0 ] || grep -q "nothing to detach" "$LAB_DIR/detach.err" ||
    fail "$at: stop --detach" "exit $code: $(cat "$LAB_DIR/detach.err")"
}
