# Completion of gpumem for fish. Commands, options and values are read from gpumem's help when fish
# first completes it (tools/gpumem/cli.h has the form of a help text), so that there is nothing to keep
# in step.

# Whether the command line is one of this command of gpumem.
function __gpumem_in
    set -l words (commandline -opc)
    test (count $words) -gt 1; and test $words[2] = $argv[1]
end

# What follows the options of `gpumem run` is another program's command line.
function __gpumem_inner
    set -l words (commandline -opc)
    set -l i 3
    while test $i -le (count $words)
        if test $words[$i] = --
            set i (math $i + 1)
            break
        else if not string match -q -- '-*' $words[$i]
            break
        else if contains -- $words[$i] $__gpumem_run_with_value
            set i (math $i + 1)
        end
        set i (math $i + 1)
    end
    if test $i -le (count $words)
        __fish_complete_subcommand --commandline $words[$i..-1] (commandline -ct)
    else if not string match -q -- '-*' (commandline -ct)
        __fish_complete_subcommand --commandline (commandline -ct)
    end
end

# The arguments of `complete` for what a value, or an operand, is called in the help. The values that
# the help lists follow.
function __gpumem_arguments
    set -l words
    set -l files -f
    for word in (string split '|' -- (string replace CHOICE 'nvidia|softgpu|FILE' -- $argv[1]))
        switch $word
            case FILE LOG SNAPSHOT PATH SOCKET PROGRAM HTML OUTPUT FOLDER DIRECTORY
                set files -F
            case LIST
                set words "(__fish_append , $argv[2..-1])"
            case '*'
                set -a words (string match -r '^[a-z].*' -- $word)
        end
    end
    printf '%s\n' $files
    if set -q words[1]
        printf '%s\n' -a "$words"
    end
end

function __gpumem_declare_option --argument-names command option kind meaning
    set -l more
    if test -n "$kind"
        set more -r (__gpumem_arguments $kind $argv[5..-1])
        test $command = run; and set -ga __gpumem_run_with_value --$option
    end
    complete -c gpumem -n "__gpumem_in $command" -l $option -d "$meaning" $more
end

function __gpumem_declare --argument-names command
    set -l option ''
    set -l kind ''
    set -l meaning ''
    set -l values
    for line in (gpumem help $command) '  --help   these options'
        if set -l found (string match -r '^  --([a-z0-9-]+)(?:\[=[A-Z]+\])?( [^ ]+|)(  .*|)$' -- $line)
            test -z "$option"; or __gpumem_declare_option $command $option "$kind" "$meaning" $values
            set option $found[2]
            set kind (string trim -- $found[3])
            set meaning (string trim -- $found[4])
            set values
        else if set -l found (string match -r '^ {10,}([a-z0-9_-]+)  +[^ ]' -- $line)
            set -a values $found[2]
        else if set -l found (string match -r '^   +([^ ].*)$' -- $line)
            test -n "$meaning"; or set meaning $found[2]
        end
    end
    __gpumem_declare_option $command $option '' "$meaning"

    # The first word of the usage in capitals that is no option's value is the operand.
    set -l before ''
    for word in (gpumem help $command | string match 'usage: *' | string split ' ')
        if string match -qr '^\[?[A-Z]+(\.\.\.)?\]?$' -- $word
            and not string match -qr '^\[?OPTION' -- $word
            and not string match -qr '^\[?--[a-z-]+$' -- $before
            set -l operand (string replace -ra '[\[\].]' '' -- $word)
            if test $operand = COMMAND
                complete -c gpumem -n "__gpumem_in $command" -f -a '(__gpumem_inner)'
            else
                complete -c gpumem -n "__gpumem_in $command" (__gpumem_arguments $operand)
            end
            return
        end
        set before $word
    end
    complete -c gpumem -n "__gpumem_in $command" -f
end

if command -q gpumem
    set -g __gpumem_run_with_value
    complete -c gpumem -n __fish_use_subcommand -f
    complete -c gpumem -n '__gpumem_in help' -f
    complete -c gpumem -n __fish_use_subcommand -a help -d 'the options of a command'
    complete -c gpumem -n __fish_use_subcommand -l version -d 'of the command'
    complete -c gpumem -n __fish_use_subcommand -l help -d 'the commands'
    gpumem help | string match -r '^  [a-z][a-z-]*   *[^ ].*' | while read -l name summary
        complete -c gpumem -n __fish_use_subcommand -a $name -d "$summary"
        complete -c gpumem -n '__gpumem_in help' -a $name -d "$summary"
        __gpumem_declare $name
    end
end
