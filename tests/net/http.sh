# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What the tests of metrics and of the dashboard share: source it after weir.sh.

METRICS=http://127.0.0.1:9477

# write_everything [INTERFACE]: a configuration that has every kind of limit and of loop, and
# perhaps one interface more.
write_everything() {
  cat >"$CONFIG" <<END
version: 1
ledger: {keys: 65536}
interfaces: [{name: $LAB_IF_S, mode: auto}${1:+, $1}]
lists: {deny: [192.0.2.0/24, "2001:db8::/32"]}
limits:
  - {name: per-ip, key: source, bucket: {rate: 1000pps, burst: 1000}}
  - {name: udp-rate, match: {proto: udp, to_port: 53}, key: none, bucket: {rate: 4000pps}}
  - {name: pings, match: {proto: icmp}, key: source, sliding: {quota: 10, window: 2s}}
  - {name: daily, match: {proto: sctp}, key: source, period: {quota: 100, period: 1d}}
  - {name: conns, match: {proto: tcp, to_port: 80}, key: source, gate: {limit: 50}}
services:
  - name: app
    match: {proto: udp, to_port: 53}
    trust: report
    breaker: {}
    shedder: {}
    governor: {control: udp-rate, start: 500pps, floor: 100pps, window: 500ms}
control: {group: root}
END
}

# fetch PATH [CURL-OPTION...]: from the server's namespace.
fetch() {
  local path=$1

  shift
  in_ns s curl -s -g --max-time 10 "$@" "$METRICS$path"
}

# status PATH [CURL-OPTION...]: the code alone; 000 where nobody answers.
status() {
  fetch "$1" -o /dev/null -w '%{http_code}' "${@:2}"
}

# metric NAME{LABELS}: its value now.
metric() {
  fetch /metrics | awk -v name="$1" '$1 == name { print $2 }'
}

serves() {
  [ "$(status /metrics)" = 200 ]
}
