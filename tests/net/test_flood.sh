#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# A flood at full rate from 16 million spoofed sources, four offenders in it, and one innocent at
# half its limit: who gets what, what memory and time it costs, how soon commands answer.
# WEIR_FLOOD_SECONDS (30) is how long; 600 is the form that docs/guarantees.md speaks of.

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=weir.sh
. "$(dirname "$0")/weir.sh"

seconds=${WEIR_FLOOD_SECONDS:-30}
rate=1000
burst=2000
innocent=10.77.1.1
nowhere=10.77.0.99 # no host: what passes is dropped behind weir at once
declare -A times=()

# of_source ADDRESS FIELD
of_source() {
  json ".limits[0].$2" why "$1"
}

# start_traffic: the innocent first and longest, so that all of its time is the flood's or ours.
start_traffic() {
  local cpus mac

  cpus=$(seq -s, 0 $(($(nproc) > 1 ? 1 : 0)))
  mac=$(lab_mac s)
  spawn flood c "$LAB_TOOLS/flood" -i "$LAB_IF_C" --seconds "$seconds" --cpus "$cpus" \
    --flow "name=spoofed,to=$nowhere,mac=$mac,from=11.0.0.0,sources=16777216,order=random,rate=0" \
    --flow "name=offenders,to=$nowhere,mac=$mac,from=10.78.0.0,sources=4,rate=20000"
  spawn good c "$LAB_TOOLS/flood" -i "$LAB_IF_C" --seconds "$seconds" \
    --flow "name=innocent,to=$LAB_SERVER4,mac=$mac,from=$innocent,rate=$((rate / 2))"
}

# --- what it costs --------------------------------------------------------------------------

private_kb() {
  awk '/^RssAnon/ { print $2 }' "/proc/${LAB_PID[weir]}/status"
}

maps_bytes() {
  local pin sum=0 one

  for pin in "$WEIR_PINS"/weir_*; do
    one=$(bpftool -j map show pinned "$pin" 2>/dev/null | jq '.bytes_memlock // 0')
    sum=$((sum + ${one:-0}))
  done
  echo "$sum"
}

# Milliseconds of CPU that the controller has used.
used_ms() {
  awk -v hz="$(getconf CLK_TCK)" '{ print ($14 + $15) * 1000 / hz }' \
    "/proc/${LAB_PID[weir]}/stat"
}

# time_command NAME ARGUMENTS...: how long until it has answered, in ms, into times[NAME].
time_command() {
  local name=$1 before

  shift
  before=$(date +%s%N)
  "$WEIR" "$@" >/dev/null || fail "$name answers" "exit $?"
  times[$name]+=" $((($(date +%s%N) - before) / 1000000))"
}

ask_all() {
  time_command nothing version
  time_command show show
  time_command top top --once
  time_command why why 10.78.0.1
}

# middle NAME: the median of the times; worst NAME: the longest.
sorted_times() {
  tr ' ' '\n' <<<"${times[$1]}" | grep . | sort -n
}

middle() {
  sorted_times "$1" | awk '{ t[NR] = $1 } END { print t[int((NR + 1) / 2)] }'
}

worst() {
  sorted_times "$1" | tail -n 1
}

# --- the flood ------------------------------------------------------------------------------

flood_lasts() {
  kill -0 "${LAB_PID[flood]}" 2>/dev/null
}

run_flood() {
  local begin_ms begin_ns

  start_traffic
  sleep 3
  # What is allocated once, with the first answers, is no growth.
  for _ in 1 2 3; do
    ask_all
    sleep 1
  done
  times=()
  kb_before=$(private_kb)
  bytes_before=$(maps_bytes)
  begin_ms=$(used_ms)
  begin_ns=$(date +%s%N)
  while flood_lasts; do
    ask_all
    sleep 1
  done
  share=$(awk -v ms="$(used_ms)" -v from="$begin_ms" -v ns="$(($(date +%s%N) - begin_ns))" \
    'BEGIN { printf "%.2f", (ms - from) * 1e8 / ns }')
  await flood || fail "flood" "exit $?"
  await good || fail "the innocent" "exit $?"
}

expect_verdicts() {
  local sent drops i got time

  sent=$(last good .sent)
  drops=$(lab_link_drops)
  time=$(last flood .elapsed_s)
  expect_equal "the innocent: nothing refused" "$(of_source $innocent refused)" 0
  expect_between "and nothing lost but what the link lost" "$(received $innocent)" \
    $((sent - drops)) "$sent"
  for i in 0 1 2 3; do
    got=$(of_source 10.78.0.$i admitted)
    expect_between "offender $i: rate * t + burst" "$got" 1 \
      "$(awk -v r=$rate -v b=$burst -v t="$time" 'BEGIN { print 1.01 * r * t + b }')"
    expect_between "offender $i was never forgotten" "$(of_source 10.78.0.$i refused)" 1 1e12
  done
  expect_equal "nobody is untracked" "$(total untracked)" 0
}

expect_costs() {
  local name bound

  expect_between "the controller's own memory is flat (kB)" \
    $(($(private_kb) - kb_before)) -4096 512
  expect_equal "the maps' memory too (bytes)" "$(maps_bytes)" "$bytes_before"
  expect_between "the controller's share of a core (%)" "$share" 0 5
  # What a command costs that asks nothing is the machine's, busy as it is.
  bound=$((100 + $(middle nothing)))
  for name in show top why; do
    expect_between "$name answers within 100 ms, in the median" "$(middle $name)" 0 $bound
  done
}

say_figures() {
  local name flows per_ip

  flows=$(last flood '"\(.flows[0].sent) spoofed, \(.flows[1].sent) of offenders"')
  per_ip=$(json '.limits[0] | "admitted \(.admitted) refused \(.refused) new \(.new_keys)"' show)
  echo "# $(last flood .elapsed_s) s: $flows"
  echo "# innocent: sent $(last good .sent), received $(received $innocent)," \
    "lost by the link $(lab_link_drops) of all"
  echo "# per-ip: $per_ip"
  echo "# controller: $share% of a core, $(private_kb) kB of its own, maps $bytes_before bytes"
  for name in nothing show top why; do
    echo "# $name: median $(middle $name) ms, longest $(worst $name) ms"
  done
}

weir_lab 4
write_config ${rate}pps $burst
sed -i '/^ledger:/d' "$CONFIG"
start_weir
start_sink --only udp
run_flood
stop sink
expect_verdicts
expect_costs
say_figures
finish
