#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# run-in-kernel.sh KERNEL PAYLOAD_DIR 'command'
#
# Boot KERNEL in qemu (software emulation: nested KVM may refuse its registers), run the shell
# command in a copy of PAYLOAD_DIR as root, and exit with its exit status.  Its output
# (stdout and stderr together) comes out on stdout; the kernel log goes to CONSOLE_LOG.
#
# KERNEL: a tree from get-kernel.sh, a single-package linux-image .deb, or a vmlinuz in
# an unpacked tree (TREE/boot or TREE/lib/modules/RELEASE) where depmod has run.
# Exit status: the command's; 124 time limit; 125 the guest or this script failed.
#
# TIMEOUT      limit for the whole run in seconds (default 180)
# MEM, SMP     guest memory (1G) and CPUs (2)
# MODULES      kernel modules to load first (veth sch_ingress cls_bpf act_bpf)
# TOOLS        programs of this machine to bring along with their libraries (bash ip tc bpftool)
# FILES        more files or folders of this machine, to the same places in the guest
# APPEND       more kernel parameters
# ACCEL        qemu accelerator (tcg,thread=single; kvm is far faster where it works)
# CONSOLE_LOG  where to keep the kernel log (default: thrown away, its tail shown on failure)
set -euo pipefail

die() { echo "run-in-kernel: $*" >&2; exit 125; }
need() { command -v "$1" >/dev/null || die "no $1 (apt-get install $2)"; }
PATH=$PATH:/usr/sbin:/sbin
[ $# -eq 3 ] || die "usage: run-in-kernel.sh KERNEL PAYLOAD_DIR 'command'"
kernel=$1 payload=$2 command=$3
here=$(cd "$(dirname "$0")" && pwd)
limit=${TIMEOUT:-180}
need qemu-system-x86_64 qemu-system-x86
need modprobe kmod
need xz xz-utils
need file file
busybox=$(command -v busybox) || die "no busybox (apt-get install busybox-static)"
! ldd "$busybox" >/dev/null 2>&1 || die "$busybox is not static (apt-get install busybox-static)"
[ -d "$payload" ] || die "no payload directory $payload"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{bin,dev,proc,sys,tmp,run,modules,payload,busybox}

# The kernel image, and the folder above lib/modules.
[ -e "$kernel" ] || die "no kernel $kernel"
if [[ $kernel = *.deb ]]; then
  "$here/get-kernel.sh" --unpack "$work/kernel" "$kernel" || exit 125
  kernel=$work/kernel
fi
vmlinuz=$kernel
[ ! -d "$kernel" ] || vmlinuz=$kernel/vmlinuz
[ -f "$vmlinuz" ] || die "no vmlinuz in $kernel"
release=$(file -Lb "$vmlinuz" | sed -n 's/.*, version \([^ ]*\).*/\1/p')
[ -n "$release" ] || die "$vmlinuz is no x86 kernel image"
near=$(dirname "$(realpath "$vmlinuz")") # TREE/boot or TREE[/usr]/lib/modules/RELEASE
base=''
for d in "$near/.." "$near/../usr" "$near/../../.."; do
  if [ -f "$d/lib/modules/$release/modules.dep" ]; then base=$d; break; fi
done
modules=${MODULES-veth sch_ingress cls_bpf act_bpf}
[ -n "$base" ] || [ -z "$modules" ] ||
  die "no lib/modules/$release with a modules.dep near $vmlinuz (depmod makes it, or MODULES='')"

# Modules in load order, uncompressed, so that the guest needs no modprobe.
n=100
for m in $modules; do
  deps=$(modprobe -d "$base" -S "$release" --show-depends "$m" 2>&1) ||
    die "module $m for $release: $deps"
  while read -r kind path _; do
    [ "$kind" = insmod ] || continue # builtin
    name=$(basename "$path"); name=${name%%.ko*}
    compgen -G "$root/modules/*-$name.ko" >/dev/null && continue
    case $path in
      *.xz) xz -dc "$path" ;;
      *.zst) zstd -qdc "$path" ;;
      *) cat "$path" ;;
    esac >"$root/modules/$((n++))-$name.ko"
  done <<<"$deps"
done

# Programs: this machine's sh and TOOLS, with their libraries, and busybox for the rest.
# (busybox's own sh would run its applets instead of TOOLS of the same name.)
cp "$busybox" "$root/bin/busybox"
for t in sh ${TOOLS-bash ip tc bpftool}; do
  path=$(command -v "$t") || die "no $t on this machine (see TOOLS)"
  cp -L "$path" "$root/bin/$t"
done
cp -a "$payload/." "$root/payload/"
for f in ${FILES-}; do
  [ -e "$f" ] || die "no $f on this machine (see FILES)"
  cp -rL --parents "$f" "$root"
done
libs() { # the libraries that the programs below DIR... load
  find "$@" -type f -perm /111 -exec sh -c 'for f; do ldd "$f" 2>/dev/null; done' sh {} + |
    grep -o '/[^ ]*' | sort -u || true
}
libs "$root/payload" "$root/bin" | while read -r lib; do
  if [ -f "$lib" ]; then cp -L --parents "$lib" "$root"; fi
done

# In the guest: ttyS0 carries the kernel log, ttyS1 the command's output and, last, a marker.
mark="@@$(basename "$work")@@"
printf '%s\n' "$command" >"$root/command"
cat >"$root/init" <<INIT
#!/bin/busybox sh
export PATH=/bin:/busybox HOME=/tmp
/bin/busybox --install -s /busybox
mount -t devtmpfs dev /dev
mount -t proc proc /proc
ln -s /proc/self/fd /dev/fd
mount -t sysfs sys /sys
mount -t tmpfs tmp /tmp
mount -t bpf bpf /sys/fs/bpf
mount -t tracefs trace /sys/kernel/tracing
mount -t cgroup2 cgroup /sys/fs/cgroup
exec </dev/null >/dev/ttyS0 2>&1
for m in /modules/*.ko; do [ ! -f "\$m" ] || insmod "\$m" || echo "insmod \$m failed"; done
ifconfig lo up
stty -F /dev/ttyS1 raw -echo
cd /payload
start=\$(cut -d' ' -f1 /proc/uptime)
setsid /bin/sh /command >/dev/ttyS1 2>&1
rc=\$?
echo "$mark \$rc \$start \$(cut -d' ' -f1 /proc/uptime)" >/dev/ttyS1
sync
reboot -f
INIT
chmod 755 "$root/init"
(cd "$root" && find . | "$busybox" cpio -o -H newc -R 0:0 2>/dev/null) >"$work/initrd" ||
  die "cannot make the initramfs"

accel=tcg,thread=single # thread=multi once crashed a guest and is hardly faster
accel=${ACCEL:-$accel}
console=${CONSOLE_LOG:-$work/console}
# shellcheck disable=SC2054 # the comma is qemu's
qemu=(qemu-system-x86_64 -accel "$accel" -cpu max -m "${MEM:-1G}" -smp "${SMP:-2}"
  -nodefaults -no-user-config -display none -no-reboot
  -kernel "$vmlinuz" -initrd "$work/initrd"
  -append "console=ttyS0 panic=-1 oops=panic random.trust_cpu=on ${APPEND:-}"
  -serial "file:$console" -chardev stdio,id=out,signal=off -serial chardev:out)
began=$(date +%s.%N)
status=0
timeout --foreground -k 5 "$limit" "${qemu[@]}" </dev/null 2>"$work/qemu.err" |
  while IFS= read -r line; do
    case $line in
      *"$mark"*)
        printf '%s' "${line%%"$mark"*}"
        echo "${line#*"$mark "}" >"$work/result"
        ;;
      *) printf '%s\n' "$line" ;;
    esac
  done || status=$?
took=$(awk -v a="$began" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')

if [ -s "$work/result" ]; then
  read -r rc start end <"$work/result"
  echo "run-in-kernel: $release ($accel): exit $rc, " \
    "command began $start s after boot and ended at $end s, $took s in all" >&2
  exit "$rc"
fi
echo "run-in-kernel: $release: the last kernel messages:" >&2
tail -n 25 "$console" >&2 || true
cat "$work/qemu.err" >&2
if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
  echo "run-in-kernel: $release: over the time limit of $limit s" >&2
  exit 124
fi
die "$release: the guest ended before the command did (qemu status $status)"
