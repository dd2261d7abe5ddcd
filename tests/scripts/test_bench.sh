#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# The benchmark still runs and says what it promises. Speed is never judged here.

# shellcheck source-path=SCRIPTDIR source=../net/lib.sh disable=SC2317
. "$(dirname "$0")/../net/lib.sh"

bench=$LAB_ROOT/scripts/bench.sh
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# Each row, refused and admitted, with figures above 0 in all its columns.
has_rows() {
  local verdict row

  for verdict in admitted refused; do
    for row in 1 1k 128k 1m zipf; do
      awk -v verdict="$verdict" -v row="$row" '$1 == verdict && $2 == row {
        found = 1
        for (i = 4; i <= 10; i++) if (!($i > 0)) bad = 1
      } END { exit !found || bad }' "$out" || return 1
    done
  done
}

has_policies() {
  local policy

  for policy in limits-1 limits-16 limits-256 bucket sliding period allow-1k allow-1m deny-1k \
    deny-1m aggregate svc-udp svc-ack svc-other svc-syn; do
    awk -v policy="$policy" '$2 == policy && $8 > 0 { found = 1 } END { exit !found }' "$out" ||
      return 1
  done
}

has_bars() {
  [ "$(grep -cE '^bar [a-z0-9-]+ (-|-?[0-9.]+) [0-9.]+ un(judged|measured)$' "$out")" = 12 ]
}

has_peers() {
  awk '$1 == 1000 { for (i = 2; i <= 7; i++) good += $i > 0 } END { exit good != 6 }' "$out"
}

need_root
check "a quick run ends well" timeout 120 "$bench" --quick >"$out"
grep -E '^(ok|FAIL)' "$out"
check "it measures every row" has_rows
check "it measures every policy" has_policies
check "it names every bar and judges none" has_bars
expect_exit "an unknown row" 64 "no row '2k': give some of 1,1k" "$bench" --rows 1,2k
expect_exit "no rounds" 64 "--rounds '0': give a whole number from 1 to 99" "$bench" --rounds 0
check "services: a short run ends well" timeout 120 "$bench" services --services 10 \
  --connections 2000 --sources 500 --seconds 2 >"$out"
grep -E '^(ok|FAIL)' "$out"
check "services: it held them open" \
  grep -q "^10 services, 2000 connections from 500 addresses, 2 seconds, 0 recounts" "$out"
check "services: its bar" grep -qE "^bar controller-cpu-percent [0-9.]+ 1.00 unjudged" "$out"
expect_exit "services: bad number" 64 "--sources '0': give a whole number from 1 to 60000" \
  "$bench" services --sources 0
check "peers: a short run ends well" timeout 120 "$bench" peers --rounds 1 --seconds 1 \
  --sources 1000 >"$out"
grep -E '^(ok|FAIL)' "$out"
check "peers: every figure" has_peers
expect_exit "peers: bad number" 64 "--sources '0': give a whole number from 1 to 1000000" \
  "$bench" peers --sources 0
expect_exit "an unknown option" 64 "usage: bench" "$bench" --fast
finish
