# SPDX-License-Identifier: GPL-2.0
# bash completion for weir. The program itself knows what may follow.

_weir() {
  local line=${COMP_LINE:0:COMP_POINT} words typed broken candidate

  read -ra words <<<"$line"
  [[ $line != *[[:space:]] ]] || words+=("")
  typed=${words[-1]}
  # bash replaces only what is behind the last = or :
  broken=${typed%"${typed##*[=:]}"}
  COMPREPLY=()
  while IFS=$'\t' read -r candidate _; do
    case $candidate in
      :file) mapfile -t COMPREPLY < <(compgen -f -- "$typed"); compopt -o filenames ;;
      :dir) mapfile -t COMPREPLY < <(compgen -d -- "$typed"); compopt -o filenames ;;
      *)
        COMPREPLY+=("${candidate#"$broken"}")
        [[ $candidate != *= ]] || compopt -o nospace
        ;;
    esac
  done < <("$1" __complete "${words[@]:1}" 2>/dev/null)
}

complete -F _weir weir
