#compdef weir
# SPDX-License-Identifier: GPL-2.0
# zsh completion for weir. The program itself knows what may follow.

local line word
local -a plain bare

for line in "${(@f)$(${(Q)words[1]} __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
  word=${line%%$'\t'*}
  case $word in
    '') ;;
    :file) _files ;;
    :dir) _files -/ ;;
    *=) bare+=("$word") ;;
    *) plain+=("${word//:/\\:}:${${line#*$'\t'}//$word}") ;;
  esac
done
(( $#bare )) && compadd -S '' -a bare
(( $#plain )) && _describe -t values weir plain
return 0
