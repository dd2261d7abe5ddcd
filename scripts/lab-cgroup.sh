# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Cgroups of a lab, of either version: source it. They are right under the root; of version 1 there
# are two of each name, in the hierarchies of `cpu` and of `cpuacct`.

# cgroup_mount TYPE OPTION: where a hierarchy of this type is mounted with this controller.
cgroup_mount() {
  awk -v type="$1" -v option="$2" '$3 == type && (option == "" || ("," $4 ",") ~ ("," option ",")) {
    print $2; exit }' /proc/mounts
}

CGROUP_CPU=$(cgroup_mount cgroup cpu)
CGROUP_ACCT=$(cgroup_mount cgroup cpuacct)
CGROUP_2=$(cgroup_mount cgroup2 "")

# cgroup_of NAME: the folder of its quota and shares.
cgroup_of() {
  echo "${CGROUP_CPU:-$CGROUP_2}/weir-$$-$1"
}

# cgroup_folders NAME: those that exist, on one line.
cgroup_folders() {
  local folder folders=()

  for folder in "$CGROUP_CPU" "$CGROUP_ACCT" "$CGROUP_2"; do
    folder+=/weir-$$-$1
    [ ! -d "$folder" ] || [[ " ${folders[*]} " == *" $folder "* ]] || folders+=("$folder")
  done
  echo "${folders[*]}"
}

# cgroup_make NAME: with shares so large that it is hardly late on a busy machine. What can't be
# made is said, and 1.
cgroup_make() {
  local own

  own=$(cgroup_of "$1")
  if [ -n "$CGROUP_CPU" ]; then
    mkdir "$own" && { [ "$CGROUP_ACCT" = "$CGROUP_CPU" ] || mkdir "$CGROUP_ACCT/weir-$$-$1"; } &&
      echo 20480 >"$own/cpu.shares" && return
  elif [ -n "$CGROUP_2" ] && grep -qw cpu "$CGROUP_2/cgroup.controllers"; then
    echo +cpu >"$CGROUP_2/cgroup.subtree_control" && mkdir "$own" &&
      echo 2000 >"$own/cpu.weight" && return
  fi
  echo "lab: can't make a cgroup with a share of the CPU, which the servers need" >&2
  return 1
}

# cgroup_limit NAME QUOTA_US PERIOD_US
cgroup_limit() {
  local own

  own=$(cgroup_of "$1")
  if [ -n "$CGROUP_CPU" ]; then
    echo "$3" >"$own/cpu.cfs_period_us" && echo "$2" >"$own/cpu.cfs_quota_us"
  else
    echo "$2 $3" >"$own/cpu.max"
  fi
}

# This script and all it starts, into a cgroup of its own; and back to where it was.
cgroup_enter() {
  CGROUP_BEFORE=$(awk -F : -v version2="${CGROUP_CPU:+no}" '
    version2 == "" ? $1 == 0 : ("," $2 ",") ~ /,cpu,/ { print $3; exit }' /proc/self/cgroup)
  cgroup_make lab && echo $$ >"$(cgroup_of lab)/cgroup.procs"
}

cgroup_leave() {
  [ -z "${CGROUP_BEFORE:-}" ] ||
    echo $$ >"${CGROUP_CPU:-$CGROUP_2}/$CGROUP_BEFORE/cgroup.procs"
}

# Once their processes are gone.
cgroup_remove_all() {
  local folder

  for folder in "$CGROUP_CPU/weir-$$-"* "$CGROUP_ACCT/weir-$$-"* "$CGROUP_2/weir-$$-"*; do
    [ ! -d "$folder" ] || rmdir "$folder"
  done
}
