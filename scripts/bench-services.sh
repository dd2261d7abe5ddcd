#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# What the controller costs: its CPU with many services and many connections held open over a veth
# pair, the recount of the gates (once a minute) included. Needs root and 10 KB of memory for each
# connection. The last lines are the bars, as bench.sh's; exits 1 if one is short.
#
#   bench-services.sh [--services N] [--connections N] [--sources N] [--chatter N] [--seconds N]
#
# 100 services with all three loops, 100,000 connections from 50,000 addresses inside a gate by
# source, 1,000 exchanges a second, over 65 seconds: longer than from one recount to the next. Over
# fewer than 55 nothing is judged.

# shellcheck source-path=SCRIPTDIR source=../tests/net/lib.sh disable=SC2317
. "$(dirname "$0")/../tests/net/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../tests/net/weir.sh
. "$(dirname "$0")/../tests/net/weir.sh"

PORT=20000
declare -A option=([services]=100 [connections]=100000 [sources]=50000 [chatter]=1000 [seconds]=65)
declare -A most=([services]=150 [connections]=1000000 [sources]=60000 [chatter]=20000 [seconds]=600)

parse_arguments() {
  while [ $# != 0 ]; do
    local name=${1#--}

    if [ "$1" = --help ]; then
      sed -n '3,11s/^# \{0,1\}//p' "$0"
      exit 0
    fi
    [[ $1 == --* && -n ${option[$name]:-} ]] || usage_error "unknown '$1': see --help"
    [[ ${2:-} =~ ^[1-9][0-9]{0,6}$ && $2 -le ${most[$name]} ]] ||
      usage_error "$1 '${2:-}': give a whole number from 1 to ${most[$name]}"
    option[$name]=$2
    shift 2
  done
}

usage_error() {
  echo "bench-services.sh: $1" >&2
  exit 64
}

failed() {
  sed 's/^/  /' "$LAB_DIR/$1.err" >&2
  echo "bench-services.sh: $1 failed" >&2
  exit 2
}

# The limits that the governors move are of SYNs; there is one gate over all of it.
write_services() {
  local i last=$((PORT + option[services] - 1))

  {
    echo "version: 1"
    echo "interfaces: [{name: $LAB_IF_S, mode: auto}]"
    echo "limits:"
    echo "  - {name: conns, key: source, match: {proto: tcp, to_port: $PORT-$last}," \
      "gate: {limit: 1000000}}"
    for ((i = 0; i < option[services]; i++)); do
      echo "  - {name: rate-$i, key: none, bucket: {rate: 10000pps, burst: 10000}," \
        "match: {proto: tcp, to_port: $((PORT + i)), flags: 'syn,!ack'}}"
    done
    echo "services:"
    for ((i = 0; i < option[services]; i++)); do
      echo "  - {name: web-$i, match: {proto: tcp, to_port: $((PORT + i))}, deadline: 1s," \
        "breaker: {}, shedder: {}, governor: {control: rate-$i, floor: 5000pps}}"
    done
  } >"$CONFIG"
}

# From addresses that nobody has to add: the clients' side has all of 10.78.0.0/16. A process can
# have only so many files open: each pair of them has some of the services.
open_connections() {
  local files pairs pair first next ports chatter

  files=$(($(ulimit -Hn) - 1100))
  pairs=$(((option[connections] + files - 1) / files))
  [ "$pairs" -le "${option[services]}" ] || usage_error \
    "--connections ${option[connections]}: $files a process, and too few services for so many"
  chatter=$((option[chatter] / pairs))
  ip -n "$LAB_NS_C" route add local 10.78.0.0/16 dev lo
  for ((pair = 0; pair < pairs; pair++)); do
    first=$((option[services] * pair / pairs))
    next=$((option[services] * (pair + 1) / pairs))
    ports=(--port $((PORT + first)) --ports $((next - first))
      --count $((option[connections] / pairs)))
    spawn "server$pair" s "$LAB_TOOLS/hold" --listen yes "${ports[@]}"
    wait_for 10 grep -qs listening "$LAB_DIR/server$pair.out" || failed "server$pair"
    spawn "clients$pair" c "$LAB_TOOLS/hold" --to "$LAB_SERVER4" --from 10.78.0.1 \
      --sources "${option[sources]}" --chatter $((chatter > 0 ? chatter : 1)) "${ports[@]}"
  done
  for ((pair = 0; pair < pairs; pair++)); do
    wait_for 300 is_open_or_ended "clients$pair"
    grep -q ready "$LAB_DIR/server$pair.out" || failed "clients$pair"
  done
}

is_open_or_ended() {
  grep -q ready "$LAB_DIR/$1.out" || ! kill -0 "${LAB_PID[$1]}" 2>/dev/null
}

start() {
  spawn weir s "$WEIR" run -c "$CONFIG"
  wait_for 20 weir show -j >"$LAB_DIR/show.out" || failed weir
}

# Nanoseconds on a CPU so far.
cpu_ns() {
  cut -d ' ' -f 1 "/proc/${LAB_PID[weir]}/schedstat"
}

# measure: the CPU of each second, in $LAB_DIR/seconds.
measure() {
  local second before after

  before=$(cpu_ns)
  for ((second = 0; second < option[seconds]; second++)); do
    sleep 1
    after=$(cpu_ns)
    echo $((after - before))
    before=$after
  done >"$LAB_DIR/seconds"
}

# The seconds' median is what the ticks take, and the rest is the recounts'. Without one in them
# nothing is judged.
judge() {
  sort -n "$LAB_DIR/seconds" | awk -v services="${option[services]}" \
    -v connections="${option[connections]}" -v sources="${option[sources]}" '
    { ns[NR] = $1; all += $1 }
    END {
      tick = ns[int((NR + 1) / 2)]
      recounts = int((NR + 5) / 60)
      printf "%d services, %d connections from %d addresses, %d seconds, %d recount%s\n",
        services, connections, sources, NR, recounts, recounts == 1 ? "" : "s"
      printf "controller %.2f ms a second; ticks %.2f of them", all / NR / 1e6, tick / 1e6
      printf recounts ? ", a recount %.0f ms\n" : "\n", (all - tick * NR) / (recounts * 1e6 + 1)
      percent = all / NR / 1e7
      short = recounts && percent >= 1
      printf "bar controller-cpu-percent %.2f 1.00 %s\n", percent,
        !recounts ? "unjudged" : short ? "short" : "ok"
      exit short
    }'
}

parse_arguments "$@"
"$LAB_ROOT/scripts/build.sh" build/weir build/tests/{flood,hold} || exit 2
weir_lab 4
write_services
start
open_connections
weir show services -j | jq -r '"open: \([.services[].in_flight] | add) in flight, " +
  "\([.services[].attempts] | add) attempts so far"'
# A recount now: the next one has its counts to forget.
weir reload >/dev/null || failed weir
measure
judge
code=$?
lab_teardown
exit "$code"
