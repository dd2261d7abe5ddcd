#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# The safety net: a change that cuts off the session it is typed in is named and refused; forced
# with --confirm it cuts off a real connection, goes back by itself, and the same connection works
# again, also when the controller was killed in between.

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2317,SC2016
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=weir.sh
. "$(dirname "$0")/weir.sh"

# The session: one connection to port 22, on which "." is answered by "." every 50 ms. The last
# line of session.out is how many came back so far, the first one its own port.
start_session() {
  spawn server s python3 -c '
import socket
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("10.77.0.1", 22))
s.listen()
print("ready", flush=True)
c, _ = s.accept()
while (b := c.recv(1)):
    c.send(b)
'
  wait_for 5 grep -qs ready "$LAB_DIR/server.out" || { fail "server" "not ready"; finish; }
  spawn session c python3 -c '
import socket, time
s = socket.create_connection(("10.77.0.1", 22), source_address=("10.77.1.1", 0))
print(s.getsockname()[1], flush=True)
answered = 0
while True:
    s.send(b".")
    answered += len(s.recv(1))
    print(answered, flush=True)
    time.sleep(0.05)
'
  wait_for 5 [ -s "$LAB_DIR/session.out" ] || { fail "session" "not connected"; finish; }
  export SSH_CONNECTION
  SSH_CONNECTION="10.77.1.1 $(head -n 1 "$LAB_DIR/session.out") 10.77.0.1 22"
}

answered() {
  tail -n 1 "$LAB_DIR/session.out"
}

# Whether more than one answer comes within a second (one may be on its way).
works() {
  local before

  before=$(answered)
  sleep 1
  [ "$(answered)" -gt $((before + 1)) ]
}

waits() {
  [ "$(json '.confirm.state // "nothing"' show limits)" = "${1:-waiting}" ]
}

says_event() {
  weir events | grep -qF "$1"
}

test_named_and_refused() {
  expect_exit "a set is refused, its limit named" 1 "limit per-ip (bucket rate block" \
    weir set per-ip rate=block
  expect_exit "so is a rate that starves" 1 "is too slow for it" weir set per-ip rate=5pps
  expect_exit "a deny entry" 1 "the deny list has 10.77.0.0/16" weir deny add 10.77.0.0/16
  expect_exit "another's address is denied" 0 added weir deny add 10.77.1.2
  write_config block 1
  expect_exit "a reload, with its line" 1 "$CONFIG:6: limit per-ip" weir reload
  expect_exit "what sudo takes away is found at the parent" 1 "limit per-ip" \
    bash -c 'env -u SSH_CONNECTION "$0" reload; exit $?' "$WEIR"
  expect_exit "nonsense is not ignored" 1 "SSH_CONNECTION 'x'" \
    env SSH_CONNECTION=x "$WEIR" reload
  check "the session works" works
}

test_goes_back() {
  expect_exit "words: time" 1 "write 1s to 1h" weir set per-ip rate=20pps --confirm 2h
  expect_exit "words: nothing waits" 1 "nothing waits" weir confirm
  expect_exit "forced, for 2 s" 0 "goes back in 2s" \
    weir set per-ip rate=block --save --confirm 2s --force
  check "show says that it waits" waits
  expect_exit "in words" 0 "WAITS: weir set per-ip rate=block" weir show
  expect_exit "a second change is refused" 1 "weir confirm --undo" weir set per-ip rate=9pps --force
  check "it has cut the session off" eval '! works'
  check "it goes back by itself" wait_for 5 waits nothing
  check "the same connection works again" wait_for 10 works
  expect_equal "the old rate" "$(json .limits[0].settings.rate show per-ip)" 1000
  check "nothing was saved" [ ! -e "$LAB_DIR/overrides.json" ]
  check "told: the start" says_event "weir set per-ip rate=block waits for weir confirm: in 2s"
  check "told: the end" says_event "weir set per-ip rate=block: gone back (nobody confirmed it)"
}

test_confirmed() {
  expect_exit "a harmless change" 0 "goes back in 1s" \
    weir set per-ip rate=900pps --save --confirm 1s
  expect_exit "confirmed" 0 "confirmed (saved)" weir confirm
  sleep 2.2
  expect_equal "stays" "$(json .limits[0].settings.rate show per-ip)" 900
  check "is saved" grep -q 900pps "$LAB_DIR/overrides.json"
  weir set per-ip rate=800pps --confirm 1h >/dev/null
  expect_exit "--undo" 0 "gone back" weir confirm --undo
  expect_equal "goes back at once" "$(json .limits[0].settings.rate show per-ip)" 900
  expect_exit "unset waits too" 0 "goes back in" weir unset per-ip --confirm 1h
  expect_equal "and acts" "$(json .limits[0].settings.rate show per-ip)" 1000
  check "is still saved" grep -q 900pps "$LAB_DIR/overrides.json"
  expect_exit "unset is confirmed" 0 "weir unset per-ip: confirmed" weir confirm
  check "is not saved any more" eval '! grep -q 900pps "$LAB_DIR/overrides.json"'
}

test_killed() {
  write_config block 1
  weir reload --confirm 2s --force >/dev/null || fail "reload --confirm"
  kill_weir
  check "the killed controller's change cuts off" eval '! works'
  sleep 1.2
  start_weir
  check "the next start goes back" wait_for 10 works
  check "and says so" waits undone
  stop weir
  start_weir
  check "the file does not come in by a restart" works
  write_config 1000pps 200
  expect_exit "put right, it counts again" 0 reloaded weir reload
  check "and nothing is undone any more" waits nothing
}

# The file's limits refuse before the controller listens: nothing is touched.
test_start() {
  stop weir
  weir stop --detach >/dev/null
  write_config block 1
  expect_exit "a start is refused too" 1 "limit per-ip" \
    in_ns s timeout 20 "$WEIR" run -c "$CONFIG" --overrides "$LAB_DIR/overrides.json"
  check "the session works after it" works
}

weir_lab 4
write_config 1000pps 200
unset SSH_CONNECTION
start_weir
start_session
test_named_and_refused
test_goes_back
test_confirmed
test_killed
test_start
finish
