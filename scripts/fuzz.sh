#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Runs every fuzzer (tests/fuzz) for FUZZ_SECONDS (300), one after another, from the committed
# corpus and what earlier runs have found new (build/fuzz/new). Says a line for each, where the
# input of a finding is and what it was; exit 1 when anything was found.
#
#   fuzz.sh                 all;  make fuzz does the same
#   fuzz.sh control http    these
#
# An input that was found becomes a regression test: fix, copy it to tests/fuzz/corpus/fuzz_NAME
# (test.sh runs all of that first) or write the unit test that shows it, and commit both.

set -u -o pipefail
cd "$(dirname "$0")/.." || exit 2

seconds=${FUZZ_SECONDS:-300}
found=0
pid=

# run_one NAME: its own process, so that what it breaks is its own.
run_one() {
  local name=$1 folder log extra=() code=0 runs new

  folder=build/fuzz/new/fuzz_$name
  log=build/fuzz/fuzz_$name.log
  mkdir -p "$folder" build/fuzz/found
  rm -f "build/fuzz/found/fuzz_$name-"*
  [ ! -f "tests/fuzz/fuzz_$name.dict" ] || extra=(-dict="tests/fuzz/fuzz_$name.dict")
  # By default a slow input is one of 1200 s, and memory may grow to 2 GB.
  nice -n 10 "build/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/found/fuzz_$name-" "${extra[@]}" \
    "$folder" "tests/fuzz/corpus/fuzz_$name" >"$log" 2>&1 &
  pid=$!
  wait "$pid" || code=$?
  pid=
  runs=$(awk '/stat::number_of_executed_units/ { print $2 }' "$log")
  new=$(find "$folder" -type f | wc -l)
  if [ "$code" = 0 ]; then
    printf '%-12s %10s inputs, nothing found, %s kept as new\n' "$name" "${runs:-?}" "$new"
    return
  fi
  found=$((found + 1))
  printf '%-12s FOUND something (exit %s), its output is in %s:\n' "$name" "$code" "$log"
  grep -m 3 -E 'SUMMARY|ERROR: |runtime error' "$log" | sed 's/^/    /'
  find build/fuzz/found -name "fuzz_$name-*" -exec echo '    input: {}' \;
}

main() {
  local name names=("$@")

  case $seconds in
    '' | *[!0-9]* | 0)
      echo "fuzz.sh: FUZZ_SECONDS '$seconds': give whole seconds above 0" >&2
      exit 64
      ;;
  esac
  if [ $# = 0 ]; then
    for name in tests/fuzz/fuzz_*.c; do
      name=${name##*/fuzz_}
      names+=("${name%.c}")
    done
  fi
  for name in "${names[@]}"; do
    [ -f "tests/fuzz/fuzz_$name.c" ] || {
      echo "fuzz.sh: there is no fuzzer '$name': see tests/fuzz/fuzz_*.c" >&2
      exit 64
    }
  done
  # A signal ends the one that runs too.
  trap '[ -z "$pid" ] || kill "$pid"; exit 130' INT TERM HUP
  make -s -j2 fuzz-targets || exit 2
  for name in "${names[@]}"; do run_one "$name"; done
  echo "${#names[@]} fuzzers, $seconds s each, $found found something"
  [ "$found" = 0 ]
}

main "$@"
