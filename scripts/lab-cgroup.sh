# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# A CPU quota for a server of the lab, by cgroups of either version: source it. One cgroup a lane,
# right under the root; of version 1 the same in the hierarchies of `cpu` and of `cpuacct`. Their
# shares are large: on a busy machine they get their quota nonetheless.

# cgroup_mount TYPE OPTION: where a hierarchy of this type is mounted with this controller.
cgroup_mount() {
  awk -v type="$1" -v option="$2" '$3 == type && (option == "" || ("," $4 ",") ~ ("," option ",")) {
    print $2; exit }' /proc/mounts
}

CGROUP_CPU=$(cgroup_mount cgroup cpu)
CGROUP_ACCT=$(cgroup_mount cgroup cpuacct)
CGROUP_2=$(cgroup_mount cgroup2 "")

# cgroup_of LANE: the folder that has its quota.
cgroup_of() {
  echo "${CGROUP_CPU:-$CGROUP_2}/weir-$$-$1"
}

# cgroup_folders LANE: those that exist, on one line.
cgroup_folders() {
  local folder folders=()

  for folder in "$CGROUP_CPU" "$CGROUP_ACCT" "$CGROUP_2"; do
    folder+=/weir-$$-$1
    [ ! -d "$folder" ] || [[ " ${folders[*]} " == *" $folder "* ]] || folders+=("$folder")
  done
  echo "${folders[*]}"
}

# cgroup_make LANE QUOTA_US PERIOD_US: what can't be made is said, and 1.
cgroup_make() {
  local own

  own=$(cgroup_of "$1")
  if [ -n "$CGROUP_CPU" ]; then
    mkdir "$own" && { [ "$CGROUP_ACCT" = "$CGROUP_CPU" ] || mkdir "$CGROUP_ACCT/weir-$$-$1"; } &&
      echo "$3" >"$own/cpu.cfs_period_us" && echo "$2" >"$own/cpu.cfs_quota_us" &&
      echo 20480 >"$own/cpu.shares" && return
  elif [ -n "$CGROUP_2" ] && grep -qw cpu "$CGROUP_2/cgroup.controllers"; then
    echo +cpu >"$CGROUP_2/cgroup.subtree_control" && mkdir "$own" &&
      echo "$2 $3" >"$own/cpu.max" && echo 2000 >"$own/cpu.weight" && return
  fi
  echo "lab: can't make a cgroup with a CPU quota, which the shedder's server needs" >&2
  return 1
}

# Once their processes are gone.
cgroup_remove_all() {
  local folder

  for folder in "$CGROUP_CPU/weir-$$-"* "$CGROUP_ACCT/weir-$$-"* "$CGROUP_2/weir-$$-"*; do
    [ ! -d "$folder" ] || rmdir "$folder"
  done
}
