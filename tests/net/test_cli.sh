#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# The weir command by its words and exit codes: each subcommand and its errors, in text and
# JSON, with the controller up, killed and gone. Pins, socket and files are this test's own.

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2317,SC2016,SC2119
. "$(dirname "$0")/lib.sh"

WEIR=${WEIR:-$LAB_ROOT/build/weir}
COMMANDS="run check reload show set why top watch events stop version confirm ban"

weir() {
  "$WEIR" "$@"
}

# write_config NAME INTERFACE RATE: a file in the lab's folder.
write_config() {
  cat >"$LAB_DIR/$1" <<END
version: 1
interfaces:
  - {name: $2, mode: auto}
limits:
  - name: per-ip
    key: source
    bucket: {rate: $3, burst: 1000}
END
}

start_weir() {
  spawn weir s "$WEIR" run -c "$LAB_DIR/weir.yaml" --overrides "$LAB_DIR/overrides.json"
  wait_for 10 weir events >/dev/null 2>&1 || fail "weir starts" "$(cat "$LAB_DIR/weir.err")"
}

# json FILTER WEIR-ARGUMENTS...: what jq finds in the command's JSON.
json() {
  local filter=$1

  shift
  "$WEIR" "$@" -j 2>/dev/null | jq -rc "$filter"
}

has_xdp() {
  ip -n "$LAB_NS_S" -j link show "$LAB_IF_S" | jq -e '.[0].xdp' >/dev/null
}

# flood SECONDS FLOW...: in the background, from the clients' side.
start_flood() {
  local seconds=$1 flow flows=()

  shift
  for flow in "$@"; do flows+=(--flow "mac=$(lab_mac s),$flow"); done
  spawn flood c "$LAB_TOOLS/flood" -i "$LAB_IF_C" --seconds "$seconds" "${flows[@]}"
}

# --- without anything -----------------------------------------------------------------------

test_usage() {
  local command

  expect_exit "no command" 64 "usage: weir COMMAND" weir
  expect_exit "an unknown command lists what there is" 64 "'shwo': there are run, check" weir shwo
  expect_exit "help" 0 "the heaviest keys" weir help
  expect_exit "help of a command" 0 "usage: weir set NAME FIELD=VALUE" weir help set
  expect_exit "help of none" 64 "unknown command 'nope'" weir help nope
  for command in $COMMANDS; do
    expect_exit "$command --help has an example" 0 "example:
  weir $command" weir "$command" --help
    expect_exit "$command: an unknown option" 64 "unknown option '--frob': see weir $command" \
      weir "$command" --frob
  done
  expect_exit "an option of another command" 64 "unknown option '--save'" weir show --save
  expect_exit "a short one of another command" 64 "unknown option '-c'" weir show -c FILE
  expect_exit "a negative time is no option" 64 "unknown option '-1'" \
    weir deny add 192.0.2.1 for -1s
  expect_exit "an option without its value" 64 "a value is missing after '--pins'" \
    weir show --pins
  expect_exit "too many arguments" 64 "unexpected 'ledger'" weir show limits ledger
  expect_exit "too few" 64 "usage: weir set NAME FIELD=VALUE" weir set per-ip
  expect_exit "set without =" 64 "'rate': give FIELD=VALUE" weir set per-ip rate
  expect_exit "set without a value" 64 "'rate=': give FIELD=VALUE" weir set per-ip rate=
  expect_exit "set twice the same" 64 "field 'rate' is given twice" \
    weir set per-ip rate=1pps rate=2pps
  for command in 0 -1 5x 1000001 ""; do
    expect_exit "top --count '$command'" 64 "--count '$command': give a whole number from 1 to" \
      weir top --count "$command"
  done
  expect_exit "version" 0 "data plane ABI" weir version
  expect_exit "--version" 0 "weir 0." weir --version
  expect_equal "version -j" "$(json '.schema, (.abi | type)' version | paste -sd' ')" "1 number"
  expect_equal "usage errors are JSON too" "$(json .error set per-ip rate | cut -c1-6)" "'rate'"
}

test_nothing_there() {
  local command

  for command in show top "top --once" "why 192.0.2.7"; do
    # shellcheck disable=SC2086 # a command and its arguments
    expect_exit "$command: no controller, no pins" 2 "nothing is pinned in '$WEIR_PINS'" \
      weir $command
  done
  for command in "set per-ip rate=1pps" reload watch events stop; do
    # shellcheck disable=SC2086
    expect_exit "$command: no controller" 2 \
      "no controller answers at '$WEIR_SOCKET': start it with \`weir run\`" weir $command
  done
  expect_exit "stop --detach: nothing to detach" 1 "nothing to detach" weir stop --detach
  expect_equal "an error in JSON" "$(json .error reload | cut -c1-21)" "no controller answers"
  expect_exit "options win over the environment" 2 "'/nonexistent/s'" \
    weir reload --socket /nonexistent/s
}

test_check() {
  local first

  expect_exit "check" 0 "rate: 1000pps" weir check "$LAB_DIR/weir.yaml"
  expect_exit "check says what memory it takes" 0 "# ledger: 262144 places, " \
    weir check -c "$LAB_DIR/weir.yaml"
  weir check "$LAB_DIR/weir.yaml" >"$LAB_DIR/canonical.yaml"
  first=$(cat "$LAB_DIR/canonical.yaml")
  expect_equal "what check prints loads back as the same" \
    "$(weir check "$LAB_DIR/canonical.yaml")" "$first"
  expect_equal "check -j" "$(json '[.schema, .limits, .interfaces, .places]' \
    check "$LAB_DIR/weir.yaml")" "[1,1,1,262144]"
  write_config bad.yaml "$LAB_IF_S" 5bps
  expect_exit "a bad value, with its line" 1 "bad.yaml:7: " weir check "$LAB_DIR/bad.yaml"
  expect_equal "the same in JSON" "$(json '.error | contains("5bps")' \
    check "$LAB_DIR/bad.yaml")" "true"
  expect_exit "no such file" 1 "$LAB_DIR/none.yaml: " weir check "$LAB_DIR/none.yaml"
  printf 'version: 1\ninterfaces: []\n' >"$LAB_DIR/empty.yaml"
  expect_exit "nothing to limit is said" 0 "nothing is limited" weir check "$LAB_DIR/empty.yaml"
  expect_exit "an interface that isn't here is said" 0 \
    "# interface $LAB_IF_S: there is none of this name here now" weir check "$LAB_DIR/weir.yaml"
  check "one that is isn't" eval \
    '! in_ns s "$WEIR" check "$LAB_DIR/weir.yaml" | grep -q "# interface"'
  echo '{"version": 1, "limits": {"per-ip": {"rate": "9pps"}, "gone": {"rate": "1pps"}}}' \
    >"$LAB_DIR/kept.json"
  expect_exit "what goes over the file is said" 0 "# limit per-ip: rate=9pps (kept by weir set" \
    weir check "$LAB_DIR/weir.yaml" --overrides "$LAB_DIR/kept.json"
  expect_equal "and in JSON, where the policy is the file's" "$(json \
    '[(.notes | length), (.notes[2] | contains("gone")), (.policy | contains("9pps"))]' \
    check "$LAB_DIR/weir.yaml" --overrides "$LAB_DIR/kept.json")" "[3,true,false]"
  echo '{' >"$LAB_DIR/kept.json"
  expect_exit "what is damaged is said, the file is good" 0 "# $LAB_DIR/kept.json:" \
    weir check "$LAB_DIR/weir.yaml" --overrides "$LAB_DIR/kept.json"
  expect_equal "check touches nothing" \
    "$(find "$LAB_DIR/bpf" -mindepth 1 ! -name '*.debug')" ""
}

test_run_refusals() {
  local run=(in_ns s "$WEIR" run --overrides "$LAB_DIR/overrides.json")

  expect_exit "run: no such file" 1 "none.yaml" "${run[@]}" -c "$LAB_DIR/none.yaml"
  expect_exit "run: a bad file" 1 "bad.yaml:7: " "${run[@]}" -c "$LAB_DIR/bad.yaml"
  write_config nolink.yaml nolink0 1000pps
  expect_exit "run: no such interface" 2 "nolink0" "${run[@]}" -c "$LAB_DIR/nolink.yaml"
  echo mine >"$LAB_DIR/file"
  expect_exit "run: the socket's path is a file" 2 "there is something else of this name" \
    "${run[@]}" -c "$LAB_DIR/weir.yaml" --socket "$LAB_DIR/file"
  expect_exit "run: a socket's path that is too long" 1 "at most 107 characters" \
    "${run[@]}" -c "$LAB_DIR/weir.yaml" --socket "/tmp/$(printf '%0200d' 0)"
  expect_equal "run left that file alone" "$(cat "$LAB_DIR/file")" mine
  check "run that could not start left no pins" test ! -e "$WEIR_PINS"
  check "run that could not start left no socket" test ! -e "$WEIR_SOCKET"
  check "run that could not start left no program" eval '! has_xdp'
}

# --- with a controller ----------------------------------------------------------------------

# systemd's side of the ready message: prints what arrives.
listen_notify() {
  perl -MSocket -e 'socket(S, PF_UNIX, SOCK_DGRAM, 0) && bind(S, sockaddr_un($ARGV[0])) or die;
    alarm 20; recv(S, $b, 99, 0); print $b' "$LAB_DIR/notify"
}

test_start() {
  listen_notify >"$LAB_DIR/notified" &
  LAB_PID[notify]=$!
  wait_for 5 test -S "$LAB_DIR/notify"
  export NOTIFY_SOCKET=$LAB_DIR/notify
  start_weir
  unset NOTIFY_SOCKET
  await notify
  expect_equal "run tells systemd when it is ready" "$(cat "$LAB_DIR/notified")" "READY=1"
  expect_equal "the socket's mode" "$(stat -c %a "$WEIR_SOCKET")" 660
  check "a program is on the interface" has_xdp
  expect_exit "a second controller on the pins" 2 "$WEIR_PINS" \
    in_ns s "$WEIR" run -c "$LAB_DIR/weir.yaml" --socket "$LAB_DIR/other.sock" \
    --overrides "$LAB_DIR/overrides.json"
  expect_exit "a second controller on the socket" 2 "another controller answers there" \
    in_ns s "$WEIR" run -c "$LAB_DIR/weir.yaml" --pins "$LAB_DIR/bpf/other" \
    --overrides "$LAB_DIR/overrides.json"
  check "that left no pins" test ! -e "$LAB_DIR/bpf/other"
  expect_equal "the first one still answers" "$(json .live show ledger)" true
}

test_show() {
  expect_exit "show" 0 "bucket rate 1000pps burst 1000" weir show
  expect_exit "show interfaces" 0 "$LAB_IF_S" weir show interfaces
  expect_exit "show ledger" 0 "places 262144" weir show ledger
  expect_exit "show NAME" 0 "source/32/64" weir show per-ip
  expect_exit "show of none" 1 "there is no limit or service 'nope'" weir show nope
  expect_equal "show -j" "$(json 'keys' show)" \
    '["confirm","interfaces","ledger","limits","lists","live","schema","time_ns"]'
  expect_equal "show -j limits" "$(json 'keys' show limits)" \
    '["confirm","limits","live","schema","time_ns"]'
  expect_equal "numbers in base units" "$(json '.limits[0].settings' show per-ip)" \
    '{"rate":1000,"burst":1000}'
  expect_equal "the interface" \
    "$(json '.interfaces[0] | [.name, .mode, (.attached == "no")]' show)" \
    "[\"$LAB_IF_S\",\"auto\",false]"
  expect_equal "show -j of none" "$(json '.error | contains("nope")' show nope)" true
}

test_set() {
  local field

  expect_exit "set" 0 "per-ip: enforce bucket rate 500pps burst 100" \
    weir set per-ip rate=500pps burst=100
  expect_equal "set has acted" "$(json .limits[0].settings.rate show per-ip)" 500
  expect_equal "set -j" "$(json '.limits[0].settings' set per-ip rate=2kpps burst=1000)" \
    '{"rate":2000,"burst":1000}'
  expect_exit "set: a bad value" 1 "'5bps'" weir set per-ip rate=5bps
  expect_exit "set: an unknown field names those there are" 1 "it has rate, burst" \
    weir set per-ip speed=5
  expect_exit "set says the mode" 0 "per-ip: monitor bucket" weir set per-ip mode=monitor
  weir set per-ip mode=enforce >/dev/null
  expect_exit "set: no such limit" 1 "there is no limit 'nope'" weir set nope rate=5pps
  expect_exit "set: one bad of two" 1 "'x'" weir set per-ip rate=7pps burst=x
  expect_equal "a refused set changes nothing" "$(json .limits[0].settings.rate show per-ip)" 2000
  for field in $(json '.limits[0].settings | keys[]' show per-ip) mode; do
    expect_exit "a printed name is accepted: $field" 1 "field '$field': '?'" \
      weir set per-ip "$field=?"
  done
  expect_exit "set with bytes that are no UTF-8" 1 "argument 2 is not UTF-8" \
    weir set per-ip "rate=$(printf '\377')"
  expect_exit "show with such bytes" 1 "argument 1 is not UTF-8" weir show "$(printf '\377')"
  weir set per-ip rate=1000pps >/dev/null
}

test_reload() {
  write_config weir.yaml "$LAB_IF_S" 1500pps
  expect_exit "reload" 0 "reloaded: limits 1" weir reload
  expect_equal "reload has acted" "$(json .limits[0].settings.rate show per-ip)" 1500
  write_config weir.yaml "$LAB_IF_S" 5bps
  expect_exit "a bad file is refused" 1 "weir.yaml:7: " weir reload
  expect_equal "and changes nothing" "$(json .limits[0].settings.rate show per-ip)" 1500
  kill -HUP "${LAB_PID[weir]}"
  check "SIGHUP on a bad file is in the events" wait_for 5 eval \
    '[ "$(weir events | grep -c "reload refused, nothing changed: .*weir.yaml:7")" = 2 ]'
  mv "$LAB_DIR/weir.yaml" "$LAB_DIR/weir.5bps"
  mkdir "$LAB_DIR/weir.yaml"
  expect_exit "a folder for a file is refused" 1 "weir.yaml: is not a regular file" weir reload
  rmdir "$LAB_DIR/weir.yaml"
  write_config weir.yaml "$LAB_IF_S" 1000pps
  kill -HUP "${LAB_PID[weir]}"
  check "SIGHUP reloads" wait_for 5 eval \
    '[ "$(json .limits[0].settings.rate show per-ip)" = 1000 ]'
  expect_equal "reload -j" "$(json '[.schema, .limits, .notes]' reload)" "[1,1,[]]"
  weir set per-ip rate=900pps --save >/dev/null
  expect_exit "reload says what goes over the file" 0 \
    "note: limit per-ip: rate=900pps (kept by weir set --save in $LAB_DIR/overrides.json)" \
    weir reload
  expect_exit "show tells what was set" 0 \
    "per-ip was set: rate=900pps (in the file: 1000pps), kept; weir unset per-ip goes back" \
    weir show limits
  expect_exit "what the setting doesn't say is said" 0 "burst 1000; untracked drop" \
    weir set per-ip untracked=drop
  expect_exit "kept in part" 0 "untracked=drop (in the file: pass), kept in part" weir show limits
  expect_exit "unset" 0 "per-ip: enforce bucket rate 1000pps burst 1000" weir unset per-ip
  check "show is silent again" eval '! weir show limits | grep -q "was set"'
  expect_equal "unset is for good" "$(weir reload)" "reloaded: limits 1"
  weir set per-ip rate=800pps >/dev/null
  expect_equal "-j: what was set" "$(json '.limits[0] | [.set, .saved, .governor]' show)" \
    '[{"rate":{"file":"1000pps","now":"800pps"}},null,null]'
  expect_exit "unset of nothing" 1 "there is no limit 'nope'" weir unset nope
  sed -i 's/per-ip/other/' "$LAB_DIR/weir.yaml"
  weir set per-ip rate=700pps --save >/dev/null
  expect_exit "kept, and no limit any more" 0 "(weir unset per-ip forgets it)" weir reload
  expect_exit "it can be forgotten" 0 "per-ip: forgotten; there is no limit of this name" \
    weir unset per-ip
  expect_exit "once" 1 "there is no limit 'per-ip'" weir unset per-ip
  write_config weir.yaml nope7 1000pps
  expect_exit "reload says which interface is not limited" 0 \
    "note: NOT limited: interface nope7: there is none of this name now" weir reload
  write_config weir.yaml "$LAB_IF_S" 1000pps
  expect_equal "and nothing more when it is right" "$(weir reload)" "reloaded: limits 1"
}

test_events() {
  expect_exit "events tell of a set" 0 "limit per-ip: rate=500pps burst=100" weir events
  expect_equal "events -n" "$(weir events -n 2 | wc -l)" 2
  expect_equal "events -j" "$(json '[.schema, (.events[0].time_ns > 1e18)]' events)" "[1,true]"
}

test_traffic() {
  start_sink
  start_flood 30 "to=$LAB_SERVER4,from=10.78.0.1,sources=3,rate=9000" \
    "to=$LAB_SERVER6,from=fd78::1,rate=6000"
  sleep 1.2
  expect_equal "top: the heaviest first, IPv6 by its prefix" \
    "$(json '.keys[0] | [.limit, .key]' top --once)" '["per-ip","fd78::/64"]'
  expect_equal "top: all four" "$(json '[.keys[].key] | sort' top --once)" \
    '["10.78.0.1","10.78.0.2","10.78.0.3","fd78::/64"]'
  sleep 3 # rates are differences to what a walk before found: that was before the flood
  expect_between "top: the rate that is refused" \
    "$(json '.keys[0].refused_per_sec' top --once)" 4500 5500
  expect_between "top: the rate that passes" \
    "$(json '.keys[0].admitted_per_sec' top per-ip --once)" 900 1100
  expect_equal "top -n" "$(json '.keys | length' top --once -n 2)" 2
  expect_exit "top in text" 0 "fd78::/64  per-ip" weir top --once
  expect_exit "top of none" 1 "there is no limit 'nope'" weir top nope --once
  check "top --total is what show counts" eval '[ "$(json "[.keys[].refused] | add" \
    top --total --once)" -le "$(json ".limits[0].refused" show)" ]'
  expect_equal "top, refreshed: a document a second" \
    "$(timeout -s INT 3.5 "$WEIR" top -j | jq -c '.keys | length' | sort -u)" 4
  expect_equal "why: refused now, for how long" \
    "$(json '.limits[0] | [.of, .in_ledger, .left < 20]' why fd78::77)" '["fd78::/64",true,true]'
  expect_exit "why in text" 0 "per-ip  10.78.0.1" weir why 10.78.0.1
  expect_exit "why of a stranger" 0 "passes, not seen lately" weir why 192.0.2.200
  expect_exit "why of no address" 1 "address '192.0.2': give an IPv4 or IPv6" weir why 192.0.2
  expect_between "rates in show" "$(json '.limits[0].refused_per_sec' show)" 8000 14000
}

test_watch() {
  local code=0

  spawn watch s "$WEIR" watch
  spawn watchj s "$WEIR" watch -j
  wait_for 5 test -s "$LAB_DIR/watch.out" || fail "watch" "nothing came"
  wait_for 5 test -s "$LAB_DIR/watchj.out"
  stop watch INT || code=$?
  expect_equal "watch ends cleanly on Ctrl-C" "$code" 0
  check "watch: a line a refusal, with the number left out" eval \
    '! grep -vE "^[0-9:.]+ per-ip refused .* -> .* udp .* [0-9]+ more left out\$" \
      "$LAB_DIR/watch.out"'
  expect_equal "watch -j" "$(head -n 1 "$LAB_DIR/watchj.out" |
    jq -c '[.limit, .protocol, .would, .interface, (.left_out | type)]')" \
    "[\"per-ip\",\"udp\",false,\"$LAB_IF_S\",\"number\"]"
  expect_equal "watch into a closed pipe ends" \
    "$(timeout 10 "$WEIR" watch | head -n 1 | wc -l; echo "${PIPESTATUS[0]}")" "1
0"
}

test_pipes() {
  local codes

  weir show 2>"$LAB_DIR/pipe.err" | true
  codes=${PIPESTATUS[0]}
  expect_equal "show into a closed pipe" "$codes $(cat "$LAB_DIR/pipe.err")" "0 "
  expect_exit "a full disk is an error" 2 "No space left" eval 'weir show >/dev/full'
}

# --- the controller ends --------------------------------------------------------------------

test_killed() {
  local before code=0

  weir set per-ip rate=800pps --save >/dev/null || fail "set --save" "exit $?"
  weir deny add 198.51.100.0/24 >/dev/null
  expect_exit "a ban that isn't" 1 "'10.78.0.1' is not banned" weir ban del 10.78.0.1
  expect_exit "ban takes del" 64 "give weir ban del KEY" weir ban add 10.78.0.1
  stop weir || fail "SIGTERM" "exit $?"
  await watchj || code=$?
  expect_equal "watch ends when the controller does" \
    "$code $(tail -n 1 "$LAB_DIR/watchj.err")" "0 weir: the controller has ended"
  start_weir
  kill -KILL "${LAB_PID[weir]}"
  wait "${LAB_PID[weir]}" 2>/dev/null
  unset "LAB_PID[weir]"
  expect_exit "show reads the pins, and says so" 0 \
    "the controller is down: read from the pins in $WEIR_PINS" weir show
  expect_equal "show -j from the pins" "$(json '[.live, .limits[0].settings.rate]' show)" \
    "[false,800]"
  expect_equal "an interface by its name" \
    "$(in_ns s "$WEIR" show -j 2>/dev/null | jq -r '.interfaces[0].name')" "$LAB_IF_S"
  before=$(json '.limits[0].refused' show)
  expect_equal "top from the pins" "$(json '.keys[0].key' top --once)" "fd78::/64"
  expect_between "it goes on limiting" "$(json '.limits[0].refused' show)" $((before + 1000)) \
    $((before + 1000000))
  expect_exit "top of none, from the pins" 1 "there is no limit 'nope'" weir top nope --once
  expect_exit "show of none, from the pins" 1 "there is no limit or service 'nope'" weir show nope
  expect_equal "why from the pins" "$(json '.limits[0].in_ledger' why 10.78.0.1)" true
  expect_equal "a list from the pins" "$(json '[.entries[] | [.prefix, .live]]' deny list)" \
    '[["198.51.100.0/24",true]]'
  expect_equal "and how long they are" "$(json '.lists.deny' show lists)" \
    '{"ipv4":1,"ipv6":0,"live":1}'
  expect_exit "but not a change" 2 "start it with \`weir run\`" weir deny add 10.0.0.1
  expect_exit "set needs the controller" 2 "start it with \`weir run\`" weir set per-ip rate=1pps
  expect_exit "and so does stop" 2 "start it with \`weir run\`" weir stop
}

test_restarted() {
  local before

  before=$(json '.limits[0].refused' show)
  start_weir
  expect_equal "a dead controller's socket is replaced" "$(json .live show)" true
  check "totals are kept" [ "$(json '.limits[0].refused' show)" -ge "$before" ]
  expect_equal "what was set with --save is kept" "$(json .limits[0].settings.rate show)" 800
}

test_ended() {
  local code=0

  stop weir TERM || code=$?
  expect_equal "SIGTERM: a clean end" "$code" 0
  check "SIGTERM leaves the limits" has_xdp
  check "and takes its socket away" test ! -e "$WEIR_SOCKET"
  start_weir
  stop weir INT || code=$?
  expect_equal "SIGINT: a clean end" "$code" 0
  check "SIGINT leaves the limits" has_xdp
  echo "control: {group: no-such-group}" >>"$LAB_DIR/weir.yaml"
  start_weir
  check "a group that isn't there: a note, with what makes it" grep -q \
    '^note: .* no group .no-such-group. .*`groupadd -r no-such-group`' "$LAB_DIR/weir.err"
  expect_exit "stop" 0 "the limits stay in force" weir stop
  expect_exit "show at once finds nobody, and reads the pins" 0 "read from the pins" \
    weir show per-ip
  await weir || code=$?
  expect_equal "stop: a clean end" "$code" 0
  check "stop leaves the limits" has_xdp
  start_weir
  expect_equal "stop --detach -j" "$(json .detached stop --detach)" true
  await weir || code=$?
  check "stop --detach takes the program away before it returns" eval '! has_xdp'
  check "and the pins" test ! -e "$WEIR_PINS"
  start_weir
  kill -KILL "${LAB_PID[weir]}"
  wait "${LAB_PID[weir]}" 2>/dev/null
  unset "LAB_PID[weir]"
  check "killed: the program is there" has_xdp
  expect_exit "stop --detach without a controller" 0 "stopped and detached" \
    in_ns s "$WEIR" stop --detach
  check "took the program away" eval '! has_xdp'
  check "and the pins too" test ! -e "$WEIR_PINS"
}

lab_make 4
export WEIR_SOCKET=$LAB_DIR/weir.sock WEIR_PINS=$LAB_DIR/bpf/weir
write_config weir.yaml "$LAB_IF_S" 1000pps
test_usage
test_nothing_there
test_check
test_run_refusals
test_start
test_show
test_set
test_reload
test_events
test_traffic
test_watch
test_pipes
test_killed
test_restarted
test_ended
finish
