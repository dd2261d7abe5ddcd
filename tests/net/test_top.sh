#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# weir top on a terminal: what is on the screen at several sizes, sorted, filtered, while the
# controller is there, slow and down; and that the terminal is as it was after every kind of end.

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2317,SC2119
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=weir.sh
. "$(dirname "$0")/weir.sh"

export TERM=xterm LC_ALL=C.UTF-8
spark='[▁▂▃▄▅▆▇█]'

# screen SIZE STEP...: runs weir top; its verdict is in $LAB_DIR/verdict.
screen() {
  local size=$1

  shift
  timeout 60 "$LAB_TOOLS/screen" --size "$size" "$@" -- "$WEIR" top \
    >"$LAB_DIR/verdict" 2>"$LAB_DIR/screen.err" || {
    cat "$LAB_DIR/screen.err" >&2
    return 1
  }
}

verdict() {
  jq -r "$1" "$LAB_DIR/verdict"
}

has() {
  grep -qE -- "$2" "$LAB_DIR/$1" || {
    sed "s/^/  |/" "$LAB_DIR/$1" >&2
    return 1
  }
}

has_not() {
  ! grep -qE -- "$2" "$LAB_DIR/$1"
}

# No line is wider, there are no more lines, and help is in the last one.
fits() {
  [ "$(wc -L <"$LAB_DIR/$1")" -le "$2" ] && [ "$(wc -l <"$LAB_DIR/$1")" = "$3" ] &&
    tail -n 1 "$LAB_DIR/$1" | grep -q '^q quit'
}

test_sizes() {
  check "it runs at 80x24, 40x12 and 132x50" screen 80x24 "until=10.78.0.1 " wait=2.5 \
    "dump=$LAB_DIR/80" resize=40x12 wait=0.5 "dump=$LAB_DIR/40" \
    resize=132x50 wait=0.5 "dump=$LAB_DIR/132" type=q
  expect_equal "q ends it" "$(verdict .exit)" 0
  expect_equal "and the terminal is as it was" "$(verdict .restored)" true
  check "80x24: it is live" has 80 '^weir top [0-9:]+  live .*ledger [0-9]+% held'
  check "80x24: the limit with its rates" has 80 "^per-ip +enforce .*$spark+ +[0-9]+.*[0-9]+\$"
  check "80x24: an IPv4 key with a sparkline" has 80 \
    "^ *[0-9]+ +[0-9]+ 10\.78\.0\.1 .*per-ip .*$spark"
  check "80x24: an IPv6 key" has 80 'fd78::/64 '
  check "80x24: refusals" has 80 '^per-ip (10\.78|\[fd78).* > '
  check "80x24: fits" fits 80 80 24
  check "40x12: the heaviest key" has 40 '^ *[0-9]+ +[0-9]+ (10\.78|fd78)'
  check "40x12: fits" fits 40 40 12
  check "132x50: a key" has 132 '10\.78\.0\.1 '
  check "132x50: fits" fits 132 132 50
}

test_small() {
  check "it runs where there is no room" screen 20x4 wait=1.5 resize=1x1 wait=0.5 resize=8x2 \
    wait=0.5 resize=80x24 "until=10.78.0.1 " type=q
  expect_equal "and ends" "$(verdict .exit)" 0
}

# The order of the keys on a screen: those of the flood, whose rates differ.
order_of() {
  grep -oE '(10\.78\.0\.1|10\.78\.1\.1|fd78::/64) ' "$LAB_DIR/$1" | awk '!seen[$1]++' | tr -d '\n'
}

test_keys() {
  check "it sorts and filters" screen 80x24 "until=10.78.1.1 " wait=1.5 "dump=$LAB_DIR/all" \
    type=sss "until=by key" wait=0.3 "dump=$LAB_DIR/by-key" \
    type=/fd78 "until=filter: fd78" type=^M "gone=10.78.0.1  " "dump=$LAB_DIR/filtered" \
    type=/^[ "until=10.78.0.1 " type=q
  check "by all: the heaviest first" has all '\(by all'
  sed -i '/ > /d' "$LAB_DIR/all" "$LAB_DIR/by-key" "$LAB_DIR/filtered"
  expect_equal "by all" "$(order_of all)" "10.78.1.1 fd78::/64 10.78.0.1 "
  expect_equal "by key" "$(order_of by-key)" "10.78.0.1 10.78.1.1 fd78::/64 "
  expect_equal "filtered" "$(order_of filtered)" "fd78::/64 "
}

test_signals() {
  local name number

  for name in INT TERM HUP; do
    number=$(kill -l "$name")
    check "SIG$name ends it" screen 80x24 "until=10.78.0.1 " "signal=$number"
    expect_equal "SIG$name: the terminal is as it was" "$(verdict .restored)" true
    expect_equal "SIG$name: exit" "$(verdict .exit)" 0
    expect_between "SIG$name: within so many ms" "$(verdict .ended_ms)" 0 2000
  done
  check "Ctrl-C too" screen 80x24 "until=10.78.0.1 " type=^C
  expect_equal "Ctrl-C: the terminal is as it was" "$(verdict .restored)" true
}

# A stopped controller holds up nothing: the screen says so, q works at once.
test_slow() {
  kill -STOP "${LAB_PID[weir]}"
  check "a controller that doesn't answer is missed" screen 80x24 "until=no answer from the" type=q
  expect_between "and q doesn't wait for it, ms" "$(verdict .ended_ms)" 0 1000
  kill -CONT "${LAB_PID[weir]}"
}

# Down in mid-run: the pins go on telling, and when one is back it is live again.
test_down() {
  (sleep 3; kill -TERM "${LAB_PID[weir]}") &
  check "down: it goes on with the pins" screen 80x24 "until=live" \
    "until=controller is down, reading the pinned maps" "gone=looking" wait=2 \
    "dump=$LAB_DIR/down" type=q
  wait $!
  wait "${LAB_PID[weir]}" 2>/dev/null
  unset "LAB_PID[weir]"
  check "down: keys" has down '^ *[0-9]+ +[0-9]+ 10\.78\.1\.1 '
  check "down: limits" has down '^per-ip '
  rm "$LAB_DIR/weir.err" # its "ready" is not the next one's
  start_weir
  weir stop --detach >/dev/null
  await weir
  timeout 10 "$LAB_TOOLS/screen" --size 80x24 -- "$WEIR" top >"$LAB_DIR/verdict" 2>&1
  expect_equal "neither controller nor pins: refused" "$(verdict .exit)" 2
}

test_no_terminal() {
  expect_equal "no terminal: one list and the end" \
    "$(weir top -n 1 | head -1 | tr -s ' ')" "REFUSING ADMITTING KEY LIMIT"
  expect_between "-j goes on, once a second" "$(timeout 4 "$WEIR" top -j | jq -s length)" 2 5
  TERM=nonsense
  timeout 10 "$LAB_TOOLS/screen" --size 80x24 -- "$WEIR" top >"$LAB_DIR/verdict" 2>&1
  expect_equal "an unknown terminal is refused" "$(verdict .exit)" 2
  TERM=xterm
}

weir_lab 1
write_config 500pps 500
start_weir
start_flood flood 120 "to=$LAB_SERVER4,from=10.78.0.1,rate=800" \
  "to=$LAB_SERVER4,from=10.78.1.1,rate=4000" "to=$LAB_SERVER6,from=fd78::1,rate=2000"
test_sizes
test_small
test_keys
test_signals
test_slow
test_no_terminal
test_down
stop flood
finish
