#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Runs the static analysers over every C file of user/; one test a file.

set -u
cd "$(dirname "$0")/.." || exit 2

passed=0
failed=0
make -s -k -j2 static 2>&1 | grep -v '^make'
while IFS= read -r file; do
  if make -s -q "build/static/${file%.c}.ok"; then
    passed=$((passed + 1))
  else
    echo "FAIL static $file"
    failed=$((failed + 1))
  fi
done < <(make -s list-static)
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
