#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# get-kernel.sh VERSION [DIR]        download and unpack the newest Debian kernel VERSION.*
# get-kernel.sh --unpack DIR DEB...  unpack kernel packages that are already here
#
# VERSION is a prefix such as 5.10, 6.1, 6.12, 6.18 or 6.12.43, or `newest`; DIR defaults to
# ./kernels.
# Prints the unpacked tree's path: TREE/vmlinuz, TREE/config, TREE/lib/modules/RELEASE.
# Needs no root.  It keeps apt lists of its own under DIR and installs nothing; the mirror
# comes from this machine's apt sources.
#
# FLAVOUR  cloud-amd64 (default: smaller, has all that XDP and tc need) or amd64
# SUITES   where to look, e.g. "sid"; by default chosen from VERSION
set -euo pipefail

die() { echo "get-kernel: $*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || die "no $1 (apt-get install $2)"; }
PATH=$PATH:/usr/sbin:/sbin
flavour=${FLAVOUR:-cloud-amd64}

# unpack TREE DEB...: one tree, whatever the package layout (single image, or split
# into linux-base/-binary/-modules as from 6.19 on; lib or usr/lib).
unpack() {
  local tree=$1 deb mods release; shift
  need depmod kmod
  rm -rf "$tree.new"; mkdir -p "$tree.new"
  for deb; do dpkg-deb -x "$deb" "$tree.new" || die "cannot unpack $deb"; done
  [ -d "$tree.new/lib" ] || ln -s usr/lib "$tree.new/lib"
  mods=$(echo "$tree.new"/lib/modules/*)
  [ -d "$mods" ] || die "not exactly one lib/modules/RELEASE in: $*"
  release=${mods##*/}
  place "$tree.new" vmlinuz "boot/vmlinuz-$release" "lib/modules/$release/vmlinuz"
  place "$tree.new" config "boot/config-$release" "lib/modules/$release/config"
  depmod -b "$tree.new" "$release" || die "depmod failed for $release"
  echo "$release" >"$tree.new/release"
  rm -rf "$tree"; mv "$tree.new" "$tree"
}

# place TREE NAME PATH...: link TREE/NAME to the first PATH that is there.
place() {
  local tree=$1 name=$2 p; shift 2
  for p; do
    if [ -f "$tree/$p" ]; then ln -sf "$p" "$tree/$name"; return; fi
  done
  die "no $name in the packages"
}

if [ "${1:-}" = --unpack ]; then
  [ $# -ge 3 ] || die "usage: get-kernel.sh --unpack DIR DEB..."
  unpack "$2" "${@:3}"
  exit
fi

if [ $# -lt 1 ] || [ $# -gt 2 ]; then die "usage: get-kernel.sh VERSION [DIR]"; fi
version=$1
[[ $version =~ ^(newest|[0-9]+(\.[0-9]+)*)$ ]] ||
  die "VERSION is a number such as 6.1 or 6.12.43, or newest, not '$version'"
mkdir -p "${2:-kernels}"
dir=$(cd "${2:-kernels}" && pwd)
need apt-get apt

case $version in
  5.10 | 5.10.*) default="bullseye bullseye-security" ;;
  6.1 | 6.1.*) default="bookworm bookworm-security" ;;
  6.12 | 6.12.*) default="trixie trixie-security" ;;
  newest) default="trixie-backports sid" ;;
  *) default="trixie-backports" ;;
esac
suites=${SUITES:-$default}

# The machine's own mirrors: the main one, and the security one where there is one.
main='' security=''
# shellcheck disable=SC2016 # apt expands these
while read -r uri release; do
  case $release in
    *-security) security=${security:-$uri} ;;
    *) main=${main:-$uri} ;;
  esac
done < <(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages')
[ -n "$main" ] || die "no package mirror in this machine's apt sources"

# A private apt state: own sources, lists, cache and (empty) status.
state=$dir/.apt-$version
mkdir -p "$state"/{lists/partial,cache/archives/partial,debs}
: >"$state/status"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
options=arch=amd64
[ ! -f $keyring ] || options+=" signed-by=$keyring"
: >"$state/sources.list"
for suite in $suites; do
  uri=$main
  if [[ $suite = *-security ]]; then uri=$security; fi
  if [ -z "$uri" ]; then echo "get-kernel: no security mirror, skipping $suite" >&2; continue; fi
  echo "deb [$options] $uri $suite main" >>"$state/sources.list"
done
opts=(-q -o Dir::Etc::SourceList="$state/sources.list" -o Dir::Etc::SourceParts=/dev/null
  -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null
  -o Dir::State="$state" -o Dir::State::Lists="$state/lists" -o Dir::State::Status="$state/status"
  -o Dir::Cache="$state/cache" -o APT::Architecture=amd64 -o Acquire::Languages=none
  -o Acquire::Retries=3 -o APT::Sandbox::User="$(id -un)")
log=$state/log
timeout 300 apt-get "${opts[@]}" update >"$log" 2>&1 || {
  cat "$log" >&2
  die "apt-get update failed for: $suites"
}

# The newest image of that version, as "DEBVERSION PACKAGE...".  Passed over: metapackages,
# and images that need a linux-binary or -modules package that the archive has dropped.
pick=$(apt-cache "${opts[@]}" dumpavail | awk -v want="$version" -v flavour="$flavour" '
  /^Package: / { pkg = $2 } /^Version: / { ver = $2 } /^Depends: / { deps = $0 }
  /^$/ { if (pkg ~ /^linux-/) { have[pkg, ver] = 1
         if (pkg ~ /^linux-image-/) images[pkg, ver] = deps }
         pkg = ver = deps = "" }
  END {
    for (key in images) {
      split(key, kv, SUBSEP); pkg = kv[1]; ver = kv[2]; deps = images[key]
      if (pkg !~ "^linux-image-[0-9][0-9a-z.+~]*(-[0-9][0-9a-z.]*)?-" flavour "$" ||
          deps ~ /linux-image-/ ||
          want != "newest" &&
          (index(ver, want) != 1 || substr(ver, length(want) + 1, 1) !~ /[.~+-]/)) continue
      release = substr(pkg, length("linux-image-") + 1); list = pkg; missing = 0
      split("base binary modules", kinds, " ")
      for (i = 1; i <= 3; i++) {
        part = "linux-" kinds[i] "-" release
        if (index(deps, part " ") && (part, ver) in have) list = list " " part; else missing = 1
      }
      if (deps !~ /linux-binary-/ || !missing) print ver, list
    }
  }' | sort -V | tail -1)
[ -n "$pick" ] || die "no $flavour kernel $version that can be had in: $suites"
read -r debver image parts <<<"$pick"

tree=$dir/${image#linux-image-}
if [ ! -f "$tree/release" ]; then
  wanted=()
  for p in $image $parts; do wanted+=("$p=$debver"); done
  rm -f "$state"/debs/*
  (cd "$state/debs" && timeout 600 apt-get "${opts[@]}" download "${wanted[@]}") >>"$log" 2>&1 ||
    { tail -20 "$log" >&2; die "download failed: ${wanted[*]}"; }
  unpack "$tree" "$state"/debs/*.deb
  rm -f "$state"/debs/*
fi
echo "$tree"
