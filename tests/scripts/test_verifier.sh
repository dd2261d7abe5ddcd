#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# What this kernel's verifier walks for each program, against tests/kernel/verifier-budget.txt.

# shellcheck source-path=SCRIPTDIR source=../net/lib.sh disable=SC2317
. "$(dirname "$0")/../net/lib.sh"

verify=$LAB_TOOLS/verify
budget=$LAB_ROOT/tests/kernel/verifier-budget.txt
objects=("$LAB_ROOT"/build/bpf/weir.bpf.o "$LAB_ROOT"/build/bpf/connections.bpf.o)
other=$(mktemp)
trap 'rm -f "$other"' EXIT

need_root
check "every program is within its budget" timeout 120 "$verify" --budget "$budget" "${objects[@]}"
sed 's/^weir_xdp .*/weir_xdp 1000/' "$budget" >"$other"
expect_exit "one over its budget is red" 1 "more than the 1000 of $other" \
  timeout 60 "$verify" --budget "$other" "${objects[0]}"
sed '/^weir_xdp /d' "$budget" >"$other"
expect_exit "one without a budget is red" 1 "$other has no line for it" \
  timeout 60 "$verify" --budget "$other" "${objects[0]}"
echo "weir_xdp many" >"$other"
expect_exit "a budget that is no number is named" 64 "$other:1: not a line" \
  "$verify" --budget "$other" "${objects[0]}"
rm -f "$other"
finish
