#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# --help, weir(8), README's table and the completion name the same commands and options; one test
# a command. (weir.yaml(5) is held to the schema by tests/unit/test_man.c.) Needs build/weir and
# the man pages: `make`.
#
#   check-words.sh [MAN [README]]    man/weir.8.scd and README.md unless given
#
# To add a command: its section in man/weir.8.scd, `## weir NAME ARGUMENTS` as --help's usage line
# has them, with a line for each option (*--save*, *-n*, *--count* _N_); its row in README.md.
# The completion asks the program itself.

# shellcheck disable=SC2016 # backquotes of README
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 2

weir=build/weir
man=${1:-man/weir.8.scd}
readme=${2:-README.md}
passed=0
failed=0

# same NAME WHAT LEFT WHAT RIGHT: two lists of words, in any order.
same() {
  local left right

  left=$(tr ' ' '\n' <<<"$3" | grep . | sort -u | paste -sd' ')
  right=$(tr ' ' '\n' <<<"$5" | grep . | sort -u | paste -sd' ')
  if [ "$left" = "$right" ]; then
    echo "ok $1"
    passed=$((passed + 1))
  else
    printf '  %s: %s\n  %s: %s\nFAIL %s\n' "$2" "$left" "$4" "$right" "$1"
    failed=$((failed + 1))
  fi
}

help_commands() {
  "$weir" help | awk '/^  [a-z]/ && $1 != "help" { print $1 }'
}

# What follows `usage: weir NAME`, without the options.
help_arguments() {
  "$weir" help "$1" | sed -nE "1s/^usage: weir $1 ?//; 1s/ ?\[OPTION\.\.\.\]$//p"
}

# Options but the two that all have.
help_options() {
  "$weir" help "$1" | grep -oE '^  (-[a-z], )?--[a-z-]+' | grep -oE -- '--?[a-z-]+' |
    grep -vxE -- '-j|--json|-h|--help'
}

# The page's section of one command.
man_section() {
  awk -v head="## weir $1" '
    index($0, head) == 1 && substr($0, length(head) + 1) ~ /^( |$)/ { on = 1; next }
    /^#/ { on = 0 }
    on' "$man"
}

man_arguments() {
  sed -nE "s/^## weir $1 ?//p" "$man"
}

# Lines that name options begin with one.
man_options() {
  man_section "$1" | grep -E '^\*-' | grep -oE '\*--?[a-z-]+\*' | tr -d '*'
}

readme_commands() {
  grep -oE '^\| `weir [^`]*`' "$readme" | sed 's/^| `weir //; s/[` ].*//; s/|/ /g; s/\\//g'
}

# Options that the README's row has; it need not have all.
readme_options() {
  grep -E "^\| \`weir $1\b" "$readme" | grep -oE '`weir [^`]*`' | head -n 1 |
    grep -oE -- '-[-a-z]+' | grep -E '^--?[a-z]'
}

completed() {
  "$weir" __complete "$@" | cut -f 1
}

main() {
  local command

  [ -x "$weir" ] || { echo "check-words: build first (make)" >&2; exit 2; }
  same "commands: the man page" --help "$(help_commands)" "$man" \
    "$(sed -nE 's/^## weir ([a-z]+).*/\1/p' "$man")"
  same "commands: README" --help "$(help_commands | grep -vx version)" "$readme" \
    "$(readme_commands)"
  same "commands: completion" --help "$(help_commands) help" completion "$(completed "")"
  for command in $(help_commands); do
    same "$command: arguments in the man page" --help "$(help_arguments "$command")" "$man" \
      "$(man_arguments "$command")"
    same "$command: options in the man page" --help "$(help_options "$command")" "$man" \
      "$(man_options "$command")"
    same "$command: options in README" --help "$(help_options "$command")" "$readme" \
      "$(help_options "$command"; readme_options "$command")"
    same "$command: completion" --help \
      "$(help_options "$command" | grep -e --) --json --help" completion \
      "$(completed "$command" --)"
  done
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ]
}

main
