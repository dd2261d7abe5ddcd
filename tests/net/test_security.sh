#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# docs/threat-model.md: what a user outside the group can do (nothing), and what bad clients of
# the control socket can (nothing to others, and the controller doesn't grow).

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2317,SC2119
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=weir.sh
. "$(dirname "$0")/weir.sh"

answer_most_ms=8000 # of one command while the crowd is there, on a machine at load 10

write_secured() {
  write_config 1pps 100
  cat >>"$CONFIG" <<END
services:
  - name: app
    match: {proto: udp, to_port: 53}
    trust: report
    breaker: {}
control: {group: root}
END
}

# as_nobody COMMAND...
as_nobody() {
  in_ns s timeout 20 setpriv --reuid 65534 --regid 65534 --clear-groups \
    --bounding-set -all --no-new-privs "$@"
}

# refused_to_nobody NAME COMMAND...: fails as nobody.
refused_to_nobody() {
  local name=$1

  shift
  if as_nobody "$@" >"$LAB_DIR/said" 2>&1; then
    fail "nobody: $name" "$(head -c 300 "$LAB_DIR/said")"
  else
    pass "nobody: $name"
  fi
}

# --- somebody else on this machine ----------------------------------------------------------

in_force() {
  json '.limits[0] | [.setting, .mode]' show per-ip
}

test_commands_of_nobody() {
  local command

  check "nobody can run weir, python and bpftool" as_nobody sh -c \
    "'$WEIR' version && python3 -c 'import socket' && bpftool version && ip -V" >/dev/null
  for command in show "set per-ip rate=block" reload "allow add 10.0.0.0/8" "top --once" stop \
    "stop --detach" "why 10.0.0.1" events "report app fail" "freeze app"; do
    # shellcheck disable=SC2086 # words
    refused_to_nobody "weir $command" "$WEIR" $command
  done
  expect_exit "and weir says what it takes" 2 "member of its group" as_nobody "$WEIR" show
  refused_to_nobody "a datagram to the report socket" \
    python3 -c 'import socket, sys
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"app fail", sys.argv[1])' \
    "$WEIR_SOCKET.report"
}

test_files_of_nobody() {
  local file

  weir set per-ip burst=200 --save >/dev/null || fail "set --save" "exit $?"
  for file in "$LAB_DIR/overrides.json" "$WEIR_PINS"/weir_*; do
    refused_to_nobody "reads ${file##*/}" head -c 1 "$file"
  done
  for file in "$LAB_DIR/overrides.json" "$WEIR_SOCKET" "$WEIR_PINS/weir_board"; do
    refused_to_nobody "takes away ${file##*/}" rm -f "$file"
    check "${file##*/} is there" test -e "$file"
  done
  refused_to_nobody "lists the pins" ls "$WEIR_PINS"
  refused_to_nobody "opens a pinned map" bpftool map dump pinned "$WEIR_PINS/weir_labels"
  refused_to_nobody "takes the program off" ip link set dev "$LAB_IF_S" xdp off
  refused_to_nobody "a signal to the controller" kill -TERM "${LAB_PID[weir]}"
  weir set per-ip burst=100 --save >/dev/null || fail "set --save" "exit $?"
  expect_equal "no temporary file is left" "$(cd "$LAB_DIR" && echo overrides.json*)" \
    overrides.json
  expect_equal "modes: control, report, overrides, pins" \
    "$(stat -c %a "$WEIR_SOCKET" "$WEIR_SOCKET.report" "$LAB_DIR/overrides.json" "$WEIR_PINS" |
      tr '\n' ' ')" "660 660 600 700 "
}

test_nobody() {
  local before

  # The way there is open to everybody, so that weir's own modes are what is tested.
  chmod 755 "$LAB_DIR" "$LAB_DIR/bpf"
  before=$(in_force)
  test_commands_of_nobody
  test_files_of_nobody
  expect_equal "nothing has changed" "$(in_force)" "$before"
  expect_equal "no report was counted" "$(json .reports.received show services)" 0
}

# --- bad clients ----------------------------------------------------------------------------

rss_kb() {
  awk '/^VmRSS/ { print $2 }' "/proc/${LAB_PID[weir]}/status"
}

# took_ms COMMAND...: how long it took; nothing where it failed.
took_ms() {
  local start

  start=$(date +%s%N)
  "$@" >/dev/null 2>&1 && echo $((($(date +%s%N) - start) / 1000000))
}

# At most 64 are in and some 128 in the queue; who begins and stops there is ended for others.
crowd_was_there() {
  case $1 in
    huge) [ "$(last pester .bytes)" -ge $(($2 << 20)) ] ;;
    half) [ "$(last pester .ended)" -ge 64 ] ;;
    *) [ "$(last pester .opened)" -ge 60 ] ;;
  esac
}

# test_crowd MANNER COUNT SECONDS GROWTH-KB: a good client is answered, and the controller is
# bigger by so much at most, while it lasts.
test_crowd() {
  local manner=$1 before worst=0 most=0 took size i

  before=$(rss_kb)
  spawn pester s "$LAB_TOOLS/pester" --socket "$WEIR_SOCKET" --count "$2" --seconds "$3" \
    --manner "$manner"
  wait_for 10 grep -q ready "$LAB_DIR/pester.out"
  for ((i = 0; i < 4; i++)); do
    sleep 0.4
    took=$(took_ms weir show per-ip)
    [ "${took:-99999}" -le "$worst" ] || worst=${took:-99999}
    size=$(rss_kb)
    [ "$size" -le "$most" ] || most=$size
  done
  expect_between "$manner: weir show is answered, ms" "$worst" 0 "$answer_most_ms"
  await pester
  expect_between "$manner: the controller grows little, KB" $((most - before)) -1000000 "$4"
  check "$manner: the crowd was there: $(last pester .)" crowd_was_there "$manner" "$2"
}

test_crowds() {
  local refused

  start_sink
  start_flood flood 90 "to=$LAB_SERVER4,from=10.78.0.1,rate=2000"
  sleep 0.3
  refused=$(total refused)
  test_crowd half 10000 6 30000
  test_crowd huge 1024 60 30000
  test_crowd wrong 200 4 150000
  # 4 MiB of output wait for each who doesn't read, and an answer more.
  test_crowd deaf 60 5 350000
  test_crowd watch 60 5 150000
  check "the flood was limited throughout" test "$(total refused)" -gt $((refused + 20000))
  stop flood
  stop sink
  expect_between "to a burst and the rate" "$(last sink .udp.received)" 100 250
}

# --- links where files are expected -----------------------------------------------------------

second_began() {
  grep -q ^ready: "$LAB_DIR/second.err" || ! kill -0 "${LAB_PID[second]}" 2>/dev/null
}

# second SOCKET: another controller, until it is ready or has ended.
second() {
  spawn second s "$WEIR" run -c "$CONFIG" --socket "$1" --pins "$LAB_DIR/bpf/second" \
    --overrides "$LAB_DIR/overrides.json"
  wait_for 20 second_began
}

# What a stranger who may write to the socket's folder could put there: it is not followed.
test_links() {
  local victim=$LAB_DIR/victim

  echo mine >"$victim"
  chmod 600 "$victim"
  ln -s "$victim" "$LAB_DIR/link.sock"
  second "$LAB_DIR/link.sock"
  check "a link where the socket would be is refused" \
    grep -q "socket '.*link.sock': there is something else" "$LAB_DIR/second.err"
  await second 2>/dev/null && fail "it ended well" "$(cat "$LAB_DIR/second.err")"
  ln -s "$victim" "$LAB_DIR/other.sock.report"
  second "$LAB_DIR/other.sock"
  check "where the report socket would be, nothing is taken, and that is said" \
    grep -q "no datagrams .*other.sock.report': there is something else" "$LAB_DIR/second.err"
  WEIR_SOCKET=$LAB_DIR/other.sock WEIR_PINS=$LAB_DIR/bpf/second weir stop --detach >/dev/null ||
    fail "stop" "exit $?"
  await second
  expect_equal "what they point at is untouched" "$(cat "$victim") $(stat -c %a%U%G "$victim")" \
    "mine 600rootroot"
}

weir_lab
write_secured
start_weir
test_nobody
test_crowds
weir stop --detach >/dev/null || fail "stop" "exit $?"
await weir
test_links
finish
