#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Runs shellcheck over every script of the tree; one test a script.

set -u
cd "$(dirname "$0")/.." || exit 2

passed=0
failed=0
while IFS= read -r script; do
  if shellcheck -x "$script"; then
    passed=$((passed + 1))
  else
    echo "FAIL shellcheck $script"
    failed=$((failed + 1))
  fi
done < <(find .ci scripts tests packaging -type f \( -name '*.sh' -o -path .ci/run \) \
  2>/dev/null | sort)
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
