#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# run.sh and its lab: usage, the lab without a limit, and a verdict that a weir which limits
# nothing can't pass.

# shellcheck source-path=SCRIPTDIR source=../net/lib.sh disable=SC2317
. "$(dirname "$0")/../net/lib.sh"

run=$LAB_ROOT/scripts/run.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# A weir that starts, answers and limits nothing.
write_idle_weir() {
  cat >"$folder/weir" <<'END'
#!/bin/sh
case $1 in
  run) touch "$WEIR_SOCKET"; exec sleep 60 ;;
  show) test -e "$WEIR_SOCKET" && echo '{"limits":[{"name":"per-ip","admitted":0,"refused":0}]}' ;;
esac
END
  chmod +x "$folder/weir"
}

test_usage() {
  expect_exit "an interface that isn't there: names those that are" 1 "there are: " \
    "$run" weir-none
  expect_exit "... among them lo" 1 " lo" "$run" weir-none
  expect_exit "seconds below the range" 64 "'3': give a whole number from 4 to 600" \
    "$run" lab --seconds 3
  expect_exit "seconds above the range" 64 "'601': give" "$run" --seconds 601
  expect_exit "seconds without a value" 64 "'': give" "$run" --seconds
  expect_exit "an unknown option" 64 "unknown '--fast'" "$run" --fast
  expect_exit "two interfaces" 64 "run.sh INTERFACE" "$run" lo lo
}

# As on a busy machine: seconds between the command, the change and the answer.
write_slow_weir() {
  cat >"$folder/weir" <<END
#!/bin/sh
[ "\$1" = set ] || exec "$LAB_ROOT/build/weir" "\$@"
sleep 1
"$LAB_ROOT/build/weir" "\$@" || exit 1
sleep 1
END
  chmod +x "$folder/weir"
}

# However many a busy machine sent.
every_packet_passes() {
  "$run" --without-weir --seconds 4 >"$folder/lab" &&
    grep -qE ' ([1-9][0-9]*) of \1 flood packets passed$' "$folder/lab"
}

test_lab() {
  check "the lab without weir: every flood packet passes" every_packet_passes
  write_idle_weir
  expect_exit "a weir that limits nothing breaks the promise" 1 \
    "BROKEN  the flooder got at most" env WEIR="$folder/weir" "$run" --seconds 4
  write_slow_weir
  expect_exit "a change that comes late breaks no promise" 0 "kept    it got no less" \
    env WEIR="$folder/weir" "$run" --seconds 6
  expect_exit "a weir that doesn't start is said so" 1 "weir did not start" \
    env WEIR=/bin/false "$run" --seconds 4
  check "no lab is left" no_lab_left
}

# Labs have the process id of their script; other labs may be running.
no_lab_left() {
  local name pid

  for name in /run/netns/weir-*; do
    pid=${name#/run/netns/weir-}
    pid=${pid%-?}
    [ ! -e "$name" ] || kill -0 "$pid" 2>/dev/null || return 1
  done
}

need_root
test_usage
test_lab
rm -rf "$folder"
finish
