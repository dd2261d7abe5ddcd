#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# The loops of docs/services.md at work, in two network namespaces (tests/net/lib.sh has the
# drawing): two like HTTP servers of known capacity get the same open load, second by second, one
# bare, one behind weir. Each loop's part ends with a verdict in figures; exits 1 if weir didn't
# keep its promise, 2 if the lab itself failed. Builds what it needs; WEIR=FILE takes another weir.
#
#   lab-services.sh [shedder|breaker|governor]... [--seconds N]    N: of each part

# shellcheck source-path=SCRIPTDIR source=../tests/net/lib.sh disable=SC2317
. "$(dirname "$0")/../tests/net/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../tests/net/weir.sh
. "$(dirname "$0")/../tests/net/weir.sh"
# shellcheck source-path=SCRIPTDIR source=lab-cgroup.sh
. "$(dirname "$0")/lab-cgroup.sh"

parts=()
seconds=
broken=0

PORT_WITH=8080 # weir's service
PORT_BARE=8081 # of which weir knows nothing
BAR_WIDTH=14

usage_error() {
  echo "lab-services.sh: $1" >&2
  exit 64
}

parse_arguments() {
  while [ $# != 0 ]; do
    case $1 in
      shedder | breaker | governor)
        parts+=("$1")
        shift
        ;;
      --seconds)
        seconds=${2:-}
        [[ $seconds =~ ^(1[2-9]|[2-9][0-9]|[1-5][0-9][0-9]|600)$ ]] ||
          usage_error "--seconds '$seconds': give a whole number from 12 to 600"
        shift 2
        ;;
      *) usage_error "unknown '$1': give shedder, breaker, governor, --seconds N or nothing" ;;
    esac
  done
  [ ${#parts[@]} != 0 ] || parts=(shedder breaker governor)
}

build() {
  local weir=(build/weir)

  [ "$WEIR" = "$LAB_ROOT/build/weir" ] || weir=()
  "$LAB_ROOT/scripts/build.sh" "${weir[@]}" build/tests/{flood,httpd,httpload}
}

lab_failed() {
  local name

  for name in "$@"; do sed "s/^/  $name: /" "$LAB_DIR/$name.err" >&2; done
  echo "lab: $* failed or fell silent: no verdict" >&2
  exit 2
}

# --- a part: two servers, two loads, one weir -------------------------------------------------

# start_weir_with LINE...: what follows the interfaces in the configuration.
start_weir_with() {
  {
    echo "version: 1"
    echo "ledger: {keys: 4096}"
    echo "interfaces: [{name: $LAB_IF_S, mode: auto}]"
    printf '%s\n' "$@"
  } >"$CONFIG"
  spawn weir s "$WEIR" run -c "$CONFIG"
  wait_for 20 weir_ready_or_ended
  grep -q ^ready: "$LAB_DIR/weir.err" || lab_failed weir
}

# start_server bare|with PORT ARGUMENT...
start_server() {
  local lane=$1 port=$2

  shift 2
  spawn "server-$lane" s "$SHELL_IN_CGROUP" -c "$ENTER_CGROUP" "$(cgroup_folders "$lane")" \
    "$LAB_TOOLS/httpd" --port "$port" "$@"
  wait_for 5 grep -qs ready "$LAB_DIR/server-$lane.out" || lab_failed "server-$lane"
}

SHELL_IN_CGROUP=bash
# shellcheck disable=SC2016 # for the shell inside
ENTER_CGROUP='for folder in $0; do echo $$ >"$folder/cgroup.procs" || exit 2; done; exec "$@"'

start_servers() {
  start_server bare "$PORT_BARE" "$@"
  start_server with "$PORT_WITH" "$@"
}

# start_loads ARGUMENT...: the same requests to both.
start_loads() {
  local lane port from

  from=$(seq -s , -f 10.77.1.%g 1 20)
  for lane in bare with; do
    port=$PORT_BARE
    [ "$lane" = bare ] || port=$PORT_WITH
    spawn "load-$lane" c "$LAB_TOOLS/httpload" --to "$LAB_SERVER4" --port "$port" \
      --from "$from" "$@"
  done
}

end_part() {
  local lane

  for lane in bare with; do await "load-$lane" || lab_failed "load-$lane"; done
  for lane in bare with; do
    stop "server-$lane" || lab_failed "server-$lane"
    p99_us[$lane]=$(last "load-$lane" .p99_us)
  done
  weir stop --detach >/dev/null || lab_failed weir
  await weir
}

# --- second by second -------------------------------------------------------------------------

declare -A rate ok served requests overflowed slots server_p99_ms # [lane second]
declare -A drop ceiling offer last_bad attempts                           # [second], weir's
declare -A p99_us                                                         # [lane]

has_line() {
  [ "$(wc -l <"$LAB_DIR/$1.out")" -ge "$2" ]
}

# read_lane bare|with SECOND
read_lane() {
  local at="$1 $2" figures

  wait_for 5 has_line "load-$1" "$2" || lab_failed "load-$1"
  wait_for 5 has_line "server-$1" $(($2 + 1)) || lab_failed "server-$1"
  figures=$({ sed -n "${2}p" "$LAB_DIR/load-$1.out"; sed -n "$(($2 + 1))p" \
    "$LAB_DIR/server-$1.out"; } | jq -rs '"\(.[0].rate) \(.[0].ok) \(.[1].served) " +
      "\(.[1].requests) \(.[1].overflowed) \(.[1].slots) " +
      "\(.[1].p99_us / 1000 | floor)"')
  read -r "rate[$at]" "ok[$at]" "served[$at]" "requests[$at]" "overflowed[$at]" "slots[$at]" \
    "server_p99_ms[$at]" <<<"$figures"
}

# read_second SECOND: all of it. What weir has none of is '-'.
read_second() {
  read_lane bare "$1"
  read_lane with "$1"
  read -r "drop[$1]" "ceiling[$1]" "offer[$1]" "last_bad[$1]" "attempts[$1]" < <(json \
    '.services[0] | "\((.breaker.drop // 0) * 100 | floor) \(.shedder.ceiling // "-") " +
      "\(.governor.offer // 0 | floor) \(.governor.last_bad // "-") \(.attempts)"' show web)
  [ -n "${attempts[$1]:-}" ] || lab_failed weir
}

# bar VALUE FULL: VALUE of FULL as a bar of BAR_WIDTH columns.
bar() {
  local eighths=$(($2 > 0 ? $1 * BAR_WIDTH * 8 / $2 : 0)) full last line=""
  local parts=("" ▏ ▎ ▍ ▌ ▋ ▊ ▉)

  [ "$eighths" -le $((BAR_WIDTH * 8)) ] || eighths=$((BAR_WIDTH * 8))
  full=$((eighths / 8))
  last=${parts[eighths % 8]}
  for ((; full > 0; full--)); do line+=█; done
  printf '%s%s%*s' "$line" "$last" $((BAR_WIDTH - eighths / 8 - ${#last})) ""
}

# show_head WORLD BARRED FIGURE LEVEL: what the columns are.
show_head() {
  printf '%4s %7s  %-27s   %s\n' "" "" "without weir" "with weir"
  printf '%4s %7s  %-14s %5s %6s   %-14s %5s %6s %7s\n' s "$1" "$2" "" "$3" "$2" "" "$3" "$4"
}

# show_row SECOND WORLD FULL BARRED FIGURE BARRED FIGURE LEVEL
show_row() {
  printf '%4s %7s  %s %5s %6s   %s %5s %6s %7s\n' "$1" "$2" "$(bar "$4" "$3")" "$4" "$5" \
    "$(bar "$6" "$3")" "$6" "$7" "$8"
}

# sum ARRAY LANE FROM TO, or sum ARRAY "" FROM TO where there are no lanes: of these seconds.
sum() {
  local -n sum_of=$1
  local second all=0

  for ((second = $3; second <= $4; second++)); do
    all=$((all + ${sum_of["${2:+$2 }$second"]}))
  done
  echo "$all"
}

# promise TEXT CONDITION: an arithmetic one.
promise() {
  if (($2)); then echo "kept    $1"; else
    echo "BROKEN  $1"
    broken=$((broken + 1))
  fi
}

# --- shedder: more demand than the server has CPU ---------------------------------------------

# A core's 30%, at 3 ms a request: 100 a second.
QUOTA_US=6000
PERIOD_US=20000
REQUEST_CPU=0.003
NOMINAL=100

run_shedder() {
  local seconds=${seconds:-18} calm=4 second

  cgroup_make bare && cgroup_limit bare "$QUOTA_US" "$PERIOD_US" || exit 2
  cgroup_make with && cgroup_limit with "$QUOTA_US" "$PERIOD_US" || exit 2
  start_weir_with "services:" \
    "  - name: web" \
    "    match: {proto: tcp, to_port: $PORT_WITH}" \
    "    deadline: 1s" \
    "    cgroup: $(cgroup_of with)" \
    "    shedder: {cpu: 950}"
  start_servers --slots 10000 --cpu "$REQUEST_CPU" --wait 0.02
  echo "shedder: the CPU is enough for $NOMINAL requests/s; clients give up after 1 s"
  start_loads --rate $((NOMINAL * 13 / 10)) --at "$calm:$((NOMINAL * 5))" --seconds "$seconds" \
    --timeout 1 --settled $((calm + 3))
  show_head demand "answered" p99/ms ceiling
  for ((second = 1; second <= seconds; second++)); do
    read_second "$second"
    show_row "$second" "${rate[with $second]}" "$NOMINAL" \
      "${ok[bare $second]}" "${server_p99_ms[bare $second]}" \
      "${ok[with $second]}" "${server_p99_ms[with $second]}" "${ceiling[$second]}"
  done
  end_part
  verdict_shedder $((calm + 4)) "$seconds"
}

# verdict_shedder FROM TO: the seconds at five times the capacity, once it shows.
verdict_shedder() {
  local capacity goodput bare bare_p99_ms=${server_p99_ms[bare $2]} count=$(($2 - $1 + 1))

  # What the bare server finished, whoever still listened, when it never idled and was not yet
  # flooded. As many seconds' worth as are judged.
  capacity=$(($(sum served bare 2 "$calm") * count / (calm - 1)))
  goodput=$(sum ok with "$1" "$2")
  bare=$(sum ok bare "$1" "$2")
  echo "capacity: $((capacity / count)) a second, which the bare server finished in seconds 2 to" \
    "$calm; judged are seconds $1 to $2"
  promise "with weir, answered in time: $goodput, $(percent "$goodput" "$capacity") of the \
capacity (bar 90%)" "goodput * 10 >= capacity * 9"
  promise "with weir, 99th percentile of the answers: $((p99_us[with] / 1000)) ms (bar 500)" \
    "p99_us[with] > 0 && p99_us[with] <= 500000"
  promise "without: $bare, $(percent "$bare" "$capacity"), and $bare_p99_ms ms: it is weir's \
doing" "bare * 2 < capacity && bare_p99_ms > 1000"
}

percent() {
  awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f%%", b ? 100 * a / b : 0 }'
}

# --- breaker: a backend that fails, then heals ------------------------------------------------

run_breaker() {
  local seconds=${seconds:-26} window sick healed demand=100 second state

  sick=$((seconds / 5)) healed=$((seconds / 2)) window=$((seconds / 6))
  start_weir_with "services:" \
    "  - name: web" \
    "    match: {proto: tcp, to_port: $PORT_WITH}" \
    "    deadline: 1s" \
    "    breaker: {window: ${window}s, probe: ${window}00ms}"
  start_servers --slots 1000 --wait 0.02 --at "$sick:fail=100" --at "$healed:fail=0"
  echo "breaker: the backend fails from second $((sick + 1)) to $healed; window ${window}s," \
    "probe ${window}00ms"
  start_loads --rate "$demand" --seconds "$seconds" --timeout 1
  show_head backend "reach it" answrd dropped
  for ((second = 1; second <= seconds; second++)); do
    read_second "$second"
    state=well
    ((second <= sick || second > healed)) || state=fails
    show_row "$second" "$state" "$demand" \
      "${requests[bare $second]}" "${ok[bare $second]}" \
      "${requests[with $second]}" "${ok[with $second]}" "${drop[$second]}%"
  done
  end_part
  verdict_breaker "$sick" "$healed" "$window" "$seconds"
}

# drop_since FROM TO MOST: the first second from which the fraction stays at MOST or less; TO + 1
# where there is none.
drop_since() {
  local second found=$(($2 + 1))

  for ((second = $2; second >= $1 && drop[$second] <= $3; second--)); do found=$second; done
  echo "$found"
}

verdict_breaker() {
  local sick=$1 healed=$2 window=$3 seconds=$4 second most=0 late silent=0 reach bare open closed
  # A window and one and a half, to a second.
  local bar_open=$((window + 1)) bar_closed=$((window * 3 / 2 + 1))

  for ((second = sick + 1; second <= healed; second++)); do
    ((drop[$second] <= most)) || most=${drop[$second]}
  done
  late=$(((sick + healed) / 2 + 1))
  for ((second = late; second < healed; second++)); do
    [ "$(sum requests with "$second" $((second + 1)))" != 0 ] || silent=1
  done
  reach=$(sum requests with "$late" "$healed")
  bare=$(sum requests bare "$late" "$healed")
  open=$(($(drop_since $((healed + 1)) "$seconds" 10) - healed))
  closed=$(($(drop_since $((healed + 1)) "$seconds" 0) - healed))
  promise "while the backend is well nothing is dropped" "$(sum drop "" 1 "$sick") == 0"
  promise "while it fails the fraction dropped rises, to $most% (bar 90%)" "most >= 90"
  promise "probes go on: in seconds $late to $healed $reach requests reach it, $bare without weir" \
    "$silent == 0 && reach > 0 && reach * 3 < bare"
  promise "after it healed, at most 10% are dropped from second $open on (bar $bar_open), none \
from $closed on (bar $bar_closed)" "open <= bar_open && closed <= bar_closed"
}

# --- governor: a target whose capacity moves --------------------------------------------------

run_governor() {
  local seconds=${seconds:-34} wall=100 wall2=240 moves second

  moves=$((seconds / 2))
  start_weir_with "limits:" \
    "  - name: web-rate" \
    "    match: {proto: tcp, to_port: $PORT_WITH, flags: 'syn,!ack'}" \
    "    key: none" \
    "    bucket: {rate: 400pps, burst: 10}" \
    "services:" \
    "  - name: web" \
    "    match: {proto: tcp, to_port: $PORT_WITH}" \
    "    governor: {control: web-rate, start: 20pps, floor: 10pps, window: 500ms}"
  # Slots of 50 ms, and as many may wait; who comes then is closed on.
  start_servers --slots $((wall / 20)) --queue $((wall / 20)) --wait 0.05 \
    --at "$moves:slots=$((wall2 / 20))"
  echo "governor: the target takes $wall requests/s, and from second $((moves + 1)) on $wall2;" \
    "demand 400/s"
  start_loads --rate 400 --seconds "$seconds" --timeout 1
  show_head target "answered" failed "offer"
  for ((second = 1; second <= seconds; second++)); do
    read_second "$second"
    show_row "$second" $((${slots["with $second"]} * 20)) "$wall2" \
      "${served[bare $second]}" "${overflowed[bare $second]}" \
      "${served[with $second]}" "${overflowed[with $second]}" "${offer[$second]}"
  done
  end_part
  verdict_governor "$moves" "$seconds" "$wall"
}

verdict_governor() {
  local moves=$1 seconds=$2 wall=$3 from=$(($1 - $1 / 3)) count mean failed asked bad most=0 second

  count=$((moves - from + 1))
  mean=$(($(sum offer "" "$from" "$moves") / count))
  failed=$(sum overflowed with "$from" "$moves")
  asked=$(sum requests with "$from" "$moves")
  bad=${last_bad[$moves]%.*}
  for ((second = moves + 1; second <= seconds; second++)); do
    ((offer[$second] <= most)) || most=${offer[$second]}
  done
  promise "it settles under the wall: offer $mean of $wall on the average of seconds $from to \
$moves (bar 65 to 105%)" "mean * 100 >= wall * 65 && mean * 100 <= wall * 105"
  promise "there $failed of $asked attempts fail, $(sum overflowed bare "$from" "$moves") of \
$(sum requests bare "$from" "$moves") without weir (bar 10%)" "asked > 0 && failed * 10 <= asked"
  promise "it remembers the wall: an offer of $bad failed (bar 80 to 200% of it)" \
    "bad * 10 >= wall * 8 && bad <= wall * 2"
  promise "it climbs when the wall goes: to $most (bar 150% of the old one)" \
    "most * 10 >= wall * 15"
}

# --- main -------------------------------------------------------------------------------------

on_exit() {
  lab_on_exit
  cgroup_leave
  cgroup_remove_all
}

parse_arguments "$@"
build || exit 2
weir_lab 20
trap on_exit EXIT
cgroup_enter || exit 2
for part in "${parts[@]}"; do
  "run_$part"
  echo
done
lab_teardown
cgroup_leave
cgroup_remove_all
[ "$broken" = 0 ]
