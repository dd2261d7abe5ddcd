#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# README.md and docs/ are true:
#
# - a ```sh block runs as written, in the page's order, in a throw-away copy of this system with
#   an eth0 (tests/net/overlay.sh), if the line before it is `<!-- runnable -->`, or
#   `<!-- runnable: run -->` if it is a controller, which runs on while the next blocks do. Every
#   other ```sh block names the test that has it: `<!-- run by tests/... -->`;
# - an indented block right behind one is what it prints, but for numbers;
# - ```yaml blocks are valid: whole files, or entries of limits, or services;
# - ```nft and ```iptables blocks are taken by nft -c and iptables;
# - commands are in such blocks, links lead somewhere, and tests that are named are there.
#
#   test_docs.sh [PAGE]    all pages unless given; WEIR_DOC_OUTPUT=FOLDER keeps what blocks said

# shellcheck source-path=SCRIPTDIR source=../net/lib.sh disable=SC2016,SC2317
. "$(dirname "$0")/../net/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../net/overlay.sh
. "$(dirname "$0")/../net/overlay.sh"

pages=("$LAB_ROOT/README.md" "$LAB_ROOT"/docs/*.md)

# blocks PAGE KIND FOLDER: the fenced blocks of one kind as files 01, 02...; for sh with .run, .sh
# or .unmarked as its comment says, or the file that it says runs it; and with .want behind that
# what it is to print.
blocks() {
  awk -v kind="$2" -v folder="$3" '
    function close_() {
      if (out) close(out)
      want = kind == "sh" && out ? out ".want" : ""
      out = ""
    }
    $0 == "```" { close_(); next }
    want && /^    / { print substr($0, 5) > want; next }
    $0 != "" { want = "" }
    /^```/ && kind == substr($0, 4) {
      ending = kind
      if (kind == "sh")
        ending = mark ~ /^<!-- runnable -->$/ ? "sh" : mark ~ /^<!-- runnable: run -->$/ ? "run" : \
          mark ~ /^<!-- run by [^ ]+ -->$/ ? "elsewhere" : "unmarked"
      out = sprintf("%s/%02d.%s", folder, ++count, ending)
      printf "%s\n", ending == "elsewhere" ? mark : "# line " FNR > out
      next
    }
    out { print > out; next }
    { mark = $0 }' "$1"
}

# What systemd would do with the installed unit; it is not here to be asked.
stand_in_systemctl() {
  cat <<'END'
#!/bin/bash
unit=/usr/local/lib/systemd/system/weir.service
line() { sed -n "s/^$1=//p" $unit; }
action=start
for word; do
  case $word in start | stop | reload) action=$word ;; disable) action=stop ;; esac
done
case $action in
  start)
    : >/run/weir.log
    mkdir -p /run/weir /var/lib/weir && chgrp weir /run/weir
    eval "exec setsid $(line ExecStart)" >/run/weir.log 2>&1 </dev/null &
    echo $! >/run/weir.pid
    for _ in {1..400}; do grep -q ^ready: /run/weir.log && exit 0; sleep 0.05; done
    cat /run/weir.log >&2
    exit 1
    ;;
  reload) line ExecReload | while IFS= read -r command; do eval "$command" || exit; done ;;
  stop)
    kill "$(cat /run/weir.pid)"
    while kill -0 "$(cat /run/weir.pid)" 2>/dev/null; do sleep 0.05; done
    ;;
esac
END
}

# As a child, in namespaces of its own.
run_blocks() {
  local folder=$1 block run=

  overlay_make "$folder"
  printf '#!/bin/sh\nexec "$@"\n' >"$OVERLAY/usr/local/bin/sudo"
  stand_in_systemctl >"$OVERLAY/usr/local/bin/systemctl"
  chmod +x "$OVERLAY"/usr/local/bin/{sudo,systemctl}
  for block in "$folder"/blocks/*.{sh,run}; do echo "$block"; done | sort >"$folder/list"
  while IFS= read -r block; do
    [ -e "$block" ] || continue
    case $block in
      *.run)
        in_tree "$block" &
        run=$!
        wait_for 120 grep -q ^ready: "$block.out" || echo "FAILED $block: never ready"
        ;;
      *) in_tree timeout 300 "$block" || echo "FAILED $block: $?" ;;
    esac
    echo "ran $block"
    # A stop is the controller's end.
    if [ -n "$run" ] && grep -q "weir stop" "$block"; then
      wait "$run" || echo "FAILED $block: the controller: $?"
      run=
    fi
  done <"$folder/list"
}

# in_tree [WORD...] BLOCK
in_tree() {
  local block=${*: -1} copy

  copy=/tmp/${block##*/}
  cp "$block" "$OVERLAY$copy"
  chroot "$OVERLAY" "${@:1:$#-1}" bash -c 'cd "$1" && exec bash -e -o pipefail "$2"' - \
    "$LAB_ROOT" "$copy" >"$block.out" 2>&1 </dev/null
}

# The lines that a block prints in every run, numbers and what stands for them (-) as N. Left out
# is what need not come: a group that is there already, what a service's loops did. Shedders differ.
masked() {
  sed -E '/^$|^Creating group |service [a-z]+: /d
    s/\b(hot|cool)(, full)?(, at most [0-9]+)?/1/' "$1" | awk '
    { for (i = 1; i <= NF; i++) if ($i ~ /[0-9]/ || $i == "-") $i = "N"; $1 = $1; print }' | sort -u
}

test_page() {
  local page=$1 name=${1#"$LAB_ROOT/"} folder out count

  folder=$(mktemp -d)
  mkdir "$folder/blocks"
  blocks "$page" sh "$folder/blocks"
  expect_equal "$name: every sh block is run by a test" \
    "$(cd "$folder/blocks" && head -qn 1 ./*.unmarked 2>/dev/null)" ""
  while IFS= read -r out; do
    check "$name: $out is there" test -x "$LAB_ROOT/$out"
  done < <(sed -n 's/^<!-- run by \(.*\) -->$/\1/p' "$folder"/blocks/*.elsewhere 2>/dev/null)
  count=$(find "$folder/blocks" -name '*.sh' -o -name '*.run' | wc -l)
  if [ "$count" != 0 ]; then
    out=$(in_overlay "$folder" --blocks "$folder" 2>&1)
    expect_equal "$name: all runnable blocks ran" "$(grep -c ^ran <<<"$out")" "$count"
    if [ "$(grep -c ^ran <<<"$out")" != "$count" ] || grep -q FAILED <<<"$out"; then
      fail "$name: every block succeeds" "$(grep -v ^ran <<<"$out"
        tail -n 5 "$folder"/blocks/*.out)"
    else
      pass "$name: every block succeeds"
    fi
    for out in "$folder"/blocks/*.want; do
      [ ! -e "$out" ] || expect_equal "$name: what $(basename "$out" .want) prints" \
        "$(masked "${out%.want}.out")" "$(masked "$out")"
    done
  fi
  [ -z "${WEIR_DOC_OUTPUT:-}" ] || cp "$folder"/blocks/*.out "$WEIR_DOC_OUTPUT"
  rm -rf --one-file-system "$folder"
}

# The interfaces, limits and so on that an excerpt leaves out.
completed_yaml() {
  grep -q ^version: "$1" || echo "version: 1"
  grep -q ^interfaces: "$1" || echo "interfaces: [{name: eth0}]"
  if grep -q ^services: "$1" && ! grep -q ^limits: "$1"; then
    printf 'limits:\n  - name: web-rate\n    key: none\n    bucket: {rate: 2000pps}\n'
  fi
  ! head -n 2 "$1" | grep -q '^  - ' || echo "limits:"
  cat "$1"
}

test_yaml() {
  local page folder block said bad=

  for page in "${pages[@]}"; do
    folder=$(mktemp -d)
    blocks "$page" yaml "$folder"
    for block in "$folder"/*; do
      # Prometheus has YAML of its own.
      if [ ! -e "$block" ] || grep -qE '^(scrape_configs|rule_files|groups):' "$block"; then
        continue
      fi
      completed_yaml "$block" >"$folder/whole"
      said=$("$LAB_ROOT/build/weir" check "$folder/whole" 2>&1 >/dev/null) ||
        bad+="${page##*/}, $(head -n 1 "$block"): $said"$'\n'
    done
    rm -rf "$folder"
  done
  expect_equal "yaml blocks are valid" "$bad" ""
}

# As a child in a network namespace: nft's blocks together are one file, iptables' are commands.
try_netfilter() {
  local block

  for block in "$1"/*; do
    case $block in
      *.nft) nft -c -f "$block" ;;
      *.iptables) bash -e "$block" ;;
    esac || echo "FAILED $(head -n 1 "$block")"
  done
}

test_netfilter() {
  local page folder out count=0

  for page in "${pages[@]}"; do
    folder=$(mktemp -d)
    blocks "$page" nft "$folder"
    blocks "$page" iptables "$folder"
    count=$((count + $(find "$folder" -type f | wc -l)))
    out+=$(PATH=/usr/sbin:/sbin:$PATH unshare --net "$0" --netfilter "$folder" 2>&1)
    rm -rf "$folder"
  done
  expect_equal "nft -c and iptables take theirs" "$out" ""
  expect_between "there are some" "$count" 4 100
}

# Commands in indented blocks would run nowhere.
test_fences() {
  expect_equal "commands are in sh blocks" "$(cd "$LAB_ROOT" && grep -nE \
    '^    (sudo )?(weir|systemctl|make|ip|tc|nft|curl|scripts/[a-z]+\.sh) [a-z-]' \
    README.md docs/*.md)" ""
}

test_links() {
  local file link broken=

  for file in "${pages[@]}"; do
    while IFS= read -r link; do
      [ -e "$(dirname "$file")/$link" ] || broken+=" ${file#"$LAB_ROOT"/}:$link"
    done < <(grep -oE '\]\([^)#:]+\)' "$file" | sed 's/^](//; s/)$//')
  done
  expect_equal "links lead to files" "$broken" ""
}

# wrong_names PAGE: of the tests and scripts that it names, as `tests/unit/test_x.c a_test`
# or `build/tests/unit/test_x a_test`: files that are not there, tests that are not in them.
wrong_names() {
  local words file name

  while read -ra words; do
    [ "${words[0]}" != sudo ] || words=("${words[@]:1}")
    file=${words[0]#build/}
    case $file in *_X.*) continue ;; esac # of any name
    if [ "$file" != "${words[0]}" ]; then # a program's source
      [ -e "$LAB_ROOT/$file.c" ] || file=tests/tools/${file#tests/}
      file+=.c
    fi
    [ -e "$LAB_ROOT/$file" ] || { echo "${1##*/}: ${words[*]}"; continue; }
    for name in "${words[@]:1}"; do
      case $name in *[!a-zA-Z0-9_]*) continue ;; *_*) ;; *) continue ;; esac
      grep -qw -- "$name" "$LAB_ROOT/$file" || echo "${1##*/}: $file has no $name"
    done
  done < <(grep -oE '`(sudo )?(build/tests|tests|scripts)/[^`*<]+`' "$1" | tr -d '`')
}

test_names() {
  local page wrong=

  for page in "${pages[@]}"; do wrong+=$(wrong_names "$page"); done
  expect_equal "the tests and scripts that are named are there" "$wrong" ""
  page=$(mktemp)
  echo '`tests/unit/test_gone.c` `tests/net/lib.sh no_test` `build/tests/unit/test_key`' >"$page"
  expect_equal "what is not there is found" "$(wrong_names "$page" | wc -l)" 2
  rm "$page"
}

case ${1:-} in
  --blocks) run_blocks "$2"; exit ;;
  --netfilter) try_netfilter "$2"; exit ;;
esac
need_root
need nft nftables
need iptables
need curl
test_yaml
test_netfilter
test_fences
test_links
test_names
for page in "${pages[@]}"; do
  case ${1:-$page} in *"${page##*/}") test_page "$page" ;; esac
done
finish
