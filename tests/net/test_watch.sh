#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# What weir says while it is flooded stays bounded and adds up: sampled refusals with the number
# left out, the heaviest keys of both families, every -j a document. (Their forms: test_cli.sh.)

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2317,SC2119
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=weir.sh
. "$(dirname "$0")/weir.sh"

seconds=4

# U7: near 40,000 packets a second (no common multiple: samples must not hit one flow alone),
# at most `sample` refusals of them told, all of them accounted for.
test_sampled() {
  local lines told refused cpu

  spawn watch s "$WEIR" watch -j
  check "watch tells of a refusal" wait_for 20 watch_tells
  lines=$(wc -l <"$LAB_DIR/watch.out")
  told=$(sum_told)
  refused=$(total refused)
  cpu=$(cpu_ms weir)
  start_flood flood $seconds "to=$LAB_SERVER4,from=10.78.0.1,sources=100,rate=20011" \
    "to=$LAB_SERVER6,from=fd78::1,shift=64,sources=100,rate=19001"
  await flood
  cpu=$(($(cpu_ms weir) - cpu))
  sleep 0.5
  stop watch INT
  lines=$(($(wc -l <"$LAB_DIR/watch.out") - lines))
  told=$(($(sum_told) - told))
  refused=$(($(total refused) - refused))
  expect_between "watch: as many lines as sample grants" "$lines" \
    $((sample * seconds / 4)) $((sample * (seconds + 1)))
  expect_between "told + left out is all that was refused" "$told" \
    $((98 * refused / 100)) "$refused"
  check "both families are among them" watched_both
  expect_between "the controller's CPU while it is flooded, in ms" "$cpu" 0 $((100 * seconds))
  expect_equal "no event was lost" "$(json .ledger.events_lost show ledger)" 0
}

# It has subscribed, and nothing that it will tell of is still to come.
watch_tells() {
  start_flood begin 0.1 "to=$LAB_SERVER4,from=10.78.8.1,rate=1000"
  await begin
  sleep 0.5
  [ -s "$LAB_DIR/watch.out" ]
}

sum_told() {
  jq -s 'map(.left_out + 1) | add' "$LAB_DIR/watch.out"
}

# Processor time of a process, in milliseconds.
cpu_ms() {
  awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print int(($12 + $13) * 1000 / hz) }' \
    "/proc/${LAB_PID[$1]}/stat"
}

watched_both() {
  jq -se 'any(.[]; .source | startswith("10.78.")) and any(.[]; .source | startswith("fd78:"))' \
    "$LAB_DIR/watch.out" >/dev/null
}

# A watcher that doesn't read holds up nobody, and what it missed is left out, not kept.
test_slow_watcher() {
  local memory

  spawn slow s "$WEIR" watch -j
  sleep 0.3 # it has subscribed
  kill -STOP "${LAB_PID[slow]}"
  memory=$(awk '/VmRSS/ { print $2 }' "/proc/${LAB_PID[weir]}/status")
  start_flood flood 3 "to=$LAB_SERVER4,from=10.78.0.1,sources=10,rate=20000"
  sleep 1
  expect_equal "a stopped watcher holds up no answer" "$(json .live show ledger)" true
  await flood
  expect_between "nor does it fill the memory, in KiB" \
    $(($(awk '/VmRSS/ { print $2 }' "/proc/${LAB_PID[weir]}/status") - memory)) -1024 8192
  kill -CONT "${LAB_PID[slow]}"
  stop slow INT
}

# U14: a flood of one family alone is in top as one of the other.
test_top() {
  local flow

  for flow in "to=$LAB_SERVER6,from=fd78:9::1" "to=$LAB_SERVER4,from=10.78.9.1"; do
    start_flood flood 3 "$flow,rate=5000"
    sleep 1.2
    expect_equal "top --once: $flow" "$(json '.keys[0].key' top --once)" \
      "$(if [[ $flow == *fd78* ]]; then echo fd78:9::/64; else echo 10.78.9.1; fi)"
    stop flood
  done
}

# U11 and scripts: every command's -j is one document, with its schema.
test_json() {
  local command

  for command in show "show limits" "show interfaces" "show ledger" "show per-ip" "top --once" \
    "top --once --total" "why 10.78.0.1" "why fd78::1" events "set per-ip rate=100pps" version \
    reload; do
    # shellcheck disable=SC2086 # a command and its arguments
    expect_equal "$command -j: one document, schema 1" \
      "$(weir $command -j 2>/dev/null | jq -c 'if .version then 1 else .schema end' |
        paste -sd' ')" 1
  done
}

weir_lab 4
sample=50
write_config 10pps 10
echo "sample: ${sample}pps" >>"$CONFIG"
start_weir
test_sampled
test_slow_watcher
test_top
test_json
finish
