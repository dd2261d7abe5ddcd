# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# The lab of the net tests: source it, call lab_make, test, call finish.
#
#   namespace weir-PID-c                             namespace weir-PID-s
#  ┌──────────────────────────────────┐             ┌──────────────────────────────────┐
#  │ clients                          │    veth     │ server (weir's side)             │
#  │ wcli  10.77.1.1 … 10.77.1.N /16  ├─────────────┤ wsrv  10.77.0.1 /16              │
#  │       fd77:0:1::1 … fd77:0:N::1  │             │       fd77::1 /32                │
#  │       /32                        │             │                                  │
#  │ forged by flood: 10.78.0.0/16,   │             │ routes to 10.78.0.0/16, fd78::/32│
#  │       fd78::/32 (nobody has them)│             │ lead to the clients' side        │
#  └──────────────────────────────────┘             └──────────────────────────────────┘
#
# Each IPv6 address is in a /64 of its own, since that is what weir limits by default. Both
# neighbours are entered by hand, so no ARP or neighbour discovery is among the packets.
# $LAB_DIR is a folder of this run, $LAB_DIR/bpf a BPF file system of this run. All of it goes
# when the script ends, however it ends short of SIGKILL.

set -u -o pipefail

LAB_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
LAB_TOOLS=$LAB_ROOT/build/tests
LAB_NS_S=weir-$$-s
LAB_NS_C=weir-$$-c
LAB_IF_S=wsrv
LAB_IF_C=wcli
LAB_SERVER4=10.77.0.1
LAB_SERVER6=fd77::1
LAB_DIR=
LAB_MADE=0
LAB_PASSED=0
LAB_FAILED=0
declare -A LAB_PID=()

# --- verdicts -------------------------------------------------------------------------------

pass() {
  echo "ok $1"
  LAB_PASSED=$((LAB_PASSED + 1))
}

# fail NAME [DETAIL]
fail() {
  echo "FAIL $1${2:+: $2}"
  LAB_FAILED=$((LAB_FAILED + 1))
}

# skip NAME REASON: not run here, and why; scripts/test.sh counts it as failed in CI unless
# tests/known-skips has the reason.
skip() {
  echo "skip $1: $2"
}

# check NAME COMMAND...: passes if the command succeeds.
check() {
  local name=$1

  shift
  if "$@"; then pass "$name"; else fail "$name" "failed: $*"; fi
}

# expect_between NAME VALUE LOW HIGH: bounds included; fractions allowed; no number fails.
expect_between() {
  if awk -v v="$2" -v low="$3" -v high="$4" 'BEGIN {
      number = v ~ /^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$/
      exit !(number && v + 0 >= low + 0 && v + 0 <= high + 0) }'; then
    pass "$1"
  else
    fail "$1" "'$2' is not from $3 to $4"
  fi
}

# expect_equal NAME VALUE WANTED
expect_equal() {
  if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "'$2' is not '$3'"; fi
}

# expect_exit NAME CODE TEXT COMMAND...: ends with CODE and says TEXT (a part of its output).
expect_exit() {
  local name=$1 want=$2 text=$3 out code=0

  shift 3
  out=$("$@" 2>&1) || code=$?
  if [ "$code" != "$want" ]; then
    fail "$name" "exit $code, not $want: $out"
  elif [[ $out != *"$text"* ]]; then
    fail "$name" "'$text' is not in: $out"
  else
    pass "$name"
  fi
}

# The end of every test: takes the lab down, checks that it is, prints the closing line.
finish() {
  lab_teardown
  [ "$LAB_MADE" = 0 ] || check "the lab left nothing behind" lab_is_gone "$$"
  trap - EXIT
  echo "$LAB_PASSED passed, $LAB_FAILED failed"
  [ "$LAB_FAILED" = 0 ]
  exit
}

# --- what a test needs ----------------------------------------------------------------------

# need COMMAND [PACKAGE]: installs what has the command.
need() {
  command -v "$1" >/dev/null || "$LAB_ROOT/scripts/deps.sh" "${2:-$1}" >&2 ||
    { echo "need: can't get '$1'" >&2; exit 1; }
}

# Ends the test, skipped, unless it may make namespaces.
need_root() {
  [ "$(id -u)" = 0 ] && return
  skip "${0##*/}" "needs root"
  finish
}

# --- the lab --------------------------------------------------------------------------------

# lab_make [CLIENTS]: both namespaces, the pair, addresses, routes. CLIENTS is 4, at most 200.
# What can't be made ends the test.
lab_make() {
  need_root
  need ip iproute2
  need jq
  [ -x "$LAB_TOOLS/flood" ] || { echo "lab: build first (make)" >&2; exit 1; }
  trap lab_on_exit EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  LAB_MADE=1
  LAB_DIR=$(mktemp -d "${TMPDIR:-/tmp}/weir-$$-XXXXXX") || exit 2
  (
    set -e
    mkdir "$LAB_DIR/bpf"
    mount -t bpf "weir-$$" "$LAB_DIR/bpf"
    ip netns add "$LAB_NS_S"
    ip netns add "$LAB_NS_C"
    lab_make_link
    lab_make_addresses "${1:-4}"
  )
  # shellcheck disable=SC2181 # in a condition, set -e would not hold inside
  [ $? = 0 ] || { echo "lab: can't make the namespaces: see above" >&2; exit 2; }
}

# lab_make_addresses CLIENTS: on both sides, with the neighbours and routes of the drawing.
lab_make_addresses() {
  local clients=$1 i mac_s mac_c

  mac_s=$(lab_mac s)
  mac_c=$(lab_mac c)
  {
    echo "addr add $LAB_SERVER4/16 dev $LAB_IF_S"
    echo "addr add $LAB_SERVER6/32 dev $LAB_IF_S nodad"
    for ((i = 1; i <= clients; i++)); do
      echo "neigh replace 10.77.1.$i lladdr $mac_c dev $LAB_IF_S nud permanent"
      echo "neigh replace fd77:0:$i::1 lladdr $mac_c dev $LAB_IF_S nud permanent"
    done
    echo "route add 10.78.0.0/16 via 10.77.1.1 dev $LAB_IF_S"
    echo "route add fd78::/32 via fd77:0:1::1 dev $LAB_IF_S"
  } | ip -n "$LAB_NS_S" -batch -
  {
    for ((i = 1; i <= clients; i++)); do
      echo "addr add 10.77.1.$i/16 dev $LAB_IF_C"
      echo "addr add fd77:0:$i::1/32 dev $LAB_IF_C nodad"
    done
    echo "neigh replace $LAB_SERVER4 lladdr $mac_s dev $LAB_IF_C nud permanent"
    echo "neigh replace $LAB_SERVER6 lladdr $mac_s dev $LAB_IF_C nud permanent"
  } | ip -n "$LAB_NS_C" -batch -
}

# The pair alone. A test that deletes it makes it again by this and lab_make_addresses.
# A queue for every CPU (8 at most), as a NIC with receive-side scaling has: one source's flows
# (flood's ports=N) meet weir on several CPUs at once, and the rings of 256 hold more.
lab_make_link() {
  local queues

  queues=$(nproc)
  [ "$queues" -le 8 ] || queues=8
  ip -n "$LAB_NS_S" link add name "$LAB_IF_S" numtxqueues "$queues" numrxqueues "$queues" \
    type veth peer name "$LAB_IF_C" numtxqueues "$queues" numrxqueues "$queues" \
    netns "$LAB_NS_C"
  ip -n "$LAB_NS_S" link set "$LAB_IF_S" addrgenmode none up
  ip -n "$LAB_NS_C" link set "$LAB_IF_C" addrgenmode none up
  ip -n "$LAB_NS_S" link set lo up
  ip -n "$LAB_NS_C" link set lo up
}

# lab_ns s|c: the namespace's name.
lab_ns() {
  case $1 in
    s) echo "$LAB_NS_S" ;;
    c) echo "$LAB_NS_C" ;;
    *) echo "lab: '$1' is neither s nor c" >&2; exit 1 ;;
  esac
}

# in_ns s|c COMMAND...: by nsenter, which keeps the mounts (`ip netns exec` hides bpffs).
in_ns() {
  local ns

  ns=$(lab_ns "$1")
  shift
  nsenter --net="/run/netns/$ns" "$@"
}

# lab_mac s|c: the interface's address; flood's mac= takes the server's.
lab_mac() {
  local dev=$LAB_IF_S

  [ "$1" = s ] || dev=$LAB_IF_C
  ip -n "$(lab_ns "$1")" -j link show "$dev" | jq -r '.[0].address'
}

# Packets that the pair itself lost on the way to the server: its ring was full. Not weir's.
lab_link_drops() {
  ip -n "$LAB_NS_C" -s -j link show "$LAB_IF_C" | jq '.[0].stats64.tx.dropped'
}

# --- processes of the lab -------------------------------------------------------------------

# spawn NAME s|c COMMAND...: in the background; its output is $LAB_DIR/NAME.out and NAME.err.
spawn() {
  local name=$1 ns

  ns=$(lab_ns "$2")
  shift 2
  # Emptied before the fork: nobody takes an earlier one's words for this one's.
  : >"$LAB_DIR/$name.out" 2>"$LAB_DIR/$name.err"
  nsenter --net="/run/netns/$ns" "$@" >"$LAB_DIR/$name.out" 2>"$LAB_DIR/$name.err" &
  LAB_PID[$name]=$!
}

# await NAME: until it ends by itself; its exit status. A signal to the test interrupts it.
await() {
  local pid=${LAB_PID[$1]} code=0

  wait "$pid" || code=$?
  unset "LAB_PID[$1]"
  [ "$code" = 0 ] || sed "s/^/$1: /" "$LAB_DIR/$1.err" >&2
  return "$code"
}

# stop NAME [SIGNAL]: ends it, TERM by default, and waits for it; its exit status.
stop() {
  kill -s "${2:-TERM}" "${LAB_PID[$1]}"
  await "$1"
}

# wait_for SECONDS COMMAND...: until the command succeeds; fails when the time is over.
wait_for() {
  local end=$(($(date +%s%N) + $1 * 1000000000))

  shift
  until "$@"; do
    [ "$(date +%s%N)" -lt "$end" ] || return 1
    sleep 0.02
  done
}

# start_sink [OPTION...]: the server, on port 9000, ready when this returns. stop sink ends it.
start_sink() {
  spawn sink s "$LAB_TOOLS/sink" --port 9000 "$@"
  wait_for 5 grep -q ready "$LAB_DIR/sink.out" || { fail "sink" "not ready"; finish; }
}

# last NAME FILTER: jq over the last whole line the process printed.
last() {
  grep '}$' "$LAB_DIR/$1.out" | tail -n 1 | jq -rc "$2"
}

# --- the end --------------------------------------------------------------------------------

# A process that has been forked, but is not yet what was spawned, still has our traps: a TERM for
# it must not take the lab down.
lab_on_exit() {
  [ "$BASHPID" = $$ ] || return 0
  trap '' INT TERM HUP
  lab_teardown
}

lab_stop_processes() {
  local pid tries=0

  for pid in "${LAB_PID[@]}"; do
    kill -CONT "$pid" 2>/dev/null
    kill -TERM "$pid" 2>/dev/null
  done
  while [ "$tries" -lt 100 ] && lab_any_alive; do
    sleep 0.02
    tries=$((tries + 1))
  done
  for pid in "${LAB_PID[@]}"; do kill -KILL "$pid" 2>/dev/null; done
  wait 2>/dev/null
  LAB_PID=()
}

lab_any_alive() {
  local pid

  for pid in "${LAB_PID[@]}"; do kill -0 "$pid" 2>/dev/null && return 0; done
  return 1
}

# In this order: what runs, what is left in the namespaces (ours alone), pair, spaces, folder.
lab_teardown() {
  local ns pid

  [ -n "$LAB_DIR" ] || return 0
  lab_stop_processes
  for ns in "$LAB_NS_S" "$LAB_NS_C"; do
    for pid in $(ip netns pids "$ns" 2>/dev/null); do kill -KILL "$pid" 2>/dev/null; done
  done
  ip -n "$LAB_NS_S" link del "$LAB_IF_S" 2>/dev/null
  for ns in "$LAB_NS_S" "$LAB_NS_C"; do ip netns del "$ns" 2>/dev/null; done
  umount "$LAB_DIR/bpf" 2>/dev/null
  rm -rf --one-file-system "$LAB_DIR"
  LAB_DIR=
}

# lab_is_gone PID: nothing is left of the lab of the script with this process id.
lab_is_gone() {
  ! compgen -G "/run/netns/weir-$1-*" >/dev/null &&
    ! compgen -G "${TMPDIR:-/tmp}/weir-$1-*" >/dev/null &&
    ! grep -q "^weir-$1 " /proc/mounts
}
