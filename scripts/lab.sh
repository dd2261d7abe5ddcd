#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# weir at work in two network namespaces (tests/net/lib.sh has the drawing): a server that
# echoes, behind the interface that weir limits; clients that stay under the limit; a flooder
# that doesn't. Halfway the limit is lowered while traffic flows. Prints a row a second and a
# verdict; exits 1 if a well-behaved request was lost or the flooder got more, or less, than
# the limit grants. Installs and builds what it needs first; WEIR=FILE takes another weir.
#
#   lab.sh [--seconds N] [--without-weir]

# shellcheck source-path=SCRIPTDIR source=../tests/net/lib.sh disable=SC2317
. "$(dirname "$0")/../tests/net/lib.sh"

WEIR=${WEIR:-$LAB_ROOT/build/weir}
seconds=20
with_weir=1

# The limit, per source: before and, from halfway on, after it is lowered.
rate=1000
rate_low=500
burst=1000

client_rate=200         # requests a second from each address
clients4=10.77.1.1,10.77.1.2,10.77.1.3
clients6=fd77:0:1::1,fd77:0:2::1
tcp_from=10.77.1.4
tcp_rate=20             # connections a second, about 6 packets each
flooder_rate=5000       # packets a second from each of these
flooders4=3
flooders6=2

clients=6
flooders=$((flooders4 + flooders6))

usage_error() {
  echo "lab.sh: $1" >&2
  exit 64
}

parse_arguments() {
  while [ $# != 0 ]; do
    case $1 in
      --seconds)
        seconds=${2:-}
        [[ $seconds =~ ^([4-9]|[1-9][0-9]|[1-5][0-9][0-9]|600)$ ]] ||
          usage_error "--seconds '$seconds': give a whole number from 4 to 600"
        shift 2
        ;;
      --without-weir)
        with_weir=0
        shift
        ;;
      *) usage_error "unknown '$1': give --seconds N, --without-weir or nothing" ;;
    esac
  done
}

build() {
  local weir=(build/weir)

  [ "$with_weir" = 1 ] && [ "$WEIR" = "$LAB_ROOT/build/weir" ] || weir=()
  "$LAB_ROOT/scripts/build.sh" "${weir[@]}" build/tests/{flood,sink,client}
}

now_ms() {
  echo $(($(date +%s%N) / 1000000))
}

# --- weir -----------------------------------------------------------------------------------

start_weir() {
  [ "$with_weir" = 1 ] || return 0
  export WEIR_SOCKET=$LAB_DIR/weir.sock WEIR_PINS=$LAB_DIR/bpf/weir
  cat >"$LAB_DIR/weir.yaml" <<END
version: 1
interfaces:
  - {name: $LAB_IF_S, mode: auto}
limits:
  - name: per-ip
    key: source
    bucket: {rate: ${rate}pps, burst: $burst}
control: {socket: $WEIR_SOCKET}
END
  spawn weir s "$WEIR" run -c "$LAB_DIR/weir.yaml" --pins "$WEIR_PINS"
  wait_for 10 weir_answers_or_ended
  weir_answers && return
  sed 's/^/weir: /' "$LAB_DIR/weir.err" >&2
  echo "lab: weir did not start" >&2
  exit 1
}

weir_answers_or_ended() {
  weir_answers || ! kill -0 "${LAB_PID[weir]}" 2>/dev/null
}

weir_answers() {
  "$WEIR" show -j >"$LAB_DIR/show.out" 2>/dev/null
}

# Packets, over all limits; '-' if weir doesn't say.
weir_refusals() {
  if weir_answers; then jq '[.limits[].refused] | add' "$LAB_DIR/show.out"; else echo -; fi
}

lower_limit() {
  [ "$with_weir" = 1 ] || return 0
  lowering_ms=$(now_ms)
  "$WEIR" set per-ip "rate=${rate_low}pps" >"$LAB_DIR/set.out" 2>&1 || {
    sed 's/^/weir set: /' "$LAB_DIR/set.out" >&2
    exit 1
  }
  lowered_ms=$(now_ms)
  echo "    --- weir set per-ip rate=${rate_low}pps"
}

# --- traffic --------------------------------------------------------------------------------

start_traffic() {
  local mac client=("$LAB_TOOLS/client" --port 9000 --seconds "$seconds" --every 1)

  mac=$(lab_mac s)
  start_sink --echo yes --every 1
  spawn udp4 c "${client[@]}" --to "$LAB_SERVER4" --from "$clients4" --rate "$client_rate"
  spawn udp6 c "${client[@]}" --to "$LAB_SERVER6" --from "$clients6" --rate "$client_rate"
  spawn tcp c "${client[@]}" --to "$LAB_SERVER4" --from "$tcp_from" --rate "$tcp_rate" --mode tcp
  started_ms=$(now_ms)
  spawn flood c "$LAB_TOOLS/flood" -i "$LAB_IF_C" --seconds "$seconds" --every 1 \
    --flow "name=four,to=$LAB_SERVER4,mac=$mac,from=10.78.0.1,sources=$flooders4,rate=$((
      flooder_rate * flooders4))" \
    --flow "name=six,to=$LAB_SERVER6,mac=$mac,from=fd78::1,shift=64,sources=$flooders6,rate=$((
      flooder_rate * flooders6))"
}

# Every traffic process prints a line of counts a second; the sink says "ready" before.
has_line() {
  [ "$(wc -l <"$LAB_DIR/$1.out")" -ge "$2" ]
}

# The processes' lines of this second, in the order that read_counts wants.
lines_at() {
  local name line

  for name in udp4 udp6 tcp flood sink; do
    line=$(($1 + $([ "$name" = sink ] && echo 1 || echo 0)))
    wait_for 3 has_line "$name" "$line" || traffic_failed "$name"
    sed -n "${line}p" "$LAB_DIR/$name.out"
  done >"$LAB_DIR/row"
}

traffic_failed() {
  sed 's/^/  /' "$LAB_DIR/$1.err" >&2
  echo "lab: $1 failed or fell silent: no verdict" >&2
  exit 2
}

last_lines() {
  local name

  for name in udp4 udp6 tcp flood sink; do tail -n 1 "$LAB_DIR/$name.out"; done
}

# Reads the five processes' counts from stdin: requests sent and answered, flood packets sent,
# and what of them the server got (by the flooder's addresses).
read_counts() {
  read -r good_sent good_answered bad_sent bad_passed < <(jq -rs '
    (.[4].per_source | to_entries | map(select(.key | test("^(10[.]78[.]|fd78:)")))) as $bad |
    [(.[:3] | map(.sent) | add), (.[:3] | map(.answered) | add), .[3].sent,
     ($bad | map(.value.udp) | add // 0)] | map(tostring) | join(" ")')
}

show_head() {
  printf '%4s   %-20s   %s\n' "" "$clients well-behaved" "$flooders flooders"
  printf '%4s   %9s %10s   %9s %9s %8s\n' s sent answered sent passed stopped
}

# show_row SECOND: what happened in it.
show_row() {
  local was=("$good_sent" "$good_answered" "$bad_sent" "$bad_passed") sent passed

  lines_at "$1"
  read_counts <"$LAB_DIR/row"
  sent=$((bad_sent - was[2]))
  passed=$((bad_passed - was[3]))
  printf '%4s   %9s %10s   %9s %9s %8s\n' "$1" $((good_sent - was[0])) \
    $((good_answered - was[1])) "$sent" "$passed" $((sent > passed ? sent - passed : 0))
}

watch_traffic() {
  local second name

  good_sent=0 good_answered=0 bad_sent=0 bad_passed=0
  show_head
  for ((second = 1; second <= seconds; second++)); do
    show_row "$second"
    [ "$second" != 1 ] || flooding_ms=$(($(now_ms) - 1000))
    [ "$second" != $((seconds / 2)) ] || lower_limit
  done
  for name in flood udp4 udp6 tcp; do await "$name" || traffic_failed "$name"; done
  [ "$with_weir" = 0 ] || weir_refused=$(weir_refusals)
  stop sink
  read_counts < <(last_lines)
  link_drops=$(lab_link_drops)
}

# --- verdict --------------------------------------------------------------------------------

# granted MS: all flooders together, if the limit was lowered so long after they began:
# burst + rate * t each.
granted() {
  echo $((flooders * (burst + (rate * $1 + rate_low * (flooded_ms - $1)) / 1000)))
}

# They began after started_ms and before flooding_ms, the limit was lowered after lowering_ms and
# before lowered_ms: on a busy machine that is seconds. A lowered limit may give each at most one
# new burst: what a bucket lacks is kept as time, and time is worth less then.
compute_grant() {
  flooded_ms=$(last flood '.elapsed_s * 1000 | floor')
  granted_most=$((($(granted $((lowered_ms - started_ms))) + flooders * burst) * 101 / 100))
  granted_least=$(($(granted $((lowering_ms - flooding_ms))) * 99 / 100))
}

show_figures() {
  local lost=$((good_sent - good_answered))

  echo
  printf 'well-behaved  %d addresses  sent %d  answered %d  lost %d (%s%%)  p99 %s us\n' \
    "$clients" "$good_sent" "$good_answered" "$lost" \
    "$(awk -v l="$lost" -v s="$good_sent" 'BEGIN { printf "%.3f", s ? 100 * l / s : 0 }')" \
    "$(last udp4 .latency_us.p99)"
  printf 'flooder       %d addresses  sent %d  passed %d  stopped %d\n' \
    "$flooders" "$bad_sent" "$bad_passed" $((bad_sent - bad_passed))
  printf 'elsewhere     lost %d on the link, %d at the server, for want of buffers\n' \
    "$link_drops" "$(last sink .udp.socket_drops)"
}

# within VALUE OF: equal to 1%.
within() {
  [[ $1 =~ ^[0-9]+$ ]] && ((100 * $1 >= 99 * $2 && 100 * $1 <= 101 * $2))
}

promise() {
  if [ "$2" = 1 ]; then echo "kept    $1"; else
    echo "BROKEN  $1"
    broken=$((broken + 1))
  fi
}

verdict() {
  local stopped=$((bad_sent - bad_passed))

  show_figures
  if [ "$with_weir" = 0 ]; then
    echo "without weir  nothing stands between: $bad_passed of $bad_sent flood packets passed"
    return 0
  fi
  compute_grant
  broken=0
  promise "a well-behaved client loses nothing to weir" \
    $((good_sent > 0 && good_sent - good_answered <= link_drops))
  promise "the flooder got at most rate * t + burst, and one new burst at the change: \
$bad_passed of $granted_most" $((bad_passed <= granted_most))
  promise "it got no less than rate * t + burst: $bad_passed of $granted_least" \
    $((bad_passed >= granted_least))
  promise "weir's own count of refusals agrees to 1%: $weir_refused of $stopped" \
    "$(within "$weir_refused" "$stopped" && echo 1 || echo 0)"
  [ "$broken" = 0 ]
}

parse_arguments "$@"
build || exit 2
lab_make 4
start_weir
echo "lab: limit $([ "$with_weir" = 1 ] && echo "${rate}pps a source, burst $burst" || echo none)\
, ${seconds} s; clients $client_rate requests/s an address, flooders $flooder_rate packets/s"
start_traffic
watch_traffic
verdict
code=$?
lab_teardown
exit "$code"
