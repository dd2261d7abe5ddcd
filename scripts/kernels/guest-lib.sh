# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
# What the groups of guest.sh share, on top of the net tests' lab.

# No token comes back while a test runs.
slow="rate: 1/min"

# at_least MAJOR MINOR: this kernel.
at_least() {
  local major minor

  IFS=.- read -r major minor _ < <(uname -r)
  [ "$major" -gt "$1" ] || { [ "$major" = "$1" ] && [ "$minor" -ge "$2" ]; }
}

# start_here NAME: weir by $CONFIG, ready or a failure.
start_here() {
  spawn weir s "$WEIR" run -c "$CONFIG" --overrides "$LAB_DIR/overrides.json"
  wait_for 300 weir_ready_or_ended
  if grep -q ^ready: "$LAB_DIR/weir.err"; then
    pass "$1"
  else
    fail "$1" "$(cat "$LAB_DIR/weir.err")"
    finish
  fi
}

# end_here NAME: everything of weir goes, and no program of it stays in the kernel.
end_here() {
  local ids

  ids=$(own_programs)
  expect_between "$1: programs of weir in the kernel" "$(wc -w <<<"$ids")" 1 10
  weir stop --detach >/dev/null || fail "$1: stop --detach" "exit $?"
  await weir
  # shellcheck disable=SC2086 # one id a word
  check "$1: none after stop --detach" wait_for 60 are_gone $ids
}

# Ids of the programs that use this weir's board.
own_programs() {
  local board

  board=$(bpftool -j map show pinned "$WEIR_PINS/weir_board" | jq .id)
  bpftool -j prog show |
    jq -r --argjson board "$board" '.[] | select(.map_ids // [] | index($board)) | .id'
}

are_gone() {
  local id

  for id; do ! bpftool prog show id "$id" >/dev/null 2>&1 || return 1; done
}

expect_nothing_left() {
  expect_equal "$1: no program is left" "$(xdp_id)" 0
  check "$1: no pin is left" test ! -e "$WEIR_PINS" -a ! -e "$WEIR_PINS-new"
  expect_equal "$1: no filter and no qdisc is left" "$(filters ingress; filters egress
    in_ns s tc qdisc show dev "$LAB_IF_S" | grep clsact)" ""
  check "$1: no socket is left" test ! -e "$WEIR_SOCKET"
}

# filters ingress|egress: those on the server's interface.
filters() {
  in_ns s tc filter show dev "$LAB_IF_S" "$1"
}

# flow SIDE OPTIONS [INTERFACE TO-MAC]: frames out of that side's interface; no more than 200, for
# which the other's ring has room should its CPU stand still.
flow() {
  local side=$1 to=s dev=${3:-$LAB_IF_C}

  [ "$side" = c ] || { to=c; dev=${3:-$LAB_IF_S}; }
  in_ns "$side" timeout 60 "$LAB_TOOLS/flood" -i "$dev" --seconds 40 \
    --flow "mac=${4:-$(lab_mac $to)},rate=0,$2" >/dev/null
}

# count NAME FIELD: of a limit.
count() {
  json ".limits[0].$2" show "$1"
}

has_counted() {
  [ "$(count "$1" 'admitted + .limits[0].refused')" -ge "$2" ] 2>/dev/null
}

# expect_count NAME LIMIT ADMITTED SENT: all were counted, and so many passed; one more a minute.
# On the way out the tool may try again what was refused.
expect_count() {
  local admitted

  wait_for 20 has_counted "$2" "$4"
  admitted=$(count "$2" admitted)
  expect_between "$1: as many pass as the limit grants" "$admitted" "$3" $(($3 + 4))
  expect_between "$1: the rest is refused" "$(count "$2" refused)" $(($4 - ${admitted/null/0})) \
    $(($4 - ${admitted/null/0} + 4))
}
