#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# On the interface: somebody else's program is named and left alone; native, generic and auto,
# and what show says of each; an interface that goes, comes back, is robbed of the program;
# a private mount namespace; a user with three capabilities.

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2317,SC2119
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=weir.sh
. "$(dirname "$0")/weir.sh"

# What show says of the interface.
shown() {
  json ".interfaces[0].$1" show interfaces
}

shown_is() {
  [ "$(shown "$1")" = "$2" ]
}

said() {
  grep -q "$1" "$LAB_DIR/weir.err"
}

end_weir() {
  weir stop --detach >/dev/null || fail "stop --detach" "exit $?"
  await weir
}

run_weir() {
  in_ns s timeout 20 "$WEIR" run -c "$CONFIG" --overrides "$LAB_DIR/overrides.json"
}

expect_nothing_left() {
  expect_equal "$1: no program" "$(xdp_id)" 0
  check "$1: no pins" test ! -e "$WEIR_PINS" -a ! -e "$WEIR_PINS-new"
  check "$1: no socket" test ! -e "$WEIR_SOCKET"
}

# expect_limited NAME: a burst of 300 from a source of its own; 100 pass, the rest is refused.
expect_limited() {
  local before

  before=$(total refused)
  source_last=$((source_last + 1))
  start_flood flood 1 "to=$LAB_SERVER4,from=10.78.3.$source_last,rate=0,frames=300"
  await flood
  expect_between "$1" $(($(total refused) - before)) 190 200
}

# --- A4, A5: somebody else's program --------------------------------------------------------

test_foreign() {
  local mode id

  for mode in xdpgeneric xdpdrv; do
    stranger attach $mode "$LAB_IF_S"
    id=$(xdp_id)
    expect_exit "a foreign program ($mode): the error names it" 2 "id $id, name stranger" run_weir
    expect_equal "it is where it was" "$(xdp_id)" "$id"
    stranger detach $mode "$LAB_IF_S"
    expect_nothing_left "a start beside a foreign program"
  done
}

# One of two interfaces is held by a stranger: the other is limited; freed, it is taken too.
test_foreign_beside() {
  local id

  stranger attach xdpgeneric "$LAB_IF_S"
  id=$(xdp_id)
  or_give_up in_ns s ip link add weird0 type veth peer name weird1
  or_give_up in_ns s ip link set weird0 up
  sed -i "s/^  - {name: $LAB_IF_S.*/&\n  - {name: weird0, mode: auto}/" "$CONFIG"
  start_weir
  expect_equal "show: held by a stranger, and by us" "$(json '[.interfaces[].attached]' show)" \
    '["no","native"]'
  check "show says who it is" grep -q "id $id, name stranger" <<<"$(shown reason)"
  sleep 1.2 # a look
  expect_equal "looks don't touch it" "$(xdp_id)" "$id"
  stranger detach xdpgeneric "$LAB_IF_S"
  check "gone, its place is taken" wait_for 10 shown_is attached native
  expect_limited "and the interface is limited"
  end_weir
  in_ns s ip link del weird0
  write_config 1pps 100
}

# --- A3, A12: modes -------------------------------------------------------------------------

# expect_mode ASKED GOT KERNEL
expect_mode() {
  write_config 1pps 100 "$1"
  start_weir
  expect_equal "mode $1: show" "$(json '.interfaces[0] | [.mode, .attached]' show interfaces)" \
    "[\"$1\",\"$2\"]"
  expect_equal "mode $1: the kernel" "$(xdp_mode)" "$3"
  expect_limited "mode $1 limits"
}

test_modes() {
  expect_mode auto native xdp
  end_weir
  expect_nothing_left "native"
  expect_mode generic generic xdpgeneric
  end_weir
  # A3: in another mode the kernel says it took it off, and leaves it.
  expect_nothing_left "generic"
  expect_mode native native xdp
  write_config 1pps 100 generic
  weir reload >/dev/null || fail "reload into another mode" "exit $?"
  expect_equal "a reload changes the mode" "$(shown attached) $(xdp_mode)" "generic xdpgeneric"
  end_weir
  expect_nothing_left "after a change of mode"
}

# lo's driver has no XDP: native is refused in words, auto takes generic and says so loudly.
test_no_native() {
  write_config 1pps 100 native lo
  expect_exit "native where there is none: why, and what to do" 2 \
    "interface lo: native mode refused: Operation not supported: " run_weir
  expect_nothing_left "a start that failed at the last step"
  write_config 1pps 100 auto lo
  start_weir
  expect_equal "auto: show says what it got" \
    "$(json '.interfaces[0] | [.mode, .attached]' show interfaces)" '["auto","generic"]'
  check "show says why" grep -q "native mode refused" <<<"$(shown reason)"
  check "and the log, loudly" said "limited in GENERIC mode, the slow one: native mode refused"
  end_weir
}

# A12: programs without multi-buffer support are refused by veth above 3506 on the peer. Ours has
# it: native, and every byte of a frame in several buffers counted.
test_mtu() {
  local mtu before

  for mtu in 3507 9000; do
    or_give_up in_ns c ip link set "$LAB_IF_C" mtu $mtu
    or_give_up in_ns s ip link set "$LAB_IF_S" mtu $mtu
    expect_mode native native xdp
    before=$(total admitted_bytes)
    start_flood flood 1 "to=$LAB_SERVER4,from=10.78.4.1,rate=0,frames=10,size=$mtu"
    await flood
    expect_equal "10 frames of $mtu bytes" $(($(total admitted_bytes) - before)) $((10 * mtu))
    or_give_up in_ns s ip link set "$LAB_IF_S" mtu 1500
    end_weir
  done
  or_give_up in_ns c ip link set "$LAB_IF_C" mtu 1500
}

# --- A11, B10: the interface changes under us ------------------------------------------------

test_robbed() {
  local before

  write_config 1pps 100
  start_weir
  before=$(total refused)
  or_give_up in_ns s ip link set dev "$LAB_IF_S" xdp off
  check "xdp off behind our back: attached again" wait_for 5 eval "[ \"\$(xdp_id)\" != 0 ]"
  check "and said" wait_for 5 said "our program was taken off by somebody"
  check "show agrees" wait_for 5 shown_is attached native
  expect_equal "the counts are kept" "$(total refused)" "$before"
  expect_limited "and it limits"
}

test_made_again() {
  local before

  before=$(total refused)
  or_give_up ip -n "$LAB_NS_S" link del "$LAB_IF_S"
  check "the interface is gone: show says so" wait_for 5 shown_is attached no
  or_give_up lab_make_link
  or_give_up lab_make_addresses 4
  check "made again, it is taken" wait_for 10 shown_is attached native
  check "by its new index" shown_is ifindex "$(link_index)"
  check "the counts are kept" test "$(total refused)" -ge "$before"
  expect_limited "and it is limited"
  end_weir
}

# The name goes, the interface stays: what matters is that nobody takes it for gone, and that a
# reload, before or after the file has the new name, lifts nothing.
test_renamed() {
  local id own=$LAB_IF_S LAB_IF_S=$LAB_IF_S

  write_config 1000pps 1000
  cat >>"$CONFIG" <<'END'
  - {name: in, match: {hook: tc-ingress}, key: none, bucket: {rate: 1000pps}}
END
  start_weir
  id=$(xdp_id)
  rename wother
  check "renamed: events say so" wait_for 5 said "interface $own: is called wother now"
  sleep 1.2 # a look
  expect_equal "it stays limited" "$(xdp_id) $(shown attached)" "$id native"
  check "show says its name" grep -q "is called wother now" <<<"$(shown reason)"
  check "at TC too" meets_tc
  expect_exit "a session by it is not cut off" 1 "would cut off the ssh session" \
    env SSH_CONNECTION="10.77.1.1 5022 $LAB_SERVER4 22" "$WEIR" set per-ip rate=block
  weir reload >/dev/null || fail "renamed: reload" "exit $?"
  expect_equal "a reload lifts nothing" "$(xdp_id)" "$id"
  check "nor at TC" meets_tc
  sed -i "s/name: $own,/name: wother,/" "$CONFIG"
  expect_equal "with its new name in the file" "$(weir reload)" "reloaded: limits 2"
  expect_equal "that is its own" "$(shown name) $(shown attached) $(shown reason)" "wother native "
  check "and it is limited" meets_tc
  rename "$own"
  check "renamed back: the same" wait_for 5 said "interface wother: is called $own now"
  rename wother
  check "its own name again" wait_for 5 shown_is reason ""
  rename "$own"
  end_weir
  expect_equal "a detach finds it" "$(xdp_id)" 0
  write_config 1pps 100
}

# rename NEW: as a system does it, while it is down.
rename() {
  or_give_up ip -n "$LAB_NS_S" link set "$LAB_IF_S" down
  or_give_up ip -n "$LAB_NS_S" link set "$LAB_IF_S" name "$1"
  LAB_IF_S=$1
  or_give_up ip -n "$LAB_NS_S" link set "$1" up
}

# Whether packets come to the limit at TC, the second one.
meets_tc() {
  local before

  before=$(json '.limits[1] | .admitted + .refused' show)
  start_flood flood 1 "to=$LAB_SERVER4,from=10.78.4.1,rate=100,frames=20"
  await flood
  [ "$(json '.limits[1] | .admitted + .refused' show)" -ge $((before + 20)) ]
}

link_index() {
  ip -n "$LAB_NS_S" -j link show "$LAB_IF_S" | jq '.[0].ifindex'
}

# --- A15, A16: where and as whom ------------------------------------------------------------

# start_by COMMAND...: weir, by a command that finds its own way into the namespace.
start_by() {
  : >"$LAB_DIR/weir.err" # before the fork, as spawn does it
  "$@" >"$LAB_DIR/weir.out" 2>"$LAB_DIR/weir.err" &
  LAB_PID[weir]=$!
  wait_for 20 weir_ready_or_ended
}

# `ip netns exec` shows an empty /sys/fs/bpf; weir mounts one of its own there.
test_netns_exec() {
  local pins=$WEIR_PINS

  export WEIR_PINS=/sys/fs/bpf/weir-$$
  start_by ip netns exec "$LAB_NS_S" "$WEIR" run -c "$CONFIG" \
    --overrides "$LAB_DIR/overrides.json"
  expect_equal "under ip netns exec" "$(shown attached)" native
  expect_limited "under ip netns exec it limits"
  check "and leaves nothing in the machine's /sys/fs/bpf" test ! -e "$WEIR_PINS"
  end_weir
  expect_equal "under ip netns exec: the program is off" "$(xdp_id)" 0
  export WEIR_PINS=$pins
}

# as_user COMMAND...: in the server's namespace, no root, three capabilities, and no right to
# raise RLIMIT_MEMLOCK, which older kernels want and this one doesn't.
as_user() {
  local caps=-all,+bpf,+net_admin,+perfmon

  in_ns s timeout 30 prlimit --memlock=65536:65536 setpriv --reuid 65534 --regid 65534 \
    --clear-groups --inh-caps "$caps" --ambient-caps "$caps" --bounding-set "$caps" "$@"
}

start_as_user() {
  start_by as_user "$WEIR" run -c "$CONFIG" --overrides "$LAB_DIR/user/overrides.json"
}

test_capabilities() {
  local before id code=0

  export WEIR_PINS=$LAB_DIR/bpf/user/weir WEIR_SOCKET=$LAB_DIR/user/weir.sock
  start_as_user
  expect_equal "with CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON alone" "$(shown attached)" native
  expect_limited "it limits"
  before=$(total refused)
  id=$(xdp_id)
  sleep 1.2 # a look
  check "its own program is no stranger's" shown_is attached native
  as_user "$WEIR" stop >/dev/null || fail "stop" "exit $?"
  await weir
  start_as_user
  expect_equal "a second start adopts what is there" \
    "$(shown attached) $(total refused)" "native $before"
  check "and replaces the program" test "$(xdp_id)" != "$id"
  as_user "$WEIR" stop >/dev/null || fail "stop" "exit $?"
  await weir
  as_user "$WEIR" stop --detach >/dev/null || code=$?
  expect_equal "a detach without a controller" "$code $(xdp_id)" "0 0"
  check "leaves no pins" test ! -e "$WEIR_PINS"
}

# A folder of that user's, in files and among the pins.
make_user_folders() {
  or_give_up chmod 711 "$LAB_DIR"
  or_give_up chmod 711 "$LAB_DIR/bpf"
  or_give_up mkdir "$LAB_DIR/user" "$LAB_DIR/bpf/user"
  or_give_up chown 65534:65534 "$LAB_DIR/user" "$LAB_DIR/bpf/user"
}

weir_lab 4
make_strangers
make_user_folders
source_last=0
write_config 1pps 100
test_foreign
test_foreign_beside
test_modes
test_no_native
test_mtu
test_robbed
test_made_again
test_renamed
test_netns_exec
test_capabilities
finish
