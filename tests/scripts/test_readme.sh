#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# README.md is true: its runnable commands run as written, in its order, in namespaces where eth0 is
# a veth and /etc, /run and the bpffs are this test's own; its links lead somewhere;
# its table has the commands there are.
#
# A ```sh block is runnable if the line before it is `<!-- runnable -->`, or
# `<!-- runnable: run -->` if it is a controller, which runs on while the next blocks do.

# shellcheck source-path=SCRIPTDIR source=../net/lib.sh disable=SC2317
. "$(dirname "$0")/../net/lib.sh"

readme=$LAB_ROOT/README.md

# split_blocks FOLDER: its runnable blocks as files 01.sh, 02.run, ...
split_blocks() {
  awk -v folder="$1" '
    /^<!-- runnable -->$/ { kind = "sh"; next }
    /^<!-- runnable: run -->$/ { kind = "run"; next }
    /^```sh$/ && kind { out = sprintf("%s/%02d.%s", folder, ++count, kind); next }
    /^```$/ { out = "" }
    { kind = "" }
    out { print > out }' "$readme"
}

# As a child, in namespaces of its own: see the head of this file.
run_blocks() {
  local folder=$1 block run=

  cd "$LAB_ROOT" || exit 2
  mount --make-rprivate /
  mount -t sysfs sysfs /sys && mount -t bpf bpf /sys/fs/bpf || exit 2
  mkdir "$folder.etc" && mount -t tmpfs tmpfs "$folder.etc" && cp -a /etc/. "$folder.etc" &&
    mount --bind "$folder.etc" /etc && mount -t tmpfs tmpfs /run || exit 2
  ip link set lo up
  ip link add eth0 type veth peer name peer0 && ip link set eth0 up || exit 2
  for block in "$folder"/*; do
    case $block in
      *.run)
        bash -e "$block" >"$block.out" 2>&1 &
        run=$!
        wait_for 30 grep -q ^ready: "$block.out" || echo "FAILED $block: never ready"
        ;;
      *) timeout 300 bash -e "$block" >"$block.out" 2>&1 </dev/null || echo "FAILED $block: $?" ;;
    esac
    echo "ran $block"
    # A stop is the controller's end.
    ! grep -q "weir stop" "$block" || wait "$run" || echo "FAILED $block: the controller: $?"
  done
}

test_blocks() {
  local folder out blocks

  folder=$(mktemp -d)
  split_blocks "$folder"
  blocks=$(find "$folder" -type f | wc -l)
  mkdir "$folder/bin"
  # shellcheck disable=SC2016 # for the file
  printf '#!/bin/sh\nexec "$@"\n' >"$folder/bin/sudo"
  chmod +x "$folder/bin/sudo"
  mkdir "$folder/blocks" && mv "$folder"/*.sh "$folder"/*.run "$folder/blocks"
  out=$(PATH=$folder/bin:$PATH timeout 400 unshare --net --mount --pid --fork --mount-proc \
    "$0" --blocks "$folder/blocks" 2>&1)
  expect_equal "all runnable blocks ran" "$(grep -c ^ran <<<"$out")" "$blocks"
  expect_between "there are some" "$blocks" 5 50
  if grep -q FAILED <<<"$out"; then
    fail "every block succeeds" "$(grep FAILED <<<"$out"; tail -n 5 "$folder"/blocks/*.out)"
  else
    pass "every block succeeds"
  fi
  check "the configuration limits eth0 twice" \
    grep -q "limits 2" <(cat "$folder"/blocks/*.out)
  rm -rf "$folder"
}

test_links() {
  local file link broken=

  for file in "$readme" "$LAB_ROOT"/docs/*.md; do
    while IFS= read -r link; do
      [ -e "$(dirname "$file")/$link" ] || broken+=" ${file#"$LAB_ROOT"/}:$link"
    done < <(grep -oE '\]\([^)#:]+\)' "$file" | sed 's/^](//; s/)$//')
  done
  expect_equal "links lead to files" "$broken" ""
}

test_commands() {
  local commands

  commands=$("$LAB_ROOT/build/weir" help |
    awk '/^  [a-z]/ && $1 !~ /^(help|version)$/ { print $1 }' | sort | paste -sd' ')
  expect_equal "the table has every command" "$(grep -oE '^\| `weir [a-z]+' "$readme" |
    sed 's/.* //' | sort | paste -sd' ')" "$commands"
}

if [ "${1:-}" = --blocks ]; then
  run_blocks "$2"
  exit
fi
need_root
test_blocks
test_links
test_commands
finish
