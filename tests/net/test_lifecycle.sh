#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# The data plane outlives the controller: whatever ends it, the flood stays limited in the gap
# and over the restart, nobody gets a new burst, no packet goes uncounted. `stop --detach`
# removes what is ours and nothing else. (What the commands say: test_cli.sh.)

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2317,SC2119
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=weir.sh
. "$(dirname "$0")/weir.sh"

rate=1000
burst=400

# Instant and count, from the controller or, while it is down, from the pins.
look() {
  json '"\(.time_ns) \(.limits[0].admitted)"' show per-ip
}

# expect_rate NAME "NS ADMITTED" "NS ADMITTED": between two looks the rate passed, no burst. On a
# busy machine a look's instant and its counts are up to 100 ms apart, and the flood stalls for
# longer than the burst lasts.
expect_rate() {
  local a b

  read -ra a <<<"$2"
  read -ra b <<<"$3"
  expect_between "$1: rate * t and no new burst" $((b[1] - a[1])) \
    "$(awk -v r=$rate -v t=$((b[0] - a[0])) 'BEGIN { print 0.5 * r * (t / 1e9 - 0.1) }')" \
    "$(awk -v r=$rate -v t=$((b[0] - a[0])) 'BEGIN { print 1.02 * r * (t / 1e9 + 0.1) + 5 }')"
}

# end_and_restart HOW: ends the controller in mid-flood, looks, starts another.
end_and_restart() {
  local how=$1 at_end in_gap

  at_end=$(look)
  case $how in
    KILL) kill_weir ;;
    stop)
      weir stop >/dev/null || fail "stop" "exit $?"
      await weir
      ;;
    *) stop weir "$how" ;;
  esac
  sleep 0.5
  expect_equal "after $how the controller is gone" "$(json .live show)" false
  in_gap=$(look)
  expect_rate "after $how, nobody there" "$at_end" "$in_gap"
  start_weir
  expect_rate "after $how and a start" "$at_end" "$(look)"
}

test_ends() {
  local how first

  start_sink
  start_flood flood 60 "to=$LAB_SERVER4,from=10.78.0.1,rate=5000"
  sleep 0.5 # the burst is spent
  first=$(look)
  for how in TERM INT KILL stop; do end_and_restart "$how"; done
  test_reloads
  expect_rate "over four ends, four starts and all reloads" "$first" "$(look)"
  stop flood
  stop sink
  local received arrived

  received=$(last sink .udp.received)
  arrived=$(($(last flood .sent) - $(lab_link_drops)))
  # The kernel may add a frame or two of its own on a veth.
  expect_between "no packet passed uncounted or was counted twice" "$(total admitted)" \
    "$received" $((received + 3))
  expect_between "every packet was counted" \
    "$(json '.limits[0] | .admitted + .refused' show per-ip)" "$arrived" $((arrived + 3))
}

# B2, B3, B4: another limit comes, changes and goes, 20 times, while traffic flows.
test_reloads() {
  local before i

  before=$(look)
  for i in $(seq 10); do
    write_config ${rate}pps $burst
    cat >>"$CONFIG" <<END
  - name: dns
    match: {proto: udp, to_port: 53}
    key: none
    bucket: {rate: ${i}kpps}
END
    weir reload >/dev/null || fail "reload" "exit $?"
    [ "$i" != 5 ] || expect_equal "the other limit is there" "$(json '[.limits[].name]' show)" \
      '["per-ip","dns"]'
    write_config ${rate}pps $burst
    weir reload >/dev/null || fail "reload" "exit $?"
  done
  expect_rate "20 reloads" "$before" "$(look)"
  test_broken_reload
}

# B12
test_broken_reload() {
  local code=0 said

  printf 'limits: [' >>"$CONFIG"
  said=$(weir reload 2>&1) || code=$?
  expect_equal "a broken file is refused" "$code" 1
  check "and the sentence names the file and line" grep -q "$CONFIG:[0-9]*:" <<<"$said"
  expect_equal "the old policy is in force" \
    "$(json '.limits[0] | [.name, .settings.rate]' show)" "[\"per-ip\",$rate]"
  write_config ${rate}pps $burst
}

# A start that fails on a running data plane leaves it as it is.
test_failed_start() {
  local id before

  stop weir
  id=$(xdp_id)
  before=$(total refused)
  cp "$CONFIG" "$CONFIG.good"
  write_config 5bps 1
  expect_exit "a start with a bad file is refused" 1 "'5bps'" \
    in_ns s "$WEIR" run -c "$CONFIG" --overrides "$LAB_DIR/overrides.json"
  write_config 1pps 1 auto nosuch0
  expect_exit "and one with no interface to be had" 2 "nosuch0" \
    in_ns s "$WEIR" run -c "$CONFIG" --overrides "$LAB_DIR/overrides.json"
  mv "$CONFIG.good" "$CONFIG"
  expect_equal "the old program is where it was" "$(xdp_id)" "$id"
  expect_equal "the old policy too" "$(json '.limits[0].settings.rate' show)" "$rate"
  expect_equal "its counts too" "$(total refused)" "$before"
  start_weir
}

has_filter() {
  in_ns s tc filter show dev "$LAB_IF_S" ingress | grep -q stranger_tc
}

# expect_only_ours_gone NAME: after a detach, what is a stranger's is there.
expect_only_ours_gone() {
  expect_equal "$1: our program is off" "$(xdp_id)" 0
  check "$1: our pins are gone" test ! -e "$WEIR_PINS"
  expect_equal "$1: a stranger's program on lo stays" "$(xdp_id lo)" "$lo_id"
  check "$1: a stranger's filter on our interface stays" has_filter
  check "$1: a stranger's pin stays" test -e "$LAB_DIR/bpf/strangers/stranger"
}

test_detach() {
  make_strangers
  stranger attach xdpgeneric lo
  lo_id=$(xdp_id lo)
  stranger_filter
  weir stop --detach >/dev/null || fail "stop --detach" "exit $?"
  await weir
  expect_only_ours_gone "stop --detach"
  start_weir
  stop weir
  weir stop --detach >/dev/null || fail "stop --detach" "exit $?"
  expect_only_ours_gone "stop --detach from another network namespace, no controller"
}

weir_lab 4
need tc iproute2
write_config ${rate}pps $burst
start_weir
test_ends
test_failed_start
test_detach
finish
