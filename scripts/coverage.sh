#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Which lines of user/lib and user/controller the tests run. Builds a copy of the tree for gcov
# under build/coverage, runs the tests there and prints a line a file, the least covered first.
# A file under 90% is a failure. The last line is `N passed, N failed`.
#
#   coverage.sh                 all of unit, vectors, kernel and net: takes as long as they do
#   coverage.sh unit kernel     only these groups
#
# What is killed with -9 takes its counts with it, so tests end a controller so only where that is
# their point. tests/net/test_faults.sh does nothing else: it is left out, since gcov's own writes
# at an end are hundreds of steps more to kill it at. Groups that are left out show as lines that
# nothing runs. Some tests are red in such a build (paced ones, and those that link libweir.a by
# hand): the verdict is on the lines alone.

set -u -o pipefail
cd "$(dirname "$0")/.." || exit 2

bar=90
copy=build/coverage
# Other optimisation, other guesses of what could be cut short: the build proper is strict.
flags="-O1 -g --coverage -fprofile-update=atomic -Wno-format-truncation"
scripts/deps.sh && scripts/deps.sh gcovr || exit 2
[ $# != 0 ] || set -- unit vectors kernel net

mkdir -p "$copy"
git ls-files -z | tar -c --null -T - | tar -x -C "$copy" || exit 2
find "$copy" -name '*.gcda' -delete
rm "$copy/tests/net/test_faults.sh"
export LDLIBS=--coverage CFLAGS="$flags"
make -s -C "$copy" -j2 all || exit 2
(cd "$copy" && scripts/test.sh "$@")

gcovr -r "$copy" --object-directory "$copy/build" --filter "$copy/user/lib/" \
  --filter "$copy/user/controller/" --json-summary-pretty -o "$copy/coverage.json" \
  --html-details "$copy/coverage.html" >/dev/null || exit 2
jq -r --argjson bar $bar '
  (.files | sort_by(.line_percent)[] | "\(if .line_percent >= $bar then "ok" else "FAIL" end) "
    + "\(.filename) \(.line_percent)% of \(.line_total) lines"),
  "all: \(.line_percent)% of \(.line_total) lines; by line: build/coverage/coverage.html",
  "\([.files[] | select(.line_percent >= $bar)] | length) passed, "
    + "\([.files[] | select(.line_percent < $bar)] | length) failed"' "$copy/coverage.json"
jq -e --argjson bar $bar 'all(.files[]; .line_percent >= $bar)' "$copy/coverage.json" >/dev/null
