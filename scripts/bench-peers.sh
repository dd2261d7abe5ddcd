#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# weir beside what would be used instead, over a veth pair of its own network namespaces: how many
# packets a second one CPU makes, carries and refuses, by number of sources, each at its limit of
# one packet a day. A bare XDP_DROP is what the pair can do. In turns, medians; a row that refused
# less than 99% of what it got is an error. Needs root and 1 GB of memory.
#
#   bench-peers.sh [--rounds N] [--seconds N] [--sources N]...
#
# 3 rounds of 2 seconds; 10,000, 100,000 and 1,000,000 sources.

# shellcheck source-path=SCRIPTDIR source=../tests/net/lib.sh disable=SC2317
. "$(dirname "$0")/../tests/net/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../tests/net/weir.sh
. "$(dirname "$0")/../tests/net/weir.sh"

rounds=3
seconds=2
sources=()
peers=(drop weir nftables hashlimit)
places=2097152 # of every table
nowhere=10.77.0.99

usage_error() {
  echo "bench-peers.sh: $1" >&2
  exit 64
}

# number NAME VALUE MOST
number() {
  [[ $2 =~ ^[1-9][0-9]{0,6}$ && $2 -le $3 ]] ||
    usage_error "$1 '$2': give a whole number from 1 to $3"
}

parse_arguments() {
  while [ $# != 0 ]; do
    case $1 in
      --rounds) number "$1" "${2:-}" 99 && rounds=$2 ;;
      --seconds) number "$1" "${2:-}" 60 && seconds=$2 ;;
      --sources) number "$1" "${2:-}" 1000000 && sources+=("$2") ;;
      --help) sed -n '3,11s/^# \{0,1\}//p' "$0" && exit 0 ;;
      *) usage_error "unknown '$1': see --help" ;;
    esac
    shift 2
  done
  [ "${#sources[@]}" != 0 ] || sources=(10000 100000 1000000)
}

failed() {
  echo "bench-peers.sh: $1: $2" >&2
  exit 2
}

# --- each peer: on, off, how many it refused -------------------------------------------------

drop_on() {
  ip -n "$LAB_NS_S" link set dev "$LAB_IF_S" xdpdrv obj "$LAB_ROOT/build/bpf/storm.bpf.o" \
    program storm_drop
}

drop_off() {
  ip -n "$LAB_NS_S" link set dev "$LAB_IF_S" xdpdrv off
}

drop_refused() {
  queues xdp_drops
}

weir_on() {
  write_config 1/d 1 native
  sed -i "s/keys: .*}/keys: $places}/" "$CONFIG"
  start_weir
}

weir_off() {
  stop weir && weir stop --detach >/dev/null
}

weir_refused() {
  json '.limits[0].refused' show per-ip
}

nftables_on() {
  in_ns s nft -f - <<END
table netdev peer {
  set sources { type ipv4_addr; size $places; flags dynamic; }
  chain in {
    type filter hook ingress device "$LAB_IF_S" priority 0;
    update @sources { ip saddr limit rate over 1/day burst 1 packets } drop
  }
}
table netdev behind {
  counter passed { }
  chain in {
    type filter hook ingress device "$LAB_IF_S" priority 1; counter name passed
  }
}
END
}

nftables_off() {
  in_ns s nft delete table netdev behind
  in_ns s nft delete table netdev peer
}

nftables_refused() {
  # nft reads all of a table, a million sources too, for any counter in it: so in another.
  echo $(($(queues xdp_packets) -
    $(in_ns s nft -j list table netdev behind | jq '[.nftables[].counter.packets? // 0] | add')))
}

hashlimit_on() {
  in_ns s iptables -t raw -A PREROUTING -i "$LAB_IF_S" -m hashlimit --hashlimit-name peer \
    --hashlimit-mode srcip --hashlimit-above 1/day --hashlimit-burst 1 \
    --hashlimit-htable-size "$places" --hashlimit-htable-max "$places" \
    --hashlimit-htable-expire 3600000 -j DROP
}

hashlimit_off() {
  in_ns s iptables -t raw -F PREROUTING
}

hashlimit_refused() {
  in_ns s iptables -t raw -nvxL PREROUTING | awk '/hashlimit|limit:/ { print $1 }'
}

# --- the measure -----------------------------------------------------------------------------

# queues WHAT: the sum of a figure of the receiving side's queues.
queues() {
  in_ns s ethtool -S "$LAB_IF_S" | awk -v what="_$1:" '
    $1 ~ "^rx_queue_[0-9]+" what { sum += $2 } END { printf "%.0f\n", sum }'
}

# storm SOURCES SECONDS [OPTION...]
storm() {
  in_ns c taskset -c 0 "$LAB_TOOLS/storm" -i "$LAB_IF_C" --to "$nowhere" --mac "$(lab_mac s)" \
    --from 11.0.0.0 --sources "$1" --seconds "$2" "${@:3}"
}

# measure PEER SOURCES: millions of packets refused a second. Each source is learnt first.
measure() {
  local peer=$1 refused carried took

  "${peer}_on" || failed "$peer" "can't be set up"
  storm "$2" 60 --frames $((2 * $2)) >/dev/null || failed storm "see above"
  refused=$("${peer}_refused") carried=$(queues xdp_packets)
  took=$(storm "$2" "$seconds" | jq .took_ns) || failed storm "see above"
  refused=$(($("${peer}_refused") - refused)) carried=$(($(queues xdp_packets) - carried))
  "${peer}_off" || failed "$peer" "can't be taken off"
  if [ "$carried" = 0 ] || [ $((refused * 100)) -lt $((carried * 99)) ]; then
    failed "$peer" "refused $refused of $carried packets from $2 sources"
  fi
  awk -v refused="$refused" -v ns="$took" 'BEGIN { printf "%.3f\n", refused * 1e3 / ns }'
}

median() {
  sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

# row SOURCES: all peers in turns.
row() {
  local count=$1 peer round

  for ((round = 0; round < rounds; round++)); do
    for peer in "${peers[@]}"; do
      measure "$peer" "$count" >>"$LAB_DIR/$peer.$count" || exit
    done
  done
  for peer in "${peers[@]}"; do median <"$LAB_DIR/$peer.$count"; done | xargs | awk \
    -v sources="$count" '{ printf "%9d %7.2f %7.2f %9.2f %10.2f %14.1f %15.1f\n",
      sources, $1, $2, $3, $4, $2 / $3, $2 / $4 }'
}

parse_arguments "$@"
"$LAB_ROOT/scripts/build.sh" build/weir build/tests/{flood,storm} || exit 2
weir_lab 1
# Frames without a program at the far end need its GRO.
in_ns s ethtool -K "$LAB_IF_S" gro on
echo "refused, millions of packets a second, veth, 1 CPU, medians of $rounds rounds of $seconds s"
echo "  sources    drop    weir  nftables  hashlimit  weir/nftables  weir/hashlimit"
for count in "${sources[@]}"; do row "$count"; done
lab_teardown
