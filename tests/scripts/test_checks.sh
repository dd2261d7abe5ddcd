#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# The scripts that judge the rest: each rule of check-layers.sh goes red on a tree that breaks
# it, and test.sh counts right on trees of made-up parts.

# shellcheck source-path=SCRIPTDIR source=../net/lib.sh disable=SC2317
. "$(dirname "$0")/../net/lib.sh"

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
spdx='// SPDX-License-Identifier: GPL-2.0'

# put FILE LINE...: a file of the tree, its license on top.
put() {
  local file=$tree/$1

  shift
  mkdir -p "$(dirname "$file")"
  printf '%s\n' "$spdx" "$@" >"$file"
}

clean_tree() {
  rm -rf "${tree:?}"/*
  put include/weir/bucket.h '#include <stdint.h>'
  put user/lib/x.h ''
  put user/lib/x.c '#include "lib/x.h"' '#include <bpf/libbpf.h>' '#include "weir_bpf.skel.h"'
  put bpf/weir.bpf.c '#include "admit.bpf.h"' '#include <bpf/bpf_helpers.h>'
  put bpf/admit.bpf.h '#include <weir/bucket.h>'
  put tests/unit/test_bucket.c ''
  put tests/kernel/test_bucket.c ''
  put docs/limiters.md '## Bucket'
}

# red RULE FILE:LINE: the tree as it is breaks this one rule, at this place.
red() {
  local out

  out=$("$LAB_ROOT/scripts/check-layers.sh" "$tree")
  if grep -q "^$2: " <<<"$out" && [ "$(grep '^FAIL' <<<"$out")" = "FAIL $1" ]; then
    pass "red: $1 ($2)"
  else
    fail "red: $1 ($2)" "$out"
  fi
  clean_tree
}

# green NAME: the tree as it is breaks none.
green() {
  local out

  if out=$("$LAB_ROOT/scripts/check-layers.sh" "$tree"); then pass "$1"; else fail "$1" "$out"; fi
  clean_tree
}

test_layers() {
  local apart="bpf and user never include each other"
  local alone="include/weir includes nothing of either"
  local whole="a limiter has its tests and its heading"

  clean_tree
  green "a clean tree passes"
  put bpf/admit.bpf.h '#include <weir/bucket.h>' '#include "lib/x.h"'
  red "$apart" bpf/admit.bpf.h:3
  put bpf/admit.bpf.h '#include <weir/bucket.h>' '#include "weir_bpf.skel.h"'
  red "$apart" bpf/admit.bpf.h:3
  put user/lib/x.c '#include "../../bpf/admit.bpf.h"'
  red "$apart" user/lib/x.c:2
  put user/lib/x.c '# include <bpf/admit.bpf.h>'
  red "$apart" user/lib/x.c:2
  put include/weir/bucket.h '#include "lib/x.h"'
  red "$alone" include/weir/bucket.h:2
  put user/lib/x.h '#include "x.c"'
  red "no .c is included from a header" user/lib/x.h:2
  rm "$tree/tests/kernel/test_bucket.c"
  red "$whole" include/weir/bucket.h:1
  rm "$tree/tests/unit/test_bucket.c"
  put bpf/admit.bpf.h 'weir_bucket_step(tat);'
  red "$whole" include/weir/bucket.h:1
  put docs/limiters.md '## Sliding' 'the bucket is elsewhere'
  red "$whole" include/weir/bucket.h:1
  rm "$tree/tests/kernel/test_bucket.c"
  put bpf/admit.bpf.h ''
  green "a limiter without a kernel side owes no kernel test"
}

test_looks() {
  local long

  clean_tree
  # shellcheck disable=SC2046 # one argument a line is meant
  put bpf/weir.bpf.c $(seq 79)
  red "BPF entry points are under 80 lines" bpf/weir.bpf.c:80
  # shellcheck disable=SC2046
  put user/lib/x.c $(seq 499)
  red "files are under 500 lines" user/lib/x.c:500
  printf -v long '\t%093d' 1
  put user/lib/x.c "$long"
  red "lines fit 100 columns" user/lib/x.c:2
  printf -v long '\t%091dé' 1
  put user/lib/x.c "$long"
  green "a hundred characters fit, whatever their bytes"
  put user/lib/x.c '        int x;'
  red "C is indented by tabs" user/lib/x.c:2
  put user/lib/x.c 'int x; '
  red "no trailing space" user/lib/x.c:2
  echo 'int x;' >"$tree/user/lib/x.c"
  red "every source names its license" user/lib/x.c:1
}

# part NAME BODY: a made-up unit test of the tree.
part() {
  mkdir -p "$tree/build/tests/unit" "$tree/tests"
  printf '#!/bin/sh\n%s\n' "$2" >"$tree/build/tests/unit/$1"
  chmod +x "$tree/build/tests/unit/$1"
}

# totals NAME EXIT LINE TEXT: test.sh over the made-up parts ends so and says TEXT on the way.
totals() {
  local out code=0

  out=$(WEIR_TEST_ROOT=$tree WEIR_PART_SECONDS=1 "$LAB_ROOT/scripts/test.sh" unit 2>&1) || code=$?
  if [ "$code" = "$2" ] && [ "$(tail -n 1 <<<"$out")" = "$3" ] && [[ $out == *"$4"* ]]; then
    pass "test.sh: $1"
  else
    fail "test.sh: $1" "exit $code: $out"
  fi
  rm -rf "${tree:?}"/*
}

test_totals() {
  export WEIR_STRICT=0

  rm -rf "${tree:?}"/*
  mkdir "$tree/build"
  totals "no part at all" 1 "0 passed, 0 failed" ""
  part a 'echo "2 passed, 0 failed"'
  part b 'echo "3 passed, 0 failed"'
  totals "adds up" 0 "5 passed, 0 failed" "unit/b"
  part a 'echo "  x.c:3: 1 == 2"; echo "FAIL s/t"; echo "2 passed, 1 failed"; exit 1'
  totals "shows a failure and its detail" 1 "2 passed, 1 failed" "x.c:3: 1 == 2"
  part a 'printf half; echo "FAIL s/t"; echo "2 passed, 1 failed"; exit 1'
  totals "shows the end where a failure has no line" 1 "2 passed, 1 failed" "halfFAIL s/t"
  part a 'echo "2 passed, 0 failed"'
  part b 'echo about to; kill -SEGV $$'
  totals "a crash is a failure" 1 "2 passed, 1 failed" "exit 139 without a count"
  part a 'echo "2 passed, 0 failed"; exit 1'
  totals "a count that belies the exit status" 1 "2 passed, 1 failed" "exit 1 though"
  part a 'echo "0 passed, 0 failed"'
  totals "a part that ran nothing" 1 "0 passed, 1 failed" "ran nothing"
  part a 'echo "1 passed, 0 failed"; exec sleep 20'
  totals "a part that hangs" 1 "1 passed, 1 failed" "ended after 1 s"
}

test_skips() {
  local body='echo "skip s/t: no fish: here"; echo "1 passed, 0 failed"'

  export WEIR_STRICT=0
  part a "$body"
  totals "a skip is shown" 0 "1 passed, 0 failed" "unit/a: skip s/t: no fish: here"
  export WEIR_STRICT=1
  part a "$body"
  totals "in CI it fails" 1 "1 passed, 1 failed" "FAIL skip s/t: no fish: here"
  part a "$body"
  printf '# none\n\nno bird\nno fish\n' >"$tree/tests/known-skips"
  totals "unless the reason is known" 0 "1 passed, 0 failed" "unit/a: skip s/t: no fish: here"
  export WEIR_STRICT=0
}

# What the made-up test.sh says; it fails in every run but a clone's first.
write_soaked() {
  rm -rf "${tree:?}"/* "$tree/.git"
  mkdir "$tree/scripts"
  cp "$LAB_ROOT/scripts/soak.sh" "$tree/scripts/"
  cat >"$tree/scripts/test.sh" <<'END'
#!/bin/sh
mkdir -p build/log
[ ! -e build/before ] || { echo "  unit/a: FAIL exit 1"; echo "$*: 0 passed, 1 failed"; exit 1; }
touch build/before
echo "$*: 1 passed, 0 failed"
END
  chmod +x "$tree/scripts/test.sh"
  git -C "$tree" init -q && git -C "$tree" add scripts &&
    git -C "$tree" -c user.name=weir -c user.email=weir@localhost commit -qm soaked
}

test_soak() {
  local soak=$tree/scripts/soak.sh

  need git
  write_soaked
  expect_exit "soak.sh: two runs side by side" 0 "ok run 2: unit: 1 passed, 0 failed" \
    "$soak" 2 2 unit
  write_soaked
  expect_exit "soak.sh: runs that fail are counted" 1 $'\n1 passed, 2 failed' "$soak" 3 1 unit
  expect_exit "soak.sh: and show what failed" 1 $'\n      unit/a: FAIL exit 1' "$soak" 2 1 unit
  expect_exit "soak.sh: no runs" 64 "'0': give a whole number of runs from 1" "$soak" 0
  expect_exit "soak.sh: too many at once" 64 "'21': give" "$soak" 20 21
}

test_usage() {
  expect_exit "test.sh: an unknown group" 64 "no group 'unti'" "$LAB_ROOT/scripts/test.sh" unti
  expect_exit "deps.sh: an unknown option" 64 "unknown '-q'" "$LAB_ROOT/scripts/deps.sh" -q
  expect_exit "deps.sh: --check names what is missing" 1 "weir-no-such-package" \
    "$LAB_ROOT/scripts/deps.sh" --check weir-no-such-package
  expect_exit "deps.sh: --check is quiet about what is there" 0 "" \
    "$LAB_ROOT/scripts/deps.sh" --check bash
}

test_layers
test_looks
test_totals
test_skips
test_soak
test_usage
rm -rf "$tree"
finish
