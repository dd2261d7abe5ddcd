#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# The rules of the layout (docs/architecture.md) and of how files look. A violation is a line
# `FILE:LINE: what is wrong`; one test a rule.
#
#   check-layers.sh [ROOT]    ROOT is this tree unless given

set -u -o pipefail
cd "${1:-$(dirname "$0")/..}" || exit 2

passed=0
failed=0
code=() # C and headers
all=()  # and scripts

# rule NAME FUNCTION: the rule holds if the function prints nothing.
rule() {
  local out

  out=$("$2")
  if [ -z "$out" ]; then
    echo "ok $1"
    passed=$((passed + 1))
  else
    printf '%s\nFAIL %s\n' "$out" "$1"
    failed=$((failed + 1))
  fi
}

collect() {
  local folder folders=()

  for folder in include bpf user tests scripts packaging .ci; do
    [ ! -d "$folder" ] || folders+=("$folder")
  done
  [ "${#folders[@]}" != 0 ] || { echo "check-layers: no sources in $PWD" >&2; exit 2; }
  mapfile -t code < <(find "${folders[@]}" -type f -name '*.[ch]' | sort)
  mapfile -t all < <(printf '%s\n' "${code[@]}"
    find "${folders[@]}" -type f \( -name '*.sh' -o -path .ci/run \) | sort)
}

# includes_of FOLDER: `FILE LINE NAME` of each #include of the folder's sources.
includes_of() {
  local file

  for file in "${code[@]}"; do
    case $file in "$1"/*) ;; *) continue ;; esac
    awk -v file="$file" '/^[ \t]*#[ \t]*include[ \t]*[<"]/ {
      name = $0
      sub(/^[^<"]*[<"]/, "", name)
      sub(/[>"].*/, "", name)
      print file, FNR, name
    }' "$file"
  done
}

# Whether an include of FILE called NAME means a file of FOLDER: beside it, from the tree's
# root, or by the compiler's -Iuser and -Ibpf.
leads_to() {
  local folder=$1 file=$2 name=$3 path

  for path in "$(dirname "$file")/$name" "$name" "$folder/$name"; do
    path=$(realpath -m --relative-to=. "$path")
    case $path in "$folder"/*) [ ! -f "$path" ] || return 0 ;; esac
  done
  return 1
}

# forbid FOLDER TARGET REASON
forbid() {
  local file line name

  while read -r file line name; do
    if leads_to "$2" "$file" "$name"; then echo "$file:$line: includes '$name': $3"; fi
  done < <(includes_of "$1")
}

bpf_and_user_apart() {
  forbid bpf user "bpf never includes user"
  forbid user bpf "user never includes bpf (it sees the generated skeleton)"
  includes_of bpf | awk '$3 ~ /\.skel\.h$/ {
    print $1 ":" $2 ": includes \047" $3 "\047: the skeleton is for user" }'
}

contract_stands_alone() {
  forbid include bpf "the contract includes nothing of bpf"
  forbid include user "the contract includes nothing of user"
}

no_c_included() {
  local folder

  for folder in include bpf user tests; do
    includes_of "$folder" | awk '$1 ~ /\.h$/ && $3 ~ /\.c$/ {
      print $1 ":" $2 ": a header includes \047" $3 "\047: sources are compiled, not included" }'
  done
}

# A limiter whose kernel side exists is tested on both sides and described.
limiters_are_whole() {
  local name want

  for name in bucket sliding period gate; do
    [ -f "include/weir/$name.h" ] || continue
    grep -rqsE "weir/$name\.h|\bweir_${name}_" bpf || continue
    for want in "tests/unit/test_$name.c" "tests/kernel/test_$name.c"; do
      [ -f "$want" ] || echo "include/weir/$name.h:1: limiter without $want"
    done
    grep -qis "^##* .*\b$name\b" docs/limiters.md ||
      echo "include/weir/$name.h:1: limiter without a heading in docs/limiters.md"
  done
}

entry_points_are_short() {
  local file

  for file in bpf/*.bpf.c; do
    [ -f "$file" ] || continue
    awk -v file="$file" 'END { if (NR >= 80)
      print file ":" NR ": an entry point has " NR " lines, fewer than 80 are allowed" }' "$file"
  done
}

files_are_short() {
  local file

  for file in "${all[@]}"; do
    awk -v file="$file" 'END { if (NR >= 500)
      print file ":" NR ": " NR " lines, fewer than 500 are allowed" }' "$file"
  done
}

# Characters, not bytes (tr drops what continues one); a tab reaches to the next eighth.
lines_fit() {
  local file

  for file in "${all[@]}"; do
    LC_ALL=C tr -d '\200-\277' <"$file" | LC_ALL=C expand |
      awk -v file="$file" 'length($0) > 100 {
        print file ":" NR ": " length($0) " columns, 100 are allowed" }'
  done
}

indented_by_tabs() {
  awk '/^\t*        / || /^\t* +\t/ { print FILENAME ":" FNR ": indent by tabs" }' "${code[@]}"
}

no_trailing_space() {
  awk '/[ \t]$/ { print FILENAME ":" FNR ": space at the end of the line" }' "${all[@]}"
}

licensed() {
  local file

  for file in "${all[@]}"; do
    head -n 2 "$file" | grep -q 'SPDX-License-Identifier: GPL-2.0' ||
      echo "$file:1: no 'SPDX-License-Identifier: GPL-2.0' on top"
  done
}

collect
rule "bpf and user never include each other" bpf_and_user_apart
rule "include/weir includes nothing of either" contract_stands_alone
rule "no .c is included from a header" no_c_included
rule "a limiter has its tests and its heading" limiters_are_whole
rule "BPF entry points are under 80 lines" entry_points_are_short
rule "files are under 500 lines" files_are_short
rule "lines fit 100 columns" lines_fit
rule "C is indented by tabs" indented_by_tabs
rule "no trailing space" no_trailing_space
rule "every source names its license" licensed
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
