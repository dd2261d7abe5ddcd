#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Controllers that are started, reloaded, set and detached all at once and killed at any moment,
# for WEIR_MAYHEM_SECONDS (12): whatever comes of it, the next start limits, and `stop --detach`
# leaves nothing.

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=weir.sh
. "$(dirname "$0")/weir.sh"
# shellcheck source-path=SCRIPTDIR source=faults.sh
. "$(dirname "$0")/faults.sh"

seconds=${WEIR_MAYHEM_SECONDS:-12}

# aside COMMAND...: whatever becomes of it, some moments from now.
aside() {
  (
    trap - EXIT
    sleep "0.$((RANDOM % 900 + 10))"
    exec timeout 10 nsenter --net="/run/netns/$LAB_NS_S" "$WEIR" "$@"
  ) >/dev/null 2>&1 &
  asides+=($!)
}

# A controller, killed some moments later, and what others ask meanwhile.
one_round() {
  local name names=(weir)

  [ $((RANDOM % 4)) -gt 0 ] || names+=(rival)
  for name in "${names[@]}"; do
    spawn "$name" s "$WEIR" run -c "$CONFIG" --overrides "$LAB_DIR/overrides.json"
  done
  case $((RANDOM % 5)) in
    0 | 1) aside stop --detach ;;
    2)
      write_policy "$([ $((RANDOM % 2)) = 0 ] && echo odd || echo even)"
      aside reload
      ;;
    3) aside set other rate=$((RANDOM % 9000 + 1))pps --save ;;
    4)
      aside set other rate=block --confirm 1s
      aside confirm --undo
      ;;
  esac
  sleep "0.$((RANDOM % 900 + 10))"
  for name in "${names[@]}"; do
    kill -KILL "${LAB_PID[$name]}"
    wait "${LAB_PID[$name]}"
    unset "LAB_PID[$name]"
  done 2>/dev/null
}

# make_mayhem: rounds until the time is over.
make_mayhem() {
  local end=$((SECONDS + seconds))

  asides=()
  rounds=0
  while [ "$SECONDS" -lt "$end" ]; do
    one_round
    rounds=$((rounds + 1))
  done
  wait "${asides[@]}"
}

weir_lab 4
need tc iproute2
echo "# seed $WEIR_FAULT_SEED"
write_policy even
flood_anew
make_mayhem
echo "# $rounds rounds"
check "there were rounds" [ "$rounds" -gt 2 ]
start_weir
at="after it"
check "the next start limits" wait_for 10 refuses_more_than "$(total refused)"
note_maps
detach
await weir
expect_equal "and a detach leaves nothing" "$(leftovers)" ""
stop flood
finish
