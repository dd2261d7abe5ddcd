#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# weir suggest after known traffic: 400 sources of 20 packets a second and one of 2,000, in
# monitor mode. Its figures are near that, and the line that it says to type does what it says.

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=weir.sh
. "$(dirname "$0")/weir.sh"

# of FILTER: what the suggestion for per-ip says.
of() {
  jq -r ".limits[0]$1" "$LAB_DIR/suggested"
}

test_before() {
  weir suggest -j per-ip >"$LAB_DIR/suggested"
  expect_equal "no traffic: no proposal" "$(of .proposal)" null
  expect_equal "and it says why" "$(of .reason)" "no traffic was seen yet"
}

test_figures() {
  weir suggest -j >"$LAB_DIR/suggested"
  # The kernel sends a frame or two of its own on a veth.
  expect_between "sources" "$(of .sources)" 401 403
  # A flood on a busy machine stalls and catches up: within half and twice.
  expect_between "50% send at most" "$(of '.rates[0].per_sec')" 14 40
  expect_between "99% send at most" "$(of '.rates[2].per_sec')" 17 60
  expect_between "the greatest" "$(of '.rates[4].per_sec')" 1400 4000
  expect_between "proposal" "$(of .proposal.per_sec)" 34 120
  expect_between "its burst is 2 s of it" "$(of .proposal.burst)" \
    "$(of '.proposal.per_sec * 2')" "$(of '.proposal.per_sec * 2')"
  expect_between "of sources it would refuse, %" "$(of .proposal.refused_sources_percent)" 0.2 0.3
  expect_between "of packets, %: what the one sends" \
    "$(of .proposal.refused_packets_percent)" 12 21
}

# What was typed is in force, and refuses the one.
test_command() {
  local command passed refused

  command=$(of .proposal.command)
  expect_equal "the command is a set" "${command% rate=*}" "weir set per-ip"
  # shellcheck disable=SC2086
  weir ${command#weir } mode=enforce >/dev/null || fail "$command" "exit $?"
  sleep 3 # the bursts are spent
  read -r passed refused < <(json '.limits[0] | "\(.admitted) \(.refused)"' show per-ip)
  sleep 3
  read -r passed2 refused2 < <(json '.limits[0] | "\(.admitted) \(.refused)"' show per-ip)
  expect_between "of packets it refuses, %" \
    $((100 * (refused2 - refused) / (passed2 - passed + refused2 - refused))) 12 25
  expect_equal "of keys, one" "$(json '[.keys[] | select(.refused_per_sec > 100)] | length' \
    top --once)" 1
}

weir_lab 1
write_config 100000pps 100000
sed -i 's/  - name: per-ip/&\n    mode: monitor/' "$CONFIG"
start_weir
test_before
start_flood flood 40 "to=$LAB_SERVER4,from=10.78.0.1,sources=400,rate=8000" \
  "to=$LAB_SERVER4,from=10.79.0.1,rate=2000"
sleep 10
test_figures
expect_exit "no such limit" 1 "there is no limit 'nobody'" weir suggest nobody
test_command
stop flood
finish
