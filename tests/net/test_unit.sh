#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# packaging/weir.service: its ExecStart with exactly its capabilities, its group, no new privileges
# and a read-only system does all that weir does; its ExecReload refuses a bad file. /etc, /run,
# /var/lib and the bpffs are this test's own.

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2119,SC2317
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=weir.sh
. "$(dirname "$0")/weir.sh"

UNIT=$LAB_ROOT/packaging/weir.service
GROUP=daemon # stands for weir, which this machine need not have

# of_unit KEY: its values, one a line.
of_unit() {
  sed -n "s/^$1=//p" "$UNIT"
}

# Before the lab is made, so that its namespaces are in this /run.
own_mounts() {
  local stage

  mount --make-rprivate /
  stage=$(mktemp -d)
  mount -t tmpfs weir "$stage" && cp -a /etc/. "$stage" && mount -n --move "$stage" /etc || exit 2
  rmdir "$stage"
  mount -n -t tmpfs weir /run && mount -n -t tmpfs weir /var/lib || exit 2
  mkdir -p /etc/weir /run/weir /var/lib/weir
  chgrp "$GROUP" /run/weir && chmod 750 /run/weir
}

# as_unit COMMAND...: as systemd would start it, the file system read-only but for what the unit
# may write. The bounding set is what root gets by exec. Doesn't return.
as_unit() {
  local caps

  caps=$(of_unit CapabilityBoundingSet | tr 'A-Z ' 'a-z,' | sed 's/cap_/+/g')
  # shellcheck disable=SC2016 # for the inner shell
  exec unshare --mount bash -c '
    mount --bind /proc/sys /proc/sys
    for folder in / /etc /sys /proc/sys $(mountpoint -q /sys/fs/cgroup && echo /sys/fs/cgroup); do
      mount -o remount,bind,ro "$folder" || exit 2
    done
    exec setpriv --regid "$1" --clear-groups --no-new-privs --inh-caps=-all \
      --bounding-set="-all,$2" -- bash -c "umask $3; exec \"\$@\"" - "${@:4}"' - \
    "$GROUP" "$caps" "$(of_unit UMask)" "$@"
}

# The unit's lines with the weir that was built.
exec_line() {
  of_unit "$1" | sed "s|/usr/bin/weir|$WEIR|"
}

start_unit() {
  # shellcheck disable=SC2046 # words of the unit
  spawn weir s "$0" --as-unit $(exec_line ExecStart)
  wait_for 20 weir_ready_or_ended
  grep -q ^ready: "$LAB_DIR/weir.err" || fail "the unit starts" "$(cat "$LAB_DIR/weir.err")"
}

reload_unit() {
  local line

  while IFS= read -r line; do
    (as_unit bash -c "exec timeout 30 $line") || return
  done < <(exec_line ExecReload)
}

write_unit_config() {
  cat >/etc/weir/weir.yaml <<END
version: 1
ledger: {keys: 4096}
interfaces: [{name: $LAB_IF_S, mode: auto}]
lists: {deny: [198.51.100.0/24]}
limits:
  - name: per-ip
    key: source
    bucket: {rate: $1}
  - name: conns
    match: {proto: tcp, to_port: 8080}
    key: source
    gate: {limit: 2}
  - name: out
    match: {hook: tc-egress, proto: udp}
    key: none
    bucket: {rate: 1gbit}
services:
  - name: web
    match: {proto: tcp, to_port: 8080}
    deadline: 2s
    breaker: {}
    shedder: {cpu: 1000}
    governor: {control: conns, floor: 2}
control: {group: $GROUP}
END
}

quietly() {
  "$@" >/dev/null
}

# What ends for good and what systemd tries again: by the exit status.
test_refusals() {
  local start=("$0" --as-unit "$WEIR" run)

  write_unit_config 1000
  expect_exit "a bad file: not tried again" 1 "has no unit" in_ns s "${start[@]}"
  write_unit_config 1000pps
  sed -i "s/name: $LAB_IF_S/name: none0/" /etc/weir/weir.yaml
  expect_exit "no interface yet: tried again" 2 "none0" in_ns s "${start[@]}"
  write_unit_config 1000pps
  sed -i "s/group: $GROUP/group: adm/" /etc/weir/weir.yaml
  expect_exit "another group: says what to do" 2 "SupplementaryGroups=" in_ns s "${start[@]}"
  expect_equal "the unit says the same" "$(of_unit RestartPreventExitStatus)" "1 64"
  write_unit_config 1000pps
}

test_start() {
  local status

  start_unit
  status=/proc/${LAB_PID[weir]}/status
  expect_equal "capabilities, all sets: BPF, NET_ADMIN, PERFMON" \
    "$(awk '/^Cap(Prm|Eff|Bnd)/ { print $2 }' "$status" | sort -u)" 000000c000001000
  expect_equal "no new privileges" "$(awk '/^NoNewPrivs/ { print $2 }' "$status")" 1
  expect_equal "the socket is the group's" "$(stat -c '%a %G' /run/weir/weir.sock)" "660 $GROUP"
  expect_equal "native XDP" "$(json '.interfaces[0].attached' show)" native
  expect_equal "pins are root's alone" "$(stat -c '%a %U' /sys/fs/bpf/weir)" "700 root"
}

test_commands() {
  check "show" quietly weir show -j
  check "set" quietly weir set per-ip rate=50pps burst=50 --save
  check "... is kept" test -s /var/lib/weir/overrides.json
  start_sink
  start_flood flood 2 "to=$LAB_SERVER4,from=10.77.1.2,rate=1000"
  await flood >/dev/null
  stop sink
  expect_between "... and enforced" "$(received 10.77.1.2)" 100 300
  check "why" quietly weir why 10.77.1.2
  check "top" grep -q 10.77.1.2 <(weir top --once --total)
  check "deny" quietly weir deny add 203.0.113.0/24 for 10m
}

# A server that answers each line after 20 ms; three clients that hold their connection.
test_connections() {
  spawn server s python3 -c '
import socketserver, time
class Answer(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            time.sleep(0.02)
            self.wfile.write(line)
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
Server(("10.77.0.1", 8080), Answer).serve_forever()'
  wait_for 10 is_listening
  spawn clients c python3 -c '
import socket, time
open_, refused = [], 0
for _ in range(3):
    s = socket.socket()
    s.settimeout(1.5)
    try:
        s.connect(("10.77.0.1", 8080))
        open_.append(s)
    except OSError:
        refused += 1
for _ in range(10):
    for s in open_:
        s.sendall(b"x\n")
        s.recv(16)
print(len(open_), refused, flush=True)
time.sleep(30)'
  wait_for 15 grep -q . "$LAB_DIR/clients.out"
  expect_equal "a gate of 2 lets 2 of 3 connections in" "$(cat "$LAB_DIR/clients.out")" "2 1"
  expect_equal "exchanges are seen: 20 answers" \
    "$(wait_for 5 has_exchanges; json '.services[0].ok' show web)" 20
}

is_listening() {
  in_ns s ss -Hlnt 'sport = 8080' | grep -q .
}

has_exchanges() {
  [ "$(json '.services[0].ok' show web)" = 20 ]
}

test_reload() {
  write_unit_config 70pps
  check "ExecReload applies a good file" quietly reload_unit
  write_unit_config 70
  expect_exit "ExecReload refuses a bad one, by name" 1 "rate': '70' has no unit" reload_unit
  check "the policy of before is in force" grep -q per-ip <(weir show limits)
  write_unit_config 70pps
}

test_restart() {
  local admitted

  admitted=$(json '.limits[0].admitted' show per-ip)
  check "a stop leaves the program" stop weir
  check "... on the interface" test "$(xdp_id)" != 0
  start_unit
  expect_between "a restart adopts the counts" "$(json '.limits[0].admitted' show per-ip)" \
    "$admitted" 100000
  check "stop --detach" quietly weir stop --detach
  await weir
  expect_equal "nothing is on the interface" "$(xdp_id)" 0
  check "no pins are left" test ! -e /sys/fs/bpf/weir
}

if [ "${1:-}" = --as-unit ]; then
  as_unit "${@:2}"
fi
if [ "${1:-}" != --inside ]; then
  need_root
  exec unshare --mount "$0" --inside
fi
need setpriv util-linux
need systemd-analyze systemd
own_mounts
weir_lab 4
or_give_up mount --bind "$LAB_DIR/bpf" /sys/fs/bpf
unset WEIR_SOCKET WEIR_PINS
test_refusals
test_start
test_commands
test_connections
test_reload
test_restart
sed "s|/usr/bin/weir|$WEIR|" "$UNIT" >"$LAB_DIR/weir.service"
expect_equal "systemd-analyze verify" \
  "$(systemd-analyze verify --man=no "$LAB_DIR/weir.service" 2>&1)" ""
check "systemd-analyze security: an exposure of at most 2.5" quietly \
  systemd-analyze security --offline=yes --no-pager --threshold=25 "$UNIT"
umount /sys/fs/bpf
finish
