#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Installs what is missing, builds, runs every test. The last line is `N passed, N failed`.
#
#   test.sh                 everything
#   test.sh unit kernel     only these groups, of: static unit vectors kernel net fuzz other
#
# A part is one program or script. It prints `ok NAME`, `FAIL NAME...`, `skip NAME: REASON` lines
# and closes with `N passed, N failed`. One that crashes, takes longer than WEIR_PART_SECONDS
# (600) or prints no count is itself a failure. What a part said is in build/log/.
#
# WEIR_STRICT=1 (CI): a skip is a failure unless tests/known-skips has its reason.

set -u -o pipefail
ROOT=$(cd "${WEIR_TEST_ROOT:-$(dirname "$0")/..}" && pwd) || exit 2
SCRIPTS=$(cd "$(dirname "$0")" && pwd)
cd "$ROOT" || exit 2

groups=(static unit vectors kernel net fuzz other)
part_seconds=${WEIR_PART_SECONDS:-600}
fuzz_seconds=${WEIR_FUZZ_SECONDS:-5}
log_dir=build/log
total_passed=0
total_failed=0
part_pid=

say_part() {
  printf '%-44s %s passed, %s failed  %s s\n' "$1" "$2" "$3" "$4"
}

# A skip's reason is excused when it begins with a line of tests/known-skips.
is_known_skip() {
  local known

  while IFS= read -r known; do
    case $known in '' | '#'*) continue ;; esac
    case $1 in "$known"*) return 0 ;; esac
  done < <(cat tests/known-skips 2>/dev/null)
  return 1
}

# Shows the part's skips; returns how many of them count as failures.
count_skips() {
  local part=$1 log=$2 line reason bad=0

  while IFS= read -r line; do
    reason=${line#skip *: }
    if [ "${WEIR_STRICT:-0}" = 1 ] && ! is_known_skip "$reason"; then
      echo "  $part: FAIL $line (skips count in CI: tests/known-skips)"
      bad=$((bad + 1))
    else
      echo "  $part: $line"
    fi
  done < <(grep '^skip ' "$log")
  return $((bad < 255 ? bad : 255))
}

# judge PART LOG EXIT SECONDS: reads the closing line, adds it up, shows what went wrong.
judge() {
  local part=$1 log=$2 code=$3 seconds=$4 closing passed=0 failed=0 why=

  closing=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
  if [ -n "$closing" ]; then
    read -r passed _ failed _ <<<"$closing"
  fi
  if [ "$code" = 124 ] || [ "$code" = 137 ]; then
    why="ended after $part_seconds s"
  elif [ -z "$closing" ]; then
    why="exit $code without a count"
  elif [ "$code" != 0 ] && [ "$failed" = 0 ] && [ "$passed" != 0 ]; then
    why="exit $code though nothing failed"
  elif [ "$passed" = 0 ] && [ "$failed" = 0 ] && ! grep -q '^skip ' "$log"; then
    why="ran nothing"
  fi
  [ -z "$why" ] || failed=$((failed + 1))
  say_part "$part" "$passed" "$failed" "$seconds"
  if [ "$failed" != 0 ]; then
    [ -z "$why" ] || echo "  $part: FAIL $why; its last lines:"
    show_failures "$log" "$why"
  fi
  count_skips "$part" "$log"
  failed=$((failed + $?))
  total_passed=$((total_passed + passed))
  total_failed=$((total_failed + failed))
}

# The failed tests with the few lines before each, or how the part ended where it names none.
show_failures() {
  local log=$1 why=$2

  if [ -n "$why" ] || ! grep -q '^FAIL' "$log"; then
    tail -n 20 "$log" | sed 's/^/    /'
  else
    grep -B 12 '^FAIL' "$log" | grep -v '^ok ' | sed 's/^/    /'
  fi
}

count_as_one() {
  if [ "$2" = 0 ]; then
    echo "1 passed, 0 failed"
  else
    printf 'FAIL %s: exit %s\n0 passed, 1 failed\n' "$1" "$2"
  fi
}

# run_part NAME COMMAND...: with one_test=1 the program doesn't count, its exit status is a test.
run_part() {
  local part=$1 log code=0 start end

  shift
  log=$log_dir/${part//\//-}.log
  start=$(date +%s%N)
  timeout -k 15 "$part_seconds" "$@" >"$log" 2>&1 </dev/null &
  part_pid=$!
  wait "$part_pid" || code=$?
  part_pid=
  end=$(date +%s%N)
  [ "${one_test:-0}" = 0 ] || count_as_one "$part" "$code" >>"$log"
  judge "$part" "$log" "$code" "$(awk -v ns=$((end - start)) 'BEGIN { printf "%.1f", ns / 1e9 }')"
}

# --- the groups -----------------------------------------------------------------------------

# Programs without the .o, .d and folders beside them.
programs_in() {
  find "$1" -maxdepth 1 -type f -perm -u+x ! -name '*.[od]' 2>/dev/null | sort
}

run_programs() {
  local group=$1 program

  while IFS= read -r program; do
    run_part "$group/$(basename "$program")" "$program"
  done < <(programs_in "build/tests/$group")
}

run_scripts() {
  local group=$1 script

  shift
  for script in "$@"; do
    [ ! -f "$script" ] || run_part "$group/$(basename "$script" .sh)" "$script"
  done
}

run_static() {
  run_scripts static scripts/check-*.sh
}

run_unit() {
  run_programs unit
}

# A file a primitive, each one test.
run_vectors() {
  local program=build/tests/replay-vectors file one_test=1

  for file in tests/vectors/*.txt; do
    [ ! -f "$file" ] || run_part "vectors/$(basename "$file" .txt)" "$program" "$file"
  done
}

run_kernel() {
  run_programs kernel
}

run_net() {
  run_scripts net tests/net/test_*.sh
}

# Each fuzzer for a few seconds, from the committed corpus; what it finds stays in build/.
run_fuzz() {
  local program name corpus one_test=1

  make -s -j2 fuzz-targets || give_up "build of the fuzzers"
  while IFS= read -r program; do
    name=$(basename "$program")
    corpus=tests/fuzz/corpus/$name
    mkdir -p "build/fuzz/new/$name"
    [ -d "$corpus" ] || corpus=
    run_part "fuzz/$name" "$program" -max_total_time="$fuzz_seconds" -artifact_prefix=build/fuzz/ \
      "build/fuzz/new/$name" ${corpus:+"$corpus"}
  done < <(programs_in build/fuzz)
}

run_other() {
  local folder

  for folder in tests/*/; do
    [ "$folder" = tests/net/ ] || run_scripts "$(basename "$folder")" "$folder"test_*.sh
  done
}

# --- main -----------------------------------------------------------------------------------

prepare() {
  # Tools that run this script on a tree of their own bring it built.
  [ -z "${WEIR_TEST_ROOT:-}" ] || return 0
  "$SCRIPTS/build.sh" all || give_up "build"
}

give_up() {
  echo "FAIL $1"
  echo "0 passed, 1 failed"
  exit 1
}

on_signal() {
  if [ -n "$part_pid" ]; then
    kill -TERM "$part_pid" 2>/dev/null
    wait "$part_pid"
  fi
  exit "$1"
}

main() {
  local group

  for group in "$@"; do
    case " ${groups[*]} " in
      *" $group "*) ;;
      *)
        echo "test.sh: no group '$group': give some of ${groups[*]}, or none for all" >&2
        exit 64
        ;;
    esac
  done
  [ $# = 0 ] || groups=("$@")
  trap 'on_signal 130' INT
  trap 'on_signal 143' TERM HUP
  prepare
  mkdir -p "$log_dir"
  for group in "${groups[@]}"; do "run_$group"; done
  echo "$total_passed passed, $total_failed failed"
  [ "$total_failed" = 0 ] && [ "$total_passed" != 0 ]
}

main "$@"
