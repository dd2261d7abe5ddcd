# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154
# Groups of guest.sh: what this machine's kernel may not have: VLAN devices, bonds, libxdp's
# dispatcher.

# write_device_config INTERFACE [MODE]
write_device_config() {
  cat >"$CONFIG" <<END
version: 1
ledger: {keys: 4096}
interfaces:
  - {name: $1, mode: ${2:-native}}
limits:
  - {name: per-ip, match: {proto: udp, to_port: 9000}, key: source, bucket: {$slow, burst: 50}}
  - name: arrives
    match: {hook: tc-ingress, proto: udp, to_port: 9001}
    key: source
    bucket: {$slow, burst: 30}
  - name: tagged
    match: {vlan: 100, proto: udp, to_port: 9000}
    key: none
    bucket: {rate: unlimited}
  - name: tagged-tc
    match: {hook: tc-ingress, vlan: 100, proto: udp, to_port: 9000}
    key: none
    bucket: {rate: unlimited}
END
}

# vlan_devices SIDE LAST: wsrv.100 or wcli.100 with 10.88.0.LAST, and an 802.1q device 400 on an
# 802.1ad device 300 with 10.89.0.LAST.
vlan_devices() {
  local ns dev=$LAB_IF_S

  [ "$1" = s ] || dev=$LAB_IF_C
  ns=$(lab_ns "$1")
  or_give_up ip -n "$ns" -batch - <<END
link add link $dev name $dev.100 type vlan id 100
link add link $dev name $dev.300 type vlan protocol 802.1ad id 300
link add link $dev.300 name $dev.400 type vlan id 400
addr add 10.88.0.$2/24 dev $dev.100
addr add 10.89.0.$2/24 dev $dev.400
link set $dev.100 up
link set $dev.300 up
link set $dev.400 up
END
}

# answered ADDRESS TO: of 100 requests by the kernel's own stack, over its VLAN devices.
answered() {
  spawn client c "$LAB_TOOLS/client" --to "$2" --port 9000 --from "$1" --rate 50 --seconds 2 \
    --wait 20
  await client
  last client .answered
}

# Tags in the frame; the same source without a tag has the same bucket.
test_vlan_frames() {
  flow c "to=$LAB_SERVER4,from=10.77.1.1,port=9000,frames=200,vlan=100"
  expect_count "one tag, native XDP" per-ip 50 200
  flow c "to=$LAB_SERVER4,from=10.77.1.1,port=9000,frames=10"
  expect_count "no tag, the same source" per-ip 50 210
  flow c "to=$LAB_SERVER4,from=10.77.1.2,port=9000,frames=200,vlan=300,vlan=400"
  expect_count "two tags, native XDP" per-ip 100 410
  flow c "to=$LAB_SERVER4,from=10.77.1.1,port=9001,frames=200,vlan=100"
  expect_count "one tag, tc-ingress" arrives 30 200
  flow c "to=$LAB_SERVER4,from=10.77.1.2,port=9001,frames=200,vlan=300,vlan=400"
  expect_count "two tags, tc-ingress" arrives 60 400
}

# What the kernel's VLAN devices send. With offload the peer gets the tag beside the frame: XDP
# doesn't see it, the addresses it does; TC sees both.
test_vlan_devices() {
  local before

  expect_between "one tag by a device: so many answers" "$(answered 10.88.0.2 10.88.0.1)" 50 54
  expect_count "one tag, beside the frame" per-ip 150 510
  before=$(count tagged-tc admitted)
  expect_between "TC sees the tag" "$before" 100 200
  or_give_up ip -n "$LAB_NS_C" addr add 10.88.0.3/24 dev "$LAB_IF_C.100"
  or_give_up in_ns c ethtool -K "$LAB_IF_C" txvlan off >/dev/null
  before=$(count tagged admitted)
  expect_between "offload off: so many answers" "$(answered 10.88.0.3 10.88.0.1)" 50 54
  expect_count "one tag, in the frame" per-ip 200 610
  expect_equal "XDP sees the tag now" $(($(count tagged admitted) - before)) \
    $(($(count per-ip admitted) - 150))
  expect_between "two tags by devices: so many answers" "$(answered 10.89.0.2 10.89.0.1)" 50 54
  expect_count "two tags, in the frame" per-ip 250 710
}

# On the VLAN device itself there is no native XDP.
test_on_vlan_device() {
  write_device_config "$LAB_IF_S.100" auto
  start_here "weir on a VLAN device"
  expect_equal "it is generic there" "$(json '.interfaces[0].attached' show interfaces)" generic
  expect_between "so many answers" "$(answered 10.88.0.2 10.88.0.1)" 50 54
  expect_count "generic XDP on a VLAN device" per-ip 50 100
  end_here "on a VLAN device"
}

group_vlan() {
  vlan_devices s 1
  vlan_devices c 2
  write_device_config "$LAB_IF_S"
  start_sink --only udp --echo yes
  start_here "weir below VLAN devices"
  test_vlan_frames
  test_vlan_devices
  end_here "VLANs"
  expect_nothing_left "VLANs"
  test_on_vlan_device
  stop sink
}

# --- a bond ---------------------------------------------------------------------------------

group_bond() {
  local mac

  or_give_up ip -n "$LAB_NS_S" -batch - <<END
link add bond0 type bond mode active-backup
link add bsrv type veth peer name bcli netns $LAB_NS_C
link set bsrv master bond0
link set bond0 up
END
  or_give_up ip -n "$LAB_NS_C" link set bcli up
  mac=$(ip -n "$LAB_NS_S" -j link show bond0 | jq -r '.[0].address')
  write_device_config "$LAB_IF_S"
  sed -i "s/^  - {name: $LAB_IF_S.*/&\n  - {name: bond0, mode: native}/" "$CONFIG"
  start_here "weir on a bond"
  expect_equal "native XDP on a bond" "$(xdp_mode bond0)" xdp
  flow c "to=$LAB_SERVER4,from=10.77.1.1,port=9000,frames=200" bcli "$mac"
  expect_count "a bond's frames, native XDP" per-ip 50 200
  expect_between "counted as the bond's, not the first interface's" \
    "$(json '.interfaces[1].traffic.xdp | .limits.packets + .refused.packets' show interfaces)" \
    200 220
  flow c "to=$LAB_SERVER4,from=10.77.1.1,port=9001,frames=200" bcli "$mac"
  expect_count "tc-ingress of a bond" arrives 30 200
  end_here "bond"
  expect_equal "bond: no program is left" "$(xdp_id bond0) $(xdp_id bsrv)" "0 0"
  ip -n "$LAB_NS_S" link del bond0
  ip -n "$LAB_NS_S" link del bsrv
}

# --- libxdp's dispatcher --------------------------------------------------------------------

open_files() {
  find "/proc/${LAB_PID[weir]}/fd" -type l | wc -l
}

is_shared() {
  json '.interfaces[0].dispatcher' show interfaces
}

# denied FRAMES: how many of them come through to a port that the other program denies.
denied() {
  spawn other s "$LAB_TOOLS/sink" --port 9003 --only udp
  wait_for 20 grep -q ready "$LAB_DIR/other.out"
  flow c "to=$LAB_SERVER4,from=10.77.1.4,port=9003,frames=$1"
  sleep 1
  stop other
  last other '.per_source["10.77.1.4"].udp // 0'
}

load_filter() {
  or_give_up in_ns s xdp-filter load "$LAB_IF_S" -m native -f udp
  or_give_up in_ns s xdp-filter port 9003 -m dst -p udp
}

# From 6.12 on the kernel lets weir in without its RST alone.
expect_mute() {
  local times=0

  ! at_least 6 12 || times=1
  expect_equal "show interfaces says what it can't there" \
    "$(json '.interfaces[0].reason' show interfaces | grep -c 'refuse: reset. drops')" "$times"
  expect_equal "the start says so once" \
    "$(grep -c 'dispatcher: .refuse: reset. drops' "$LAB_DIR/weir.err")" "$times"
}

# The other program came first.
test_second_in_dispatcher() {
  local files

  expect_equal "xdp-filter alone denies its port" "$(denied 100)" 0
  start_here "weir beside xdp-filter"
  expect_equal "both are in one dispatcher" "$(is_shared)" true
  expect_mute
  ask 1 200
  expect_count "weir limits" per-ip 50 200
  files=$(open_files)
  expect_equal "xdp-filter denies" "$(denied 100)" 0
  sleep 5
  expect_equal "the controller's looks lose no descriptors" "$(open_files)" "$files"
  test_changes_in_dispatcher
  test_gate_in_dispatcher
  test_restart_in_dispatcher
  end_here "beside xdp-filter"
  check "the program of xdp-filter is still there" test "$(xdp_id)" != 0
  expect_equal "and denies" "$(denied 100)" 0
}

test_changes_in_dispatcher() {
  sed -i 's/burst: 50/burst: 80/' "$CONFIG"
  check "reload, in the dispatcher" weir reload
  ask 2 200
  expect_count "a burst that a reload raised" per-ip 130 400
  check "set, in the dispatcher" weir set per-ip burst=120
  ask 3 200
  expect_count "a burst that set raised" per-ip 250 600
  expect_equal "xdp-filter denies after both" "$(denied 100)" 0
}

test_gate_in_dispatcher() {
  start_sink --only tcp
  check "a connection is let in" hold 1
  check "a second is not" eval '! connects 5'
  expect_between "and refused" "$(count conns refused)" 1 20
  stop hold
  stop sink
}

test_restart_in_dispatcher() {
  kill_weir
  ask 3 100
  expect_count "after kill -9, nobody there" per-ip 250 700
  start_here "a start after kill -9, in the dispatcher"
  expect_equal "it is in the dispatcher" "$(is_shared)" true
  expect_mute
  ask 3 100
  expect_count "it adopts what is there" per-ip 250 800
  expect_equal "xdp-filter still denies" "$(denied 100)" 0
}

# The other one goes first.
test_last_in_dispatcher() {
  start_here "weir beside xdp-filter again"
  or_give_up in_ns s xdp-filter unload "$LAB_IF_S"
  expect_equal "the other gone: its port is open" "$(denied 100)" 100
  ask 1 200
  expect_count "weir limits on" per-ip 80 200
  end_here "last in the dispatcher"
  expect_nothing_left "both gone"
}

# weir came first.
test_first_in_dispatcher() {
  start_here "weir alone"
  expect_equal "alone it is in a dispatcher too" "$(is_shared)" true
  load_filter
  expect_equal "xdp-filter beside weir denies its port" "$(denied 100)" 0
  ask 1 200
  expect_count "weir limits on" per-ip 80 200
  or_give_up in_ns s xdp-filter unload "$LAB_IF_S"
  expect_equal "the other gone: its port is open" "$(denied 100)" 100
  ask 1 100
  expect_count "weir still limits" per-ip 80 300
  end_here "alone in the dispatcher"
  expect_nothing_left "alone in the dispatcher"
}

# Without libxdp's file weir stands alone.
test_without_dispatcher_file() {
  export LIBXDP_OBJECT_PATH=$LAB_DIR/none
  start_here "weir without libxdp's dispatcher"
  expect_equal "it stands alone" "$(is_shared) $(xdp_mode)" "false xdp"
  ask 1 200
  expect_count "and limits" per-ip 80 200
  end_here "without libxdp's dispatcher"
  expect_nothing_left "without libxdp's dispatcher"
  unset LIBXDP_OBJECT_PATH
}

# Where the dispatcher takes weir without its RST alone, weir by itself stays out of it.
test_first_alone() {
  start_here "weir alone"
  expect_equal "it stands alone" "$(is_shared) $(xdp_mode)" "false xdp"
  check "xdp-filter is kept out" eval '! load_filter_too'
  ask 1 200
  expect_count "and weir limits" per-ip 80 200
  end_here "alone"
  expect_nothing_left "alone"
}

load_filter_too() {
  in_ns s xdp-filter load "$LAB_IF_S" -m native -f udp >/dev/null 2>&1
}

group_dispatcher() {
  write_device_config "$LAB_IF_S"
  cat >>"$CONFIG" <<END
  - name: conns
    match: {proto: tcp, to_port: 9000}
    key: source
    gate: {limit: 1, refuse: reset}
END
  load_filter
  test_second_in_dispatcher
  test_last_in_dispatcher
  if at_least 6 12; then test_first_alone; else test_first_in_dispatcher; fi
  test_without_dispatcher_file
}
