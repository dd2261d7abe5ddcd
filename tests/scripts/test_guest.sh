#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# The short form of scripts/kernels/test.sh: on the oldest kernel that weir supports, the one of
# Debian 12, every program passes the verifier within its budget, and weir limits real packets.

# shellcheck source-path=SCRIPTDIR source=../net/lib.sh disable=SC2317
. "$(dirname "$0")/../net/lib.sh"

kernels=$LAB_ROOT/scripts/kernels

need_root
expect_exit "a version that is none" 1 "not '6.x'" "$kernels/get-kernel.sh" 6.x
"$LAB_ROOT/scripts/deps.sh" qemu-system-x86 busybox-static kmod file xz-utils zstd xdp-tools ||
  { skip "weir on 6.1" "qemu can't be installed"; finish; }
if ! "$kernels/get-kernel.sh" 6.1 "${WEIR_KERNELS:-$LAB_ROOT/build/kernels}"; then
  skip "weir on 6.1" "the archive gave no kernel 6.1"
  finish
fi
closing=$(TIMEOUT=540 "$kernels/test.sh" --groups verifier,traffic 6.1 |
  tee /dev/stderr | tail -n 1)
if [[ $closing =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
  LAB_PASSED=$((LAB_PASSED + BASH_REMATCH[1]))
  LAB_FAILED=$((LAB_FAILED + BASH_REMATCH[2]))
else
  fail "weir on 6.1" "no count: $closing"
fi
finish
