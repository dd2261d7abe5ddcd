#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# The limit by its figures, end to end: what a source over it gets, what one under it loses,
# IPv4 and IPv6 by the /64, one source on two CPUs; and weir's counts against what was sent.

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=weir.sh
. "$(dirname "$0")/weir.sh"

rate=1000
burst=500
seconds=5

# What t seconds of flood may get: rate * t + burst. The flood's own time counts: on a busy
# machine its last frames may be late.
expect_limited() {
  local name=$1 got=$2 time=$3

  expect_between "$name: rate * t + burst, to 1%" "$got" \
    "$(awk -v r="$rate" -v b="$burst" -v t="$seconds" 'BEGIN { print 0.99 * (r * t + b) }')" \
    "$(awk -v r="$rate" -v b="$burst" -v t="$time" 'BEGIN { print 1.01 * (r * t + b) }')"
}

sum_udp() {
  last sink "[.per_source | to_entries[] | select(.key | startswith(\"$1\")) | .value.udp] |
    add // 0"
}

# Two sources over the limit (one of them with flows on every CPU), one IPv6 /64 that changes
# its address with every packet, one innocent of each family at half the limit.
test_rates() {
  local cpus sent drops time

  cpus=$(seq -s, 0 $(($(nproc) > 1 ? 1 : 0)))
  start_sink --only udp
  spawn flood c "$LAB_TOOLS/flood" -i "$LAB_IF_C" --seconds "$seconds" --cpus "$cpus" \
    --flow "name=hot,to=$LAB_SERVER4,mac=$mac,from=10.78.0.1,ports=16,rate=10000" \
    --flow "name=six,to=$LAB_SERVER6,mac=$mac,from=fd78:6::1,sources=5000,rate=10000" \
    --flow "name=good4,to=$LAB_SERVER4,mac=$mac,from=10.78.0.2,rate=500" \
    --flow "name=good6,to=$LAB_SERVER6,mac=$mac,from=fd78:7::1,rate=500"
  await flood || fail "flood" "exit $?"
  stop sink
  drops=$(lab_link_drops)
  sent=$(last flood .sent)
  time=$(last flood .elapsed_s)
  expect_limited "10,000 pps of one source over 2 CPUs" "$(received 10.78.0.1)" "$time"
  expect_limited "10,000 pps of 5,000 addresses of one /64" "$(sum_udp fd78:6:)" "$time"
  expect_between "an IPv4 source at half the limit loses nothing" "$(received 10.78.0.2)" \
    $((500 * seconds - drops)) $((500 * seconds))
  expect_between "an IPv6 source at half the limit loses nothing" "$(received fd78:7::1)" \
    $((500 * seconds - drops)) $((500 * seconds))
  expect_equal "the server lost nothing" "$(last sink .udp.socket_drops)" 0
  expect_counts "$sent" "$drops"
}

# D1: every packet is in weir's totals, once.
expect_counts() {
  local sent=$1 drops=$2

  local arrived=$((sent - drops))

  # The kernel may add a frame or two of its own on a veth.
  expect_between "admitted + refused == sent" \
    "$(json '.limits[0] | .admitted + .refused' show per-ip)" "$arrived" $((arrived + 3))
  expect_between "admitted == received" "$(total admitted)" "$(last sink .udp.received)" \
    $(($(last sink .udp.received) + 3))
  expect_equal "bytes: every frame's" \
    "$(json '.limits[0] | .admitted_bytes + .refused_bytes' show per-ip)" \
    "$(json '.interfaces[0].traffic.xdp | .limits.bytes + .refused.bytes' show)"
  expect_equal "the interface's count of refused packets is the limit's" \
    "$(json '.interfaces[0].traffic.xdp.refused.packets' show)" "$(total refused)"
  expect_between "four keys: the /64 is one" "$(total new_keys)" 4 6
  expect_equal "nobody untracked, nobody contended" \
    "$(json '.limits[0] | [.untracked, .would_refuse]' show per-ip)" "[0,0]"
}

# A burst into a full bucket: at the first instant that many pass, and one more is refused.
test_burst() {
  local before got

  before=$(total admitted)
  start_flood burst 0.2 "to=$LAB_SERVER4,from=10.78.0.9,rate=0,frames=$((burst + 200))"
  await burst
  got=$(($(total admitted) - before))
  expect_between "a burst at full speed: $burst and what accrues meanwhile" "$got" "$burst" \
    $((burst + 50))
}

weir_lab 4
mac=$(lab_mac s)
write_config ${rate}pps $burst
start_weir
test_rates
test_burst
finish
