#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Completion in the real shells, bash, zsh and fish, against a running weir; and that
# scripts/check-words.sh finds what drifted.

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2016,SC2317
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=weir.sh
. "$(dirname "$0")/weir.sh"

FILES=$LAB_ROOT/packaging/completion

write_two() {
  write_config 1000pps 2000
  cat >>"$CONFIG" <<END
  - name: conns
    match: {proto: tcp}
    key: source
    gate: {limit: 50}
services:
  - name: web
    match: {proto: tcp, to_port: 80}
    breaker: {}
control: {group: root}
END
}

# in_bash LINE: what the function offers.
in_bash() {
  bash --norc -c '
    PATH=$3:$PATH
    . "$1"
    COMP_LINE=$2 COMP_POINT=${#2}
    compopt() { :; }
    _weir weir
    printf "%s\n" "${COMPREPLY[@]}"' - "$FILES/weir.bash" "$1" "$LAB_ROOT/build" | sort | xargs
}

in_fish() {
  fish --no-config -c "set -p PATH $LAB_ROOT/build; source $FILES/weir.fish
    complete -C '$1'" | cut -f 1 | sort | xargs
}

# in_zsh KEYS: what a line typed in an interactive zsh, with its tabs, becomes.
in_zsh() {
  timeout 60 zsh -f -c '
    zmodload zsh/zpty
    zpty z zsh -f -i
    zpty -w z "PS1= PS2= RPS1=; unsetopt zle_bracketed_paste 2>/dev/null; path=($2 \$path)"
    zpty -w z "fpath=($3 \$fpath); autoload -U compinit; compinit -u -D"
    zpty -w z "function weir { if [[ \$1 == __complete ]]; then command weir \"\$@\"; else"
    zpty -w z "print -r -- \"<\"RAN\":\$*>\"; fi }"
    zpty -w -n z "$1"$'"'\\n'"'
    zpty -r -m z out "*<RAN:*>*" && print -r -- "${${out##*<RAN:}%%>*}"
    zpty -d z' - "$1" "$LAB_ROOT/build" "$LAB_DIR/zsh"
}

test_bash() {
  expect_equal "bash: commands" "$(in_bash 'weir wa')" "watch"
  expect_equal "bash: limits" "$(in_bash 'weir set ')" "conns per-ip"
  expect_equal "bash: fields of this limit" "$(in_bash 'weir set per-ip ')" \
    "burst= mode=enforce mode=monitor rate= untracked=drop untracked=pass"
  expect_equal "bash: behind a =, what is still missing" "$(in_bash 'weir set conns mode=m')" \
    "monitor"
  expect_equal "bash: services" "$(in_bash 'weir freeze ')" "web"
  expect_equal "bash: their loops" "$(in_bash 'weir freeze web b')" "breaker"
  expect_equal "bash: both, and words" "$(in_bash 'weir show ')" \
    "bans conns interfaces ledger limits lists per-ip services web"
  expect_equal "bash: options" "$(in_bash 'weir stop --d')" "--detach"
  expect_equal "bash: options don't count" "$(in_bash 'weir set --save con')" "conns"
  expect_equal "bash: sequences" "$(in_bash 'weir deny add 192.0.2.1 ')" "for"
  expect_equal "bash: files" "$(in_bash "weir check $FILES/weir.ba")" "$FILES/weir.bash"
  expect_equal "bash: files of an option" "$(in_bash "weir run -c $FILES/weir.f")" \
    "$FILES/weir.fish"
}

test_fish() {
  expect_equal "fish: commands" "$(in_fish 'weir wa')" "watch"
  expect_equal "fish: limits" "$(in_fish 'weir set ')" "conns per-ip"
  expect_equal "fish: fields" "$(in_fish 'weir set conns l')" "limit="
  expect_equal "fish: options" "$(in_fish 'weir stop --d')" "--detach"
  expect_equal "fish: files" "$(in_fish "weir check $FILES/weir.ba")" "$FILES/weir.bash"
}

test_zsh() {
  mkdir "$LAB_DIR/zsh" && cp "$FILES/weir.zsh" "$LAB_DIR/zsh/_weir"
  expect_equal "zsh: command, limit, field" "$(in_zsh $'weir se\tper\tra\t5pps')" \
    "set per-ip rate=5pps"
  expect_equal "zsh: a word with its space" "$(in_zsh $'weir freeze w\tbr\t')" \
    "freeze web breaker"
  expect_equal "zsh: options" "$(in_zsh $'weir stop --det\t')" "stop --detach"
  expect_equal "zsh: files" "$(in_zsh "weir check $FILES/weir.ba"$'\t')" \
    "check $FILES/weir.bash"
}

test_down() {
  weir stop --detach >/dev/null
  await weir
  expect_equal "no controller: words of the grammar only" "$(in_bash 'weir show l')" \
    "ledger limits lists"
  expect_equal "... and no noise" "$(in_fish 'weir set ' 2>&1)" ""
}

drift() {
  local name=$1 want=$2

  shift 2
  expect_exit "check-words: $name" 1 "$want" "$LAB_ROOT/scripts/check-words.sh" "$@"
}

test_drift() {
  local man=$LAB_ROOT/man/weir.8.scd readme=$LAB_ROOT/README.md

  sed '/^\*--save\*$/d' "$man" >"$LAB_DIR/man"
  drift "an option that the page lacks" "FAIL set: options in the man page" "$LAB_DIR/man"
  sed 's/^## weir why ADDRESS/## weir why ADDR/' "$man" >"$LAB_DIR/man"
  drift "other arguments" "FAIL why: arguments in the man page" "$LAB_DIR/man"
  sed '/^## weir stop/,/^## weir version/d' "$man" >"$LAB_DIR/man"
  drift "a command that the page lacks" "FAIL commands: the man page" "$LAB_DIR/man"
  sed 's/^| `weir events`/| `weir event`/' "$readme" >"$LAB_DIR/readme"
  drift "a command that README misspells" "FAIL commands: README" "$man" "$LAB_DIR/readme"
  sed 's/^\(| `weir stop \[--\)detach/\1flush/' "$readme" >"$LAB_DIR/readme"
  drift "an option that only README has" "FAIL stop: options in README" "$man" "$LAB_DIR/readme"
}

need zsh
need fish
weir_lab 1
write_two
start_weir
test_bash
test_fish
test_zsh
test_down
test_drift
finish
