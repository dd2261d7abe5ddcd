#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# make install into a DESTDIR lays exactly these files, never over a configuration; make uninstall
# takes all but that. The unit and the pkg-config file name the PREFIX.

# shellcheck source-path=SCRIPTDIR source=../net/lib.sh disable=SC2317
. "$(dirname "$0")/../net/lib.sh"

base=$(mktemp -d)
folder=$base/root
trap 'rm -rf "$base"' EXIT
cd "$LAB_ROOT" || exit 2

# build/weir.pc names the PREFIX: `make lib` in the end gives it its own back.
run_make() {
  make -s "$@" DESTDIR="$folder" PREFIX=/opt/weir >"$base/log" 2>&1 ||
    fail "make $*" "$(tail -n 5 "$base/log")"
}

laid() {
  (cd "$folder" && find . -type f -o -type l | sort | sed 's/^..//')
}

wanted() {
  local header

  for header in api backoff breaker bucket deadline gate governor period shedder sliding weir \
    window; do
    echo "opt/weir/include/weir/$header.h"
  done
  find packaging/weir.yaml packaging/*/ -name '*.yaml' -o -name '*.yml' -o -name '*.json' |
    sed 's|.*/|opt/weir/share/doc/weir/examples/|'
  cat <<END
etc/weir/weir.yaml
opt/weir/bin/weir
opt/weir/lib/libweir.a
opt/weir/lib/libweir.so
opt/weir/lib/libweir.so.0
opt/weir/lib/libweir.so.0.1.0
opt/weir/lib/pkgconfig/weir.pc
opt/weir/lib/systemd/system/weir.service
opt/weir/lib/sysusers.d/weir.conf
opt/weir/share/bash-completion/completions/weir
opt/weir/share/fish/vendor_completions.d/weir.fish
opt/weir/share/man/man5/weir.yaml.5
opt/weir/share/man/man8/weir.8
opt/weir/share/zsh/site-functions/_weir
END
}

# What sudo built stays its caller's: a copy of the tree, built on behalf of another user.
test_sudo() {
  local tree=$base/tree

  mkdir "$tree"
  cp -r Makefile include packaging scripts user "$tree"
  SUDO_UID=12345 SUDO_GID=12346 "$tree/scripts/build.sh" build/libweir.a >"$base/log" 2>&1 ||
    fail "build.sh" "$(tail -n 5 "$base/log")"
  check "build.sh builds" test -s "$tree/build/libweir.a"
  expect_equal "all that was built is the caller's of sudo" \
    "$(find "$tree/build" -printf '%U %G\n' | sort -u)" "12345 12346"
  expect_exit "what can't be built is an error" 2 "no_such" \
    env SUDO_UID=12345 SUDO_GID=12346 "$tree/scripts/build.sh" no_such
}

need_root
need scdoc
test_sudo
run_make install
expect_equal "files" "$(laid)" "$(wanted | sort)"
check "the program runs from there" grep -q weir <( "$folder/opt/weir/bin/weir" version)
expect_equal "the unit starts that program" \
  "$(grep -c '/opt/weir/bin/weir' "$folder/opt/weir/lib/systemd/system/weir.service")" 3
expect_equal "... and no other" \
  "$(grep -c '/usr/bin' "$folder/opt/weir/lib/systemd/system/weir.service")" 0
check "the pkg-config file names the prefix" \
  grep -qx 'prefix=/opt/weir' "$folder/opt/weir/lib/pkgconfig/weir.pc"
for page in "$folder"/opt/weir/share/man/man?/*; do
  expect_equal "groff has nothing to say about ${page##*/}" \
    "$(groff -man -ww -Tutf8 "$page" 2>&1 >/dev/null)" ""
done
echo "# mine" >"$folder/etc/weir/weir.yaml"
run_make install
expect_equal "a second install keeps the configuration" \
  "$(cat "$folder/etc/weir/weir.yaml")" "# mine"
run_make uninstall
expect_equal "uninstall leaves the configuration alone" "$(laid)" "etc/weir/weir.yaml"
make -s lib >/dev/null
finish
