#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# A service that reports by datagrams: its governor moves a limit that real packets meet, an
# operator's `weir set` is where it goes on from, and what the CLI shows is what is let through.

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=weir.sh
. "$(dirname "$0")/weir.sh"

write_service() {
  cat >"$CONFIG" <<END
version: 1
ledger: {keys: 4096}
interfaces: [{name: $LAB_IF_S, mode: auto}]
limits:
  - name: udp-rate
    match: {proto: udp}
    key: none
    bucket: {rate: 4000pps}
services:
  - name: app
    match: {proto: udp, to_port: 53}
    trust: report
    governor: {control: udp-rate, start: 500pps, floor: 100pps, window: 500ms}
control: {group: root}
END
}

# say SECONDS LINE: the line as a datagram, 100 times a second.
say() {
  python3 - "$WEIR_SOCKET.report" "$1" "$2" <<'END'
import socket, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
for _ in range(int(float(sys.argv[2]) * 100)):
    s.sendto(sys.argv[3].encode(), sys.argv[1])
    time.sleep(0.01)
END
}

governor() {
  json ".services[0].governor.$1" show app
}

# The limit lets through what the governor's offer says: to be asked while it is frozen.
expect_offer_is_enforced() {
  local offer at admitted at2 admitted2

  offer=$(governor offer)
  sleep 1.2 # the burst of one second is spent
  read -r at admitted < <(json '"\(.time_ns) \(.limits[0].admitted)"' show udp-rate)
  sleep 1
  read -r at2 admitted2 < <(json '"\(.time_ns) \(.limits[0].admitted)"' show udp-rate)
  expect_between "$1: let through is what is shown ($offer pps)" $((admitted2 - admitted)) \
    "$(awk -v r="$offer" -v t=$((at2 - at)) 'BEGIN { print 0.97 * r * t / 1e9 - 2 }')" \
    "$(awk -v r="$offer" -v t=$((at2 - at)) 'BEGIN { print 1.03 * r * t / 1e9 + 2 }')"
}

test_governor_of_reports() {
  expect_equal "the start is in force" "$(json .limits[0].settings.rate show udp-rate)" 500
  start_flood flood 40 "to=$LAB_SERVER4,from=10.78.0.1,rate=10000"
  say 2 "app pass rt=3ms"
  expect_between "it climbs while all pass" "$(governor offer)" 1000 4000
  weir freeze app >/dev/null
  expect_offer_is_enforced climbed
  weir set udp-rate rate=1500pps >/dev/null
  expect_equal "G11: an operator's value is shown" "$(governor offer)" 1500
  check "what its governor moves is not said to be set" \
    eval '! weir show udp-rate | grep "was set"'
  weir set udp-rate untracked=drop >/dev/null
  expect_exit "what an operator sets is, and that alone" 0 \
    "udp-rate was set: untracked=drop (in the file: pass), until" weir show udp-rate
  weir set udp-rate untracked=pass >/dev/null
  say 1 "app fail"
  expect_equal "frozen: failures don't move it" "$(governor offer)" 1500
  expect_offer_is_enforced set
  kill_weir
  start_weir
  expect_equal "frozen over a kill -9" "$(governor frozen)" true
  weir set udp-rate rate=1500pps >/dev/null
  weir thaw app >/dev/null
  say 1.5 "app fail"
  expect_between "thawed: it falls from there" "$(governor offer)" 100 400
  expect_equal "what failed is remembered" "$(governor 'last_bad != null')" true
  offer=$(governor offer)
  weir reload >/dev/null
  expect_equal "a reload keeps the offer" "$(governor offer)" "$offer"
  stop flood
}

test_report_socket() {
  expect_equal "not for everybody" "$(stat -c %a "$WEIR_SOCKET.report")" 660
  say 0.03 "nobody pass"
  say 0.02 "what is this"
  expect_equal "unknown names are counted" "$(json .reports.unknown show app)" 3
  expect_equal "malformed ones too" "$(json .reports.malformed show app)" 2
  expect_exit "unknown service" 1 "there is no service 'nope'" weir report nope pass
  expect_exit "neither pass nor fail" 64 "'perhaps': give pass or fail" weir report app perhaps
  expect_exit "bad time" 1 "rt=0s" weir report app pass rt=0s
  before=$(json '.services[0].ok' show app)
  check "weir report" weir report app pass rt=12ms
  sleep 0.3
  expect_equal "weir report counts" "$(json '.services[0].ok' show app)" $((before + 1))
}

test_words() {
  expect_exit "no such loop" 1 "is no loop" weir freeze app pump
  expect_exit "no breaker here" 1 "has no breaker" weir freeze app breaker
  expect_equal "movements have a signal" \
    "$(json '[.events[].movement | select(. != null and .to < .from and .loop == "governor")
      | .signal] | index("attempt failures") != null' events)" true
  check "the table" grep -q "udp-rate .* packets/s" <(weir show services)
}

test_gone_with_the_service() {
  sed -i '/^services:/,/governor:/d' "$CONFIG"
  weir reload >/dev/null
  check "no reporter, no socket" test ! -e "$WEIR_SOCKET.report"
  expect_equal "the file's rate again" "$(json .limits[0].settings.rate show udp-rate)" 4000
  expect_exit "no service" 1 "there is no service" weir freeze app
  weir stop --detach >/dev/null
  expect_exit "services need a controller" 2 "" weir show services
}

weir_lab 4
write_service
start_weir
test_governor_of_reports
test_report_socket
test_words
test_gone_with_the_service
finish
