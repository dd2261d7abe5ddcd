#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Installs what is missing and builds, quietly. Under sudo what was built is its caller's, who could
# not build on, nor clean, what is root's.
#
#   build.sh TARGET...    of the Makefile

set -eu -o pipefail
cd "$(dirname "$0")/.."

scripts/deps.sh
code=0
make -s -j2 "$@" || code=$?
[ -z "${SUDO_UID:-}" ] || chown -R "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" build
exit "$code"
