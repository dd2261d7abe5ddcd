#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Wire packets and wire bytes where the stack handles many packets as one: TCP with segmentation
# offload through generic XDP and at TC, and a byte limit on the way out (D9, D19).

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=weir.sh
. "$(dirname "$0")/weir.sh"

need iperf3
bytes=40000000
seconds=4

# Counts all that comes in at both hooks, and limits what goes out.
write_wire_config() {
  cat >"$CONFIG" <<END
version: 1
ledger: {keys: 4096}
interfaces:
  - {name: $LAB_IF_S, mode: generic}
limits:
  - {name: xdp, key: none, bucket: {rate: unlimited}}
  - {name: tc, key: none, match: {hook: tc-ingress}, bucket: {rate: unlimited}}
  - {name: out, key: none, match: {hook: tc-egress}, bucket: {rate: $1}}
END
}

admitted() {
  json '.limits[0].admitted' show "$1"
}

# iperf NAME ARGUMENTS...: a run from the client's side; its JSON is the output of NAME.
iperf() {
  local name=$1

  shift
  spawn "$name" c iperf3 -c "$LAB_SERVER4" -p 5301 -J "$@"
  await "$name" || fail "iperf3 $*" "exit $?"
}

report() {
  jq -r "$2" "$LAB_DIR/$1.out"
}

# What n bytes of one TCP stream are in packets, to 2%: what was sent again may have been lost
# before it came here, and the rest of the talk is a few dozen.
test_segments() {
  local xdp tc mss low high

  xdp=$(admitted xdp)
  tc=$(admitted tc)
  iperf in -n "$bytes"
  mss=$(report in .start.tcp_mss_default)
  low=$(report in ".end.sum_received.bytes / $mss * 0.98 | floor")
  high=$(report in "(.end.sum_sent.bytes / $mss + .end.sum_sent.retransmits + 40) * 1.02 | floor")
  expect_between "generic XDP counts TCP's wire packets, to 2%" $(($(admitted xdp) - xdp)) \
    "$low" "$high"
  expect_between "TC ingress counts them too" $(($(admitted tc) - tc)) "$low" "$high"
}

# One run of UDP the other way, in bits of frames: a datagram of 1400 bytes is 1442 on the wire.
udp_rate() {
  iperf udp -R -u -b 100M -l 1400 -t "$seconds"
  report udp '.end.sum.bytes * 8 * 1442 / 1400 / .end.sum.seconds *
    (1 - .end.sum.lost_percent / 100) | floor'
}

# 50 mbit of frames. The sender may be held up on a busy machine: it has three tries to offer
# enough, and none may get more.
test_egress() {
  local rate

  for _ in 1 2 3; do
    rate=$(udp_rate)
    [ "${rate:-0}" -lt 49000000 ] || break
  done
  expect_between "50 mbit on the way out, to 2%" "$rate" 49000000 51000000
  # A refused packet of TCP on the way out is 64 KB in one: a small burst would starve it.
  check "room for TCP's large packets" weir set out burst=4mbyte
  iperf tcp -R -t "$seconds"
  rate=$(report tcp '.end.sum_received.bits_per_second * 1514 / 1448 | floor')
  expect_between "TCP gets no more" "$rate" 12500000 60000000
}

need_root
weir_lab 1
write_wire_config unlimited
start_weir
spawn server s iperf3 -s -p 5301
wait_for 5 in_ns s sh -c 'ss -ltn | grep -q :5301'
test_segments
write_wire_config '50mbit, burst: 64kbyte'
check "the limit on the way out" weir reload
test_egress
finish
