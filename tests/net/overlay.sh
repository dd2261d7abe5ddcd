# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# A throw-away copy of this system for tests that install, configure and run as an operator would:
# an overlay, in a mount and a network namespace with eth0, a veth whose other end is peer0.
# Source it after lib.sh.

OVERLAY= # where its root is

# in_overlay FOLDER ARGUMENT...: this script again with those arguments, in new namespaces (also of
# processes, so that all that was started ends), FOLDER being for what the overlay needs.
in_overlay() {
  local folder=$1

  shift
  mkdir -p "$folder/root" "$folder/over"
  PATH=/usr/sbin:/sbin:$PATH timeout "${OVERLAY_SECONDS:-300}" \
    unshare --net --mount --pid --fork --mount-proc "$0" "$@"
}

# As that child: makes the overlay in FOLDER and the interfaces.
overlay_make() {
  OVERLAY=$1/root
  (
    set -e
    mount --make-rprivate /
    mount -t tmpfs weir "$1/over"
    mkdir "$1/over/upper" "$1/over/work"
    mount -t overlay weir "$OVERLAY" \
      -o "lowerdir=/,upperdir=$1/over/upper,workdir=$1/over/work"
    mount -t proc proc "$OVERLAY/proc"
    mount -t sysfs sysfs "$OVERLAY/sys"
    mount -t bpf bpf "$OVERLAY/sys/fs/bpf"
    mount -t cgroup2 cgroup "$OVERLAY/sys/fs/cgroup"
    mount --rbind /dev "$OVERLAY/dev"
    mount -t tmpfs run "$OVERLAY/run"
    mount -t tmpfs tmp "$OVERLAY/tmp"
    chmod 1777 "$OVERLAY/tmp"
    # A tree that is a mount of its own, or lies in /tmp, isn't in the overlay.
    if [ ! -e "$OVERLAY$LAB_ROOT/Makefile" ]; then
      mkdir -p "$OVERLAY$LAB_ROOT"
      mount --rbind "$LAB_ROOT" "$OVERLAY$LAB_ROOT"
    fi
    ip link set lo up
    ip link add eth0 type veth peer name peer0
    ip link set eth0 up
    ip link set peer0 up
  )
  # shellcheck disable=SC2181 # in a condition, set -e would not hold inside
  [ $? = 0 ] || { echo "overlay: can't be made: see above" >&2; exit 2; }
}

# inside COMMAND...: in the overlay.
inside() {
  chroot "$OVERLAY" "$@"
}
