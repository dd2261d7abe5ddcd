#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# The Debian packages: built from a copy of this tree, clean by lintian; installed, started,
# upgraded, removed and purged in an overlay of this system, with namespaces of their own, so that
# nothing of it reaches the machine. No systemd is in there: the test runs the unit's ExecStart.

# shellcheck source-path=SCRIPTDIR source=../net/lib.sh disable=SC2016,SC2317
. "$(dirname "$0")/../net/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../net/overlay.sh
. "$(dirname "$0")/../net/overlay.sh"

work=
weir_pid=

# --- outside: the build ---------------------------------------------------------------------

build_packages() {
  mkdir -p "$work/build/weir"
  (cd "$LAB_ROOT" && git ls-files -z --cached --others --exclude-standard |
    xargs -0 tar -c --ignore-failed-read 2>/dev/null) | tar -x -C "$work/build/weir"
  (cd "$work/build/weir" && CCACHE_NOHASHDIR=1 \
    DEB_BUILD_OPTIONS="parallel=2 noautodbgsym" timeout 500 nice \
    dpkg-buildpackage -us -uc -b) >"$work/build.log" 2>&1
}

test_build() {
  if build_packages; then
    pass "dpkg-buildpackage"
  else
    fail "dpkg-buildpackage" "$(tail -n 30 "$work/build.log")"
    finish
  fi
  expect_equal "lintian: no error, no warning" \
    "$(lintian --allow-root --fail-on none "$work"/build/*.changes 2>&1)" ""
}

# repack NAME SED-SCRIPT FILE...: the package again, its control files and FILEs changed.
repack() {
  local name=$1 script=$2 file

  shift 2
  rm -rf "$work/repack"
  dpkg-deb -R "$work"/build/weir_*.deb "$work/repack"
  for file in "$@"; do sed -i "$script" "$work/repack/$file"; done
  dpkg-deb --root-owner-group -b "$work/repack" "$work/build/$name.deb" >/dev/null
}

# --- inside ---------------------------------------------------------------------------------

program() {
  ip -j -d link show eth0 | jq '.[0].xdp.prog.id // 0'
}

# The unit's ExecStart with its capabilities and group.
start() {
  local unit=$OVERLAY/lib/systemd/system/weir.service caps

  caps=$(sed -n 's/^CapabilityBoundingSet=//p' "$unit" | tr 'A-Z ' 'a-z,' | sed 's/cap_/+/g')
  mkdir -p "$OVERLAY/run/weir" "$OVERLAY/var/lib/weir" # as systemd does
  : >"$work/weir.log"
  # shellcheck disable=SC2046 # words of the unit
  chroot "$OVERLAY" setpriv --regid weir --clear-groups --no-new-privs --inh-caps=-all \
    "--bounding-set=-all,$caps" $(sed -n 's/^ExecStart=//p' "$unit") >"$work/weir.log" 2>&1 &
  weir_pid=$!
  wait_for 20 grep -q ^ready: "$work/weir.log" || fail "it starts" "$(cat "$work/weir.log")"
}

ended() {
  ! kill -0 "$weir_pid" 2>/dev/null
}

end() {
  kill "$weir_pid"
  wait "$weir_pid"
}

install_quietly() {
  DEBIAN_FRONTEND=noninteractive inside dpkg --force-confdef --force-confold -i "$@" \
    >"$work/dpkg.log" 2>&1 </dev/null || fail "dpkg -i $*" "$(cat "$work/dpkg.log")"
}

test_install() {
  local version

  # shellcheck disable=SC2046 # words
  install_quietly $(cd "$OVERLAY" && ls tmp/libweir*.deb tmp/weir_*.deb)
  version=$(inside dpkg-query -W -f '${Version}' weir)
  expect_equal "one version: package, program, library" \
    "$(inside weir version -j | jq -r .version) $(inside pkg-config --modversion weir)" \
    "$version $version"
  check "sysusers made the group" inside getent group weir
  check "the service is enabled" \
    test -L "$OVERLAY/etc/systemd/system/multi-user.target.wants/weir.service"
  check "the default configuration is valid" inside weir check
  check "man 8 weir" inside man -w 8 weir
  check "man 5 weir.yaml" inside man -w 5 weir.yaml
  cat >"$OVERLAY/tmp/try.c" <<'END'
#include <weir/weir.h>
int main(void)
{
	struct weir_bucket bucket = weir_bucket_new(1, 1, 0);

	return !(weir_bucket_take(&bucket, 0, 1) && !weir_bucket_take(&bucket, 0, 1));
}
END
  check "a program of libweir-dev compiles and runs" inside sh -c \
    'cc -o /tmp/try /tmp/try.c $(pkg-config --cflags --libs weir) && /tmp/try'
}

test_start() {
  sed -i 's/^interfaces: .*/interfaces: [{name: eth0}]/' "$OVERLAY/etc/weir/weir.yaml"
  start
  check "eth0 is limited" test "$(program)" != 0
  expect_equal "members of the group may use it" "$(stat -c '%a %G' \
    "$OVERLAY/run/weir/weir.sock" | sed "s/UNKNOWN/weir/")" "660 weir"
  check "weir set --save" inside weir set per-ip rate=50pps --save
}

upgrade_is_kept() {
  local id

  id=$(program)
  install_quietly "/tmp/$1.deb"
  expect_equal "$1: the same program is on eth0" "$(program)" "$id"
  check "$1: the configuration is the operator's" grep -q 'name: eth0}\]' \
    "$OVERLAY/etc/weir/weir.yaml"
}

test_upgrade() {
  upgrade_is_kept weir-2
  check "an upgrade leaves the controller to systemd" kill -0 "$weir_pid"
  end
  upgrade_is_kept weir-3
  start
  expect_equal "the next controller adopts: rate" \
    "$(inside weir show per-ip -j | jq '.limits[0].settings.rate')" 50
  check "... and eth0 is limited" test "$(program)" != 0
  install_quietly /tmp/weir-abi.deb
  expect_equal "of another layout: the limits go, the old program takes them" "$(program)" 0
  check "... and says so" grep -q "can't adopt the limits" "$work/dpkg.log"
  check "... and the controller has ended" wait_for 10 ended
}

test_remove() {
  start
  check "limited again" test "$(program)" != 0
  check "dpkg -r" inside dpkg -r weir
  expect_equal "removed: no limit is left" "$(program)" 0
  check "... nor a controller" wait_for 10 ended
  check "... but the configuration" test -e "$OVERLAY/etc/weir/weir.yaml"
  install_quietly /tmp/weir-2.deb
  start
  end
  check "dpkg -P, the controller down" inside dpkg -P weir libweir-dev libweir0
  expect_equal "no limit is left" "$(program)" 0
  expect_equal "purged: nothing of it is left" "$(cd "$work/over/upper" &&
    find . -path '*weir*' ! -type c ! -path './var/log/*' ! -path './var/cache/*' \
      ! -path './var/lib/dpkg/*' ! -path './tmp/*' ! -path "./work/*"; ls "$OVERLAY/run/weir" \
      "$OVERLAY/sys/fs/bpf/weir" 2>/dev/null)" ""
}

run_inside() {
  overlay_make "$work"
  cp "$work"/build/*.deb "$OVERLAY/tmp"
  test_install
  test_start
  test_upgrade
  test_remove
  finish
}

# --- main -----------------------------------------------------------------------------------

if [ "${1:-}" = --inside ]; then
  work=$2
  run_inside
fi
need_root
need dpkg-buildpackage dpkg-dev
need dh debhelper
need lintian
need scdoc
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
test_build
repack weir-2 's/^Version: .*/Version: 99.1/; s/20kpps/30kpps/' DEBIAN/control etc/weir/weir.yaml
repack weir-3 's/^Version: .*/Version: 99.2/' DEBIAN/control
repack weir-abi 's/^Version: .*/Version: 99.3/; s/"\$abi" != "[0-9]*"/"$abi" != 999/' \
  DEBIAN/control DEBIAN/preinst
in_overlay "$work" --inside "$work" >"$work/log" 2>&1
grep -v 'passed, ' "$work/log"
LAB_PASSED=$((LAB_PASSED + $(grep -c ^ok "$work/log")))
LAB_FAILED=$((LAB_FAILED + $(grep -c ^FAIL "$work/log")))
check "the inner part came to its end" grep -q 'passed, ' "$work/log"
rm -rf --one-file-system "$work"
finish
