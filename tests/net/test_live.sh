#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# `weir set` in the middle of a flood: it has acted when the command returns, up and down, and
# refills nobody's bucket, however often it is said.

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=weir.sh
. "$(dirname "$0")/weir.sh"

burst=200
sources=3

# What the limit and the clock say at one instant: TIME_NS ADMITTED REFUSED.
look() {
  json '"\(.time_ns) \(.limits[0].admitted) \(.limits[0].refused)"' show per-ip
}

# set_and_look CHANGE...: the counts from 10 ms after the command's return, and a while later.
set_and_look() {
  weir set per-ip "$@" >/dev/null || fail "set $*" "exit $?"
  sleep 0.01
  look_twice
}

look_twice() {
  read -r at admitted refused < <(look)
  sleep 0.7
  read -r at2 admitted2 refused2 < <(look)
  span=$(awk -v a="$at" -v b="$at2" 'BEGIN { print (b - a) / 1e9 }')
}

# of_span FORMULA: by the rate r and the sources n over the time t.
of_span() {
  awk -v r="$rate" -v n="$sources" -v t="$span" -v x="$extra" "BEGIN { print int($1) }"
}

# expect_rate NAME RATE [EXTRA]: what was admitted in `span` is what the rate grants to each
# source, and at most EXTRA packets more. On a busy machine a look's instant and its counts are up
# to 100 ms apart (a new burst were 600 packets), and the flood may stall for longer than the burst
# lasts: of what comes next it has five tries to take all.
expect_rate() {
  local name=$1 rate=$2 extra=${3:-0} least

  expect_between "$name" $((admitted2 - admitted)) 0 \
    "$(of_span '1.02 * r * n * (t + 0.1) + n + x')"
  for _ in 1 2 3 4 5; do
    least=$(of_span '0.93 * r * n * t - n')
    [ $((admitted2 - admitted)) -lt "$least" ] || break
    look_twice
  done
  expect_between "$name, and no less" $((admitted2 - admitted)) "$least" 1000000
}

test_set_acts() {
  start_flood flood 30 "to=$LAB_SERVER4,from=10.78.0.1,sources=2,rate=10000" \
    "to=$LAB_SERVER6,from=fd78::1,rate=5000"
  sleep 0.7 # the bursts are spent
  set_and_look rate=1000pps
  expect_rate "before: 1000 pps a source" 1000
  set_and_look rate=500pps
  expect_rate "down to 500 pps: nobody is given anything" 500
  set_and_look rate=500pps
  expect_rate "the same again refills nothing" 500
  set_and_look rate=2000pps
  expect_rate "up to 2000 pps" 2000
  set_and_look rate=block
  expect_equal "block: not one packet 10 ms after the return" $((admitted2 - admitted)) 0
  set_and_look rate=unlimited
  expect_equal "unlimited: nobody refused 10 ms after the return" $((refused2 - refused)) 0
  set_and_look rate=500pps
  # While nobody was charged, the buckets filled up.
  expect_rate "from unlimited to 500 pps: at most the burst at once" 500 $((sources * burst))
  set_and_look rate=500pps burst=1000
  expect_rate "a larger burst fills by and by" 500
  stop flood
  weir set per-ip "burst=$burst" >/dev/null
}

# hammer NAME SECONDS RATE LINES...: 1,000 sets a second, or what a busy machine makes of that;
# RATE is the highest among them. Leaves what was admitted in `got`.
hammer() {
  local name=$1 seconds=$2 rate=$3 line lines=() before time

  shift 3
  for line in "$@"; do
    lines+=(--line "{\"command\":\"set\",\"arguments\":{\"limit\":\"per-ip\",\"changes\":$line}}")
  done
  weir set per-ip "rate=${rate}pps" >/dev/null
  sleep 0.5 # full again
  before=$(total admitted)
  spawn asker s "$LAB_TOOLS/asker" --socket "$WEIR_SOCKET" --seconds "$seconds" --rate 1000 \
    "${lines[@]}"
  start_flood flood "$seconds" "to=$LAB_SERVER4,from=10.78.1.1,sources=2,rate=10000" \
    "to=$LAB_SERVER6,from=fd78:1::1,rate=5000"
  await asker || fail "$name" "the sets failed"
  await flood
  got=$(($(total admitted) - before))
  time=$(last flood .elapsed_s)
  expect_between "$name: hundreds of sets a second were made" "$(last asker .asked)" \
    $((100 * seconds)) $((1000 * seconds))
  expect_equal "$name: none was refused" "$(last asker .refused)" 0
  expect_between "$name: at most rate * t + burst a source" "$got" 1 \
    "$(awk -v r="$rate" -v b="$burst" -v n="$sources" -v t="$time" \
      'BEGIN { print 1.01 * n * (r * t + b) }')"
}

# The flood may stall: it has three tries to take all of it.
test_hammered() {
  local least=$((sources * (1000 * 2 + burst) * 99 / 100))

  for _ in 1 2 3; do
    hammer "the same" 2 1000 '{"rate":"1000pps"}'
    [ "$got" -lt "$least" ] || break
  done
  expect_between "the same: no less" "$got" "$least" 1000000
  hammer "up and down" 5 1000 '{"rate":"1000pps"}' '{"rate":"500pps"}'
}

test_burst_is_whole() {
  check "after all changes a new source has the whole burst" wait_for 5 has_whole_burst
}

has_whole_burst() {
  local before

  before=$(total admitted)
  source_last=$((source_last + 1))
  start_flood once 0.2 "to=$LAB_SERVER4,from=10.78.2.$source_last,rate=0,frames=$((2 * burst))"
  await once
  [ $(($(total admitted) - before)) -ge "$burst" ]
}

weir_lab 4
write_config 1000pps $burst
start_weir
test_set_acts
test_hammered
source_last=0
test_burst_is_whole
finish
