# SPDX-License-Identifier: GPL-2.0
# fish completion for weir. The program itself knows what may follow.

function __weir_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    test (count $typed) -gt 0; or set typed ""
    for line in ($words[1] __complete $words[2..] $typed 2>/dev/null)
        switch $line
            case :file
                __fish_complete_path $typed
            case :dir
                __fish_complete_directories $typed
            case '*'
                echo $line
        end
    end
end

complete -c weir -f -a '(__weir_complete)'
