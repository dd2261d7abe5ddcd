# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# weir in the lab (lib.sh): source it after lib.sh, call weir_lab. Pins, socket and files are
# this run's own, under $LAB_DIR.

WEIR=${WEIR:-$LAB_ROOT/build/weir}

# weir_lab [CLIENTS]: the lab, and weir's environment in it. CONFIG is the file it will run.
weir_lab() {
  [ -x "$WEIR" ] || { echo "weir: build first (make)" >&2; exit 1; }
  lab_make "$@"
  export WEIR_SOCKET=$LAB_DIR/weir.sock WEIR_PINS=$LAB_DIR/bpf/weir
  CONFIG=$LAB_DIR/weir.yaml
}

weir() {
  timeout 30 "$WEIR" "$@"
}

# write_config RATE BURST [MODE [INTERFACE]]: one limit, per-ip, into CONFIG.
write_config() {
  cat >"$CONFIG" <<END
version: 1
ledger: {keys: 4096}
interfaces:
  - {name: ${4:-$LAB_IF_S}, mode: ${3:-auto}}
limits:
  - name: per-ip
    key: source
    bucket: {rate: $1, burst: $2}
END
}

# start_weir: runs CONFIG in the server's namespace; ready when this returns.
start_weir() {
  # An earlier one's "ready" must not be taken for this one's.
  rm -f "$LAB_DIR/weir.err"
  spawn weir s "$WEIR" run -c "$CONFIG" --overrides "$LAB_DIR/overrides.json"
  wait_for 60 weir_ready_or_ended
  grep -q ^ready: "$LAB_DIR/weir.err" || fail "weir starts" "$(cat "$LAB_DIR/weir.err")"
}

weir_ready_or_ended() {
  grep -qs ^ready: "$LAB_DIR/weir.err" || ! kill -0 "${LAB_PID[weir]}" 2>/dev/null
}

# kill_weir: kill -9, and gone when this returns.
kill_weir() {
  kill -KILL "${LAB_PID[weir]}"
  wait "${LAB_PID[weir]}" 2>/dev/null
  unset "LAB_PID[weir]"
}

# json FILTER WEIR-ARGUMENTS...: what jq finds in the command's JSON.
json() {
  local filter=$1

  shift
  weir "$@" -j 2>/dev/null | jq -rc "$filter"
}

# total FIELD: of the limit per-ip.
total() {
  json ".limits[0].$1" show per-ip
}

# start_flood NAME SECONDS FLOW...: in the background, from the clients' side.
start_flood() {
  local name=$1 seconds=$2 flow flows=() mac

  shift 2
  mac=$(lab_mac s)
  for flow in "$@"; do flows+=(--flow "mac=$mac,$flow"); done
  spawn "$name" c "$LAB_TOOLS/flood" -i "$LAB_IF_C" --seconds "$seconds" "${flows[@]}"
}

# received ADDRESS: datagrams that the sink has from it, once it has ended.
received() {
  last sink ".per_source[\"$1\"].udp // 0"
}

# The program on the server's interface, in any mode: its id, 0 for none.
xdp_id() {
  ip -n "$LAB_NS_S" -j -d link show "${1:-$LAB_IF_S}" | jq '.[0].xdp.prog.id // 0'
}

# How it is attached: xdp (native), xdpgeneric, none.
xdp_mode() {
  ip -n "$LAB_NS_S" -j -d link show "${1:-$LAB_IF_S}" |
    jq -r '(.[0].xdp.mode // 0) as $m | ["none", "xdp", "xdpgeneric", "xdpoffload", "multi"][$m]'
}

# or_give_up COMMAND...: what a test can't do without.
or_give_up() {
  "$@" || { echo "weir: can't go on: failed: $*" >&2; exit 2; }
}

# make_strangers: somebody else's programs, that pass everything, pinned in
# $LAB_DIR/bpf/strangers: stranger for XDP, stranger_tc.
make_strangers() {
  cat >"$LAB_DIR/stranger.c" <<'END'
#define PLACED(name) __attribute__((section(name), used))
PLACED("xdp") int stranger(void *ctx) { return 2; }
PLACED("tc") int stranger_tc(void *ctx) { return -1; }
char words[] PLACED("license") = "GPL";
END
  or_give_up clang -O2 -target bpf -c "$LAB_DIR/stranger.c" -o "$LAB_DIR/stranger.o"
  or_give_up mkdir "$LAB_DIR/bpf/strangers"
  or_give_up bpftool prog loadall "$LAB_DIR/stranger.o" "$LAB_DIR/bpf/strangers"
}

# stranger attach|detach xdpgeneric|xdpdrv INTERFACE
stranger() {
  local pin=()

  [ "$1" = detach ] || pin=(pinned "$LAB_DIR/bpf/strangers/stranger")
  or_give_up in_ns s bpftool net "$1" "$2" "${pin[@]}" dev "$3"
}

# A foreign filter on the server's interface, at the hook where ours would be.
stranger_filter() {
  or_give_up in_ns s tc qdisc add dev "$LAB_IF_S" clsact
  or_give_up in_ns s tc filter add dev "$LAB_IF_S" ingress pref 7 bpf da \
    object-pinned "$LAB_DIR/bpf/strangers/stranger_tc"
}
