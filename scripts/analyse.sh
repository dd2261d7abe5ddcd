#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# gcc -fanalyzer, clang-tidy (.clang-tidy) and cppcheck over one C file. Prints what they found
# and exits 1 if that is anything; what the build generated isn't looked at.
#
#   analyse.sh FILE.c COMPILER-FLAGS...    `make static` does it for the files that have changed

set -u -o pipefail
cd "$(dirname "$0")/.." || exit 2
file=$1
shift

# -Wanalyzer-malloc-leak: gcc 12 loses track of an array that is grown, and says that its items
#   leak. LeakSanitizer watches the same code in every unit test.
# -Wanalyzer-null-argument: it takes keys that read_key has filled for NULL.
run_gcc() {
  gcc -fanalyzer -Wno-analyzer-malloc-leak -Wno-analyzer-null-argument -O2 "$@" -c "$file" \
    -o /dev/null 2>&1
}

run_tidy() {
  clang-tidy -quiet "$file" -- "$@" 2>/dev/null | awk '
    /^[^ ].*: (warning|error|note): / { shown = /: note: / ? 0 : !/(^|\/)build\// }
    shown { print }'
}

run_cppcheck() {
  cppcheck -q --enable=warning,performance,portability --inline-suppr --max-configs=1 --std=c11 \
    --include=scripts/cppcheck-macros.h -Iinclude -Iuser -Itests \
    --suppress=missingInclude --suppress=missingIncludeSystem --suppress=toomanyconfigs "$file" 2>&1
}

found=$(run_gcc "$@"; run_tidy "$@"; run_cppcheck)
[ -n "$found" ] || exit 0
printf '%s\n' "$found"
exit 1
