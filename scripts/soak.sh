#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Runs the tests again and again, some runs side by side in clones of this repository, so that each
# is under the others' load. A line a run; the last line is `N passed, N failed`, in runs.
#
#   soak.sh [RUNS [AT_ONCE [GROUP...]]]    20 runs, 3 at once, of all groups of scripts/test.sh that
#                                          time can change: unit vectors kernel net other
#
# What a run said is build/soak/run-N.log, what the parts of a failed one said build/soak/run-N/.

set -u -o pipefail
cd "$(dirname "$0")/.." || exit 2

runs=${1:-20}
at_once=${2:-3}
groups=("${@:3}")
[ ${#groups[@]} != 0 ] || groups=(unit vectors kernel net other)
soak=$PWD/build/soak
workers=()

# need_number VALUE WHAT MOST
need_number() {
  if [[ $1 =~ ^[1-9][0-9]{0,3}$ ]] && [ "$1" -le "$3" ]; then return; fi
  echo "soak.sh: '$1': give a whole number of $2 from 1 to $3" >&2
  exit 64
}

# one_run N CLONE
one_run() {
  local log=$soak/run-$1.log began=$SECONDS closing verdict=ok code=0

  (cd "$soak/$2" && exec scripts/test.sh "${groups[@]}") >"$log" 2>&1 &
  trap 'kill -TERM $! 2>/dev/null; wait $!; exit 143' TERM
  wait $! || code=$?
  closing=$(tail -n 1 "$log")
  if [ "$code" != 0 ]; then
    verdict=FAIL
    rm -rf "$soak/run-$1"
    cp -r "$soak/$2/build/log" "$soak/run-$1"
  fi
  echo "$verdict run $1: $closing, $((SECONDS - began)) s, load $(cut -d' ' -f1 /proc/loadavg)"
  [ "$code" = 0 ] || grep -E '[1-9][0-9]* failed  |^ .*FAIL' "$log" | sed 's/^/    /'
  return "$code"
}

# worker N: every AT_ONCE-th run, in a clone of its own. Each begins with another group, so that the
# runs aren't all at the same test, which may want most of a machine.
worker() {
  local run failed=0 turn=$((($1 - 1) % ${#groups[@]}))

  groups=("${groups[@]:turn}" "${groups[@]:0:turn}")
  for ((run = $1; run <= runs; run += at_once)); do
    one_run "$run" "$1" || failed=$((failed + 1))
  done
  exit "$failed"
}

end_workers() {
  kill -TERM "${workers[@]}" 2>/dev/null
  wait
  exit 130
}

main() {
  local i failed=0

  need_number "$runs" runs 1000
  need_number "$at_once" "runs at once" 20
  rm -rf "$soak"
  mkdir -p "$soak"
  [ ! -d ../shared ] || ln -s "$(realpath ../shared)" "$soak/shared"
  for ((i = 1; i <= at_once; i++)); do git clone -q . "$soak/$i" || exit 2; done
  trap end_workers INT TERM HUP
  for ((i = 1; i <= at_once; i++)); do
    worker "$i" &
    workers+=($!)
  done
  for i in "${workers[@]}"; do
    wait "$i" || failed=$((failed + $?))
  done
  echo "$((runs - failed)) passed, $failed failed"
  [ "$failed" = 0 ]
}

main "$@"
