# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154
# Groups of guest.sh: packets at XDP and at TC through a life of weir, and TCP connections.

write_guest_config() {
  cat >"$CONFIG" <<END
version: 1
ledger: {keys: 4096}
interfaces:
  - {name: $LAB_IF_S, mode: ${1:-native}}
limits:
  - name: per-ip
    match: {proto: udp, to_port: 9000}
    key: source
    bucket: {$slow, burst: ${2:-100}}
  - name: arrives
    match: {hook: tc-ingress, proto: udp, to_port: 9001}
    key: none
    bucket: {$slow, burst: 50}
  - name: leaves
    match: {hook: tc-egress, proto: udp, to_port: 9002}
    key: none
    bucket: {$slow, burst: 50}
END
}

# ask CLIENT FRAMES: to the port that is limited by source.
ask() {
  flow c "to=$LAB_SERVER4,from=10.77.1.$1,port=9000,frames=$2"
}

test_xdp() {
  expect_equal "native XDP" "$(xdp_mode)" xdp
  ask 1 200
  expect_count "XDP" per-ip 100 200
  ask 2 50
  expect_count "another source" per-ip 150 250
  flow c "to=$LAB_SERVER6,from=fd77:0:3::1,port=9000,frames=150"
  expect_count "IPv6" per-ip 250 400
}

# A TCX link at each hook from 6.6 on, before that a clsact filter.
test_tc() {
  local links=0

  ! at_least 6 6 || links=2
  expect_equal "TCX links" "$(find "$WEIR_PINS" -name 'weir_tcx_*' | wc -l)" "$links"
  expect_equal "clsact filters" "$({ filters ingress; filters egress; } | grep -c weir_)" \
    $((2 - links))
  flow c "to=$LAB_SERVER4,from=10.77.1.1,port=9001,frames=200"
  expect_count "tc-ingress" arrives 50 200
  flow s "to=10.77.1.1,from=$LAB_SERVER4,port=9002,frames=200"
  expect_count "tc-egress" leaves 50 200
}

test_reload() {
  write_guest_config native 120
  check "reload" weir reload
  ask 4 200
  expect_count "a burst that a reload raised" per-ip 370 600
  expect_count "what it left alone" arrives 50 200
}

test_set() {
  check "set" weir set per-ip burst=150
  ask 3 200
  expect_count "a burst that set raised" per-ip 520 800
}

test_restart() {
  kill_weir
  ask 3 100
  expect_count "after kill -9, nobody there" per-ip 520 900
  start_here "a start after kill -9"
  ask 3 100
  expect_count "it adopts what is there" per-ip 520 1000
  weir stop >/dev/null || fail "stop" "exit $?"
  await weir
  start_here "a start after a stop"
  ask 3 100
  expect_count "it adopts that too" per-ip 520 1100
}

# What a server behind the interface gets once weir is gone.
test_detach() {
  start_sink --only udp
  end_here "stop --detach"
  expect_nothing_left "stop --detach"
  ask 3 200
  sleep 1
  stop sink
  expect_equal "stop --detach: everything passes" "$(received 10.77.1.3)" 200
}

test_generic() {
  write_guest_config generic
  start_here "generic mode"
  expect_equal "generic mode" "$(xdp_mode)" xdpgeneric
  ask 1 200
  expect_count "generic mode" per-ip 100 200
  end_here "generic mode"
  expect_nothing_left "generic mode"
}

group_traffic() {
  write_guest_config
  start_here "weir runs"
  test_xdp
  test_tc
  test_reload
  test_set
  test_restart
  test_detach
  test_generic
}

# --- connections ----------------------------------------------------------------------------

write_socket_config() {
  cat >"$CONFIG" <<END
version: 1
ledger: {keys: 4096}
interfaces: [{name: $LAB_IF_S, mode: native}]
limits:
  - {name: conns, match: {proto: tcp, to_port: 9000}, key: source, gate: {limit: 5}}
services:
  - {name: web, match: {proto: tcp, to_port: 9000}, deadline: 60s}
END
}

# hold COUNT: so many connections from 10.77.1.1, open until `stop hold`.
hold() {
  # shellcheck disable=SC2016 # for the other shell
  spawn hold c bash -c 'for ((i = 0; i < $1; i++)); do exec {fd}<>"/dev/tcp/$2/9000" || exit; done
    echo held; exec sleep 300' hold "$1" "$LAB_SERVER4"
  wait_for 60 grep -q held "$LAB_DIR/hold.out"
}

# connects SECONDS: one more connection comes about in that time.
connects() {
  # shellcheck disable=SC2016
  in_ns c timeout "$1" bash -c 'exec 3<>"/dev/tcp/$1/9000"' try "$LAB_SERVER4" 2>/dev/null
}

gate_left() {
  json '.limits[0].left' why 10.77.1.1
}

gate_left_is() {
  [ "$(gate_left)" = "$1" ]
}

exchanges_are() {
  [ "$(json '.services[0] | "\(.attempts) \(.ok) \(.failed) \(.in_flight)"' show web)" = "$*" ]
}

# Places and exchanges come from the sockets: a tracepoint, socket storage, the cgroup's programs.
group_sockets() {
  write_socket_config
  start_sink --only tcp --echo yes
  start_here "a gate and a service"
  spawn client c "$LAB_TOOLS/client" --mode tcp --to "$LAB_SERVER4" --port 9000 \
    --from 10.77.1.2,10.77.1.3 --rate 1 --seconds 6 --wait 30
  await client
  expect_equal "a client within the gate is answered" "$(last client .answered)" 12
  check "its exchanges are counted" wait_for 20 exchanges_are 12 12 0 0
  check "five connections are let in" hold 5
  expect_equal "five places are taken" "$(gate_left)" 0
  check "a sixth is not let in" eval '! connects 5'
  expect_between "and refused" "$(count conns refused)" 1 20
  stop hold
  check "their places come back" wait_for 30 gate_left_is 5
  check "and serve another" connects 20
  stop sink
  end_here "sockets"
  expect_nothing_left "sockets"
}
