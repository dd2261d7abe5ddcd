#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Installs what is missing, builds, measures weir beside bare drop, parsing and a textbook limiter.
# The last lines are the bars: `bar NAME FIGURE LIMIT ok|short`; exits 1 if one is short.
#
#   bench.sh [--rounds N] [--rows LIST] [--quick]    bench.sh --help says what they mean
#   bench.sh services [--connections N]...           the controller's CPU: bench-services.sh --help
#   bench.sh peers [--sources N]...                  nftables, hashlimit: bench-peers.sh --help
#
# It loads programs but attaches none: no traffic is touched. Needs root and 500 MB of memory.

set -eu -o pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
  services | peers) exec "scripts/bench-$1.sh" "${@:2}" ;;
esac
scripts/build.sh build/tests/bench/bench
exec build/tests/bench/bench "$@"
