#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Proves the instruments, with no limiter between: what is sent arrives and is counted right,
# at the rate asked for; and the lab goes away however the test ends.

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"

# A lab under load that waits to be ended; says its name once it runs. Run as a child.
victim() {
  lab_make 2
  start_sink --echo yes
  spawn flood c "$LAB_TOOLS/flood" -i "$LAB_IF_C" --seconds 60 \
    --flow "to=$LAB_SERVER4,mac=$(lab_mac s),from=10.78.0.1,rate=1000"
  echo "${LAB_PID[sink]} ${LAB_PID[flood]}" >"$1"
  [ "$2" != exit ] || exit 3
  await flood
}

processes_are_gone() {
  local pid

  for pid in "$@"; do ! kill -0 "$pid" 2>/dev/null || return 1; done
}

# check_teardown HOW CODE: a victim ended this way exits with CODE and leaves nothing.
check_teardown() {
  local how=$1 want=$2 code=0 note victim

  note=$LAB_DIR/victim-$how
  # Ended by its own signal alone, as by someone's `kill`; a job in the background ignores INT.
  setsid env --default-signal=INT "$0" --victim "$note" "$how" >"$note.out" 2>&1 &
  victim=$!
  LAB_PID[victim]=$victim
  wait_for 10 test -s "$note" || fail "teardown on $how" "the victim did not start"
  [ "$how" = exit ] || kill -s "$how" "$victim"
  wait "$victim" || code=$?
  unset "LAB_PID[victim]"
  expect_equal "ended by $how: its exit status" "$code" "$want"
  check "ended by $how: no namespace, folder, mount left" lab_is_gone "$victim"
  # shellcheck disable=SC2046 # the two process ids
  check "ended by $how: no process left" processes_are_gone $(cat "$note")
}

# flood_sink SINK-OPTION... -- FLOOD-OPTION...: one flood into one sink, both at their end.
flood_sink() {
  local options=()

  while [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  shift
  start_sink "${options[@]}"
  spawn flood c "$LAB_TOOLS/flood" -i "$LAB_IF_C" "$@"
  await flood
  stop sink
}

# Whether the last flood had the machine to itself: none of its frames found the link full, and
# its last one was no later than 0.1% of the whole. On a busy machine it has five tries.
was_undisturbed() {
  last flood '.errors == 0 and (.flows[0].pacing_error_ppm | . > -1000 and . < 1000)' |
    grep -q true
}

test_rate_and_counts() {
  local mac

  mac=$(lab_mac s)
  for _ in 1 2 3 4 5; do
    flood_sink -- --seconds 5 --flow "to=$LAB_SERVER4,mac=$mac,from=10.78.0.1,sources=10,rate=10000"
    was_undisturbed && break
  done
  expect_between "pacing error below 0.1%, in ppm" "$(last flood '.flows[0].pacing_error_ppm')" \
    -1000 1000
  expect_equal "10,000 pps for 5 s are 50,000 frames" "$(last flood .sent)" 50000
  expect_equal "received == sent" "$(last sink .udp.received)" 50000
  expect_equal "every one of the 10 sources counted alike" \
    "$(last sink '[.per_source[].udp] | unique')" "[5000]"
  expect_equal "the server dropped nothing" "$(last sink .udp.socket_drops)" 0
}

test_flows_and_families() {
  local mac

  mac=$(lab_mac s)
  for _ in 1 2 3 4 5; do
    flood_sink --sources 100 -- --seconds 1 --cpus 0,1 \
      --flow "name=four,to=$LAB_SERVER4,mac=$mac,from=10.78.0.1,sources=7,rate=3500" \
      --flow "name=six,to=$LAB_SERVER6,mac=$mac,from=fd78::1,sources=20,shift=64,rate=2000" \
      --flow "name=draw,to=$LAB_SERVER6,mac=$mac,from=fd78:1::1,sources=60,order=random,rate=600" \
      --flow "name=count,to=$LAB_SERVER4,mac=$mac,from=10.78.9.9,rate=0,frames=1234,size=1514"
    [ "$(last flood .errors)" != 0 ] || break
  done
  expect_equal "each flow has its count" "$(last flood '[.flows[].sent]')" \
    "[3500,2000,600,1234]"
  expect_equal "received == sent over four flows and two CPUs" \
    "$(last sink .udp.received)" 7334
  expect_equal "IPv4 sources" \
    "$(last sink '.per_source | [."10.78.0.1".udp, ."10.78.0.7".udp]')" "[500,500]"
  expect_equal "an IPv6 /64 for each source" \
    "$(last sink '.per_source | [."fd78::1".udp, ."fd78:0:0:13::1".udp]')" "[100,100]"
  expect_between "random sources, drawn over the whole range" \
    "$(last sink '[.per_source | keys[] | select(startswith("fd78:1:"))] | length')" 55 60
  expect_equal "one source at full speed" \
    "$(last sink '.per_source."10.78.9.9".udp')" 1234
}

test_other_bucket_and_drops() {
  local received drops mac lost

  mac=$(lab_mac s)
  lost=$(lab_link_drops)
  start_sink --sources 5 --buffer 65536
  kill -STOP "${LAB_PID[sink]}"
  spawn flood c "$LAB_TOOLS/flood" -i "$LAB_IF_C" --seconds 1 \
    --flow "to=$LAB_SERVER4,mac=$mac,from=10.78.0.1,sources=8,rate=8000"
  await flood
  kill -CONT "${LAB_PID[sink]}"
  stop sink
  received=$(last sink .udp.received)
  drops=$(last sink .udp.socket_drops)
  expect_between "a server that sleeps drops, and says so" "$drops" 1000 8000
  expect_equal "received + dropped == sent" $((received + drops)) \
    $(($(last flood .sent) - $(lab_link_drops) + lost))
  expect_equal "a full table of sources stays at its size" "$(last sink .sources)" 5
  expect_equal "the rest is counted as other" \
    "$(last sink '([.per_source[].udp] | add) + .other.udp')" "$received"
}

test_clients() {
  start_sink --echo yes
  spawn udp c "$LAB_TOOLS/client" --to "$LAB_SERVER4" --port 9000 --seconds 1 --rate 500 \
    --from 10.77.1.1,10.77.1.2
  spawn six c "$LAB_TOOLS/client" --to "$LAB_SERVER6" --port 9000 --seconds 1 --rate 50 \
    --from fd77:0:3::1,fd77:0:4::1 --mode tcp
  await udp
  await six
  stop sink
  expect_equal "UDP: every request answered, from each address" \
    "$(last udp '[.sent, .answered, .per_source[].answered]')" "[1000,1000,500,500]"
  expect_equal "TCP over IPv6: every request answered, from each address" \
    "$(last six '[.sent, .answered, .per_source[].answered]')" "[100,100,50,50]"
  expect_equal "the server saw the connections" \
    "$(last sink '.per_source | [."fd77:0:3::1".tcp, ."fd77:0:4::1".tcp]')" "[50,50]"
  # With no one there, loss is seen.
  spawn alone c "$LAB_TOOLS/client" --to "$LAB_SERVER4" --port 9000 --seconds 0.2 --rate 100 \
    --from 10.77.1.1 --wait 0.3
  await alone
  expect_equal "no server: every request lost" "$(last alone '[.sent, .lost]')" "[20,20]"
}

# A drop that we make (an unreachable source address) must show: sent > received.
test_loss_is_seen() {
  local mac

  mac=$(lab_mac s)
  start_sink
  in_ns s ip route add blackhole 10.99.0.0/16
  in_ns s sysctl -qw "net.ipv4.conf.$LAB_IF_S.rp_filter=1"
  spawn flood c "$LAB_TOOLS/flood" -i "$LAB_IF_C" --seconds 0.5 \
    --flow "to=$LAB_SERVER4,mac=$mac,from=10.78.0.1,rate=1000" \
    --flow "to=$LAB_SERVER4,mac=$mac,from=10.99.0.1,rate=1000"
  await flood
  stop sink
  expect_equal "frames dropped on the way are missing at the server" \
    "$(last flood .sent) $(last sink .udp.received)" "1000 500"
}

test_refusals() {
  local flood=$LAB_TOOLS/flood flow="to=10.77.0.1,mac=02:00:00:00:00:01,from=10.78.0.1"

  expect_exit "flood stays off the machine's own interfaces" 64 "not in a test's namespace" \
    timeout 5 "$flood" -i eth0 --seconds 0.1 --flow "$flow"
  expect_exit "flood ends by itself" 64 "--seconds '701'" \
    timeout 5 "$flood" -i lo --seconds 701 --flow "$flow"
  expect_exit "rate is bounded" 64 "rate '20000001'" \
    timeout 5 "$flood" -i lo --seconds 1 --flow "$flow,rate=20000001"
  expect_exit "a third tag" 64 "at most 2 tags" \
    timeout 5 "$flood" -i lo --seconds 1 --flow "$flow,vlan=1,vlan=2,vlan=3"
  expect_exit "too short a frame" 64 "headers alone take 46" \
    timeout 5 "$flood" -i lo --seconds 1 --flow "$flow,vlan=1,size=45"
  expect_exit "mixed families" 64 "different families" \
    timeout 5 "$flood" -i lo --seconds 1 --flow "to=::1,mac=02:00:00:00:00:01,from=10.78.0.1"
  expect_exit "client: an address that isn't there" 2 "Cannot assign requested address" \
    in_ns c "$LAB_TOOLS/client" --to "$LAB_SERVER4" --port 9 --from 10.9.9.9 --rate 1 --seconds 1
}

test_verdicts() {
  local line

  line=$(expect_between x 5.5 5 6; expect_between x 4 5 6; expect_between x "" 5 6
    expect_between x 5x 5 6; expect_equal x a b; echo "$LAB_PASSED $LAB_FAILED") || true
  expect_equal "expect_between passes one, refuses below, nothing and trailing text" \
    "$(tail -n 1 <<<"$line")" "$((LAB_PASSED + 1)) $((LAB_FAILED + 4))"
}

# The set-up runs under set -e: a step that fails must end the test, not be passed over.
test_unmakeable() {
  # shellcheck disable=SC2016 # for the child
  expect_exit "a lab that can't be made ends the test" 2 "can't make the namespaces" \
    bash -c '. "$0"; mount() { return 1; }; lab_make; echo made' "$LAB_ROOT/tests/net/lib.sh"
}

if [ "${1:-}" = --victim ]; then
  victim "$2" "$3"
  exit
fi
lab_make 4
test_verdicts
test_refusals
test_unmakeable
test_rate_and_counts
test_flows_and_families
test_other_bucket_and_drops
test_clients
test_loss_is_seen
check_teardown exit 3
check_teardown TERM 143
check_teardown INT 130
finish
