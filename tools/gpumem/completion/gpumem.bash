# Completion of gpumem for bash. Commands, options and values are read from the help of the program
# that is being completed (tools/gpumem/cli.h has its form), so that there is nothing to keep in step.

# Reads a help text into what the caller declared: commands, kinds (of an option's value), values
# (that an option lists) and operand (what follows the options).
_gpumem_read() {
    local line option='' word words before=''
    while IFS= read -r line; do
        if [[ $line == usage:* ]]; then
            read -ra words <<<"$line"
            for word in "${words[@]}"; do
                word=${word//[\[\].]/}
                if [[ $word =~ ^[A-Z]+$ && $word != OPTION && ! $before =~ ^\[?--[a-z-]+$ ]]; then
                    operand=$word
                    break
                fi
                before=$word
            done
        elif [[ $line =~ ^\ \ (--[a-z0-9-]+)(\[=[A-Z]+\])?(\ ([^ ]+))?(\ \ .*)?$ ]]; then
            option=${BASH_REMATCH[1]}
            kinds[$option]=${BASH_REMATCH[4]}
        elif [[ $line =~ ^\ {10,}([a-z0-9_-]+)\ \ +[^\ ] && $option ]]; then
            values[$option]+=" ${BASH_REMATCH[1]}"
        elif [[ $line =~ ^\ \ ([a-z][a-z-]*)\ \ +[^\ ] ]]; then
            commands+=" ${BASH_REMATCH[1]}"
        fi
    done < <("$@" 2>/dev/null)
}

_gpumem_reply() {
    mapfile -t COMPREPLY < <(compgen "$@")
}

_gpumem_files() {
    compopt -o filenames 2>/dev/null
    _gpumem_reply -f -- "$1"
}

# _gpumem_value OPTION TEXT: what may stand for the value of an option.
_gpumem_value() {
    local kind=${kinds[$1]} words='' word done=''
    case $kind in
    CHOICE) kind='nvidia|softgpu|FILE' ;;
    LIST)
        [[ $2 == *,* ]] && done=${2%,*},
        compopt -o nospace 2>/dev/null
        _gpumem_reply -P "$done" -W "${values[$1]}" -- "${2##*,}"
        return
        ;;
    esac
    for word in ${kind//|/ }; do
        case $word in
        FILE | LOG | SNAPSHOT | PATH | SOCKET | PROGRAM | HTML | OUTPUT) _gpumem_files "$2" ;;
        FOLDER | DIRECTORY) _gpumem_reply -d -- "$2" ;;
        [a-z]*) words+=" $word" ;;
        esac
    done
    local files=("${COMPREPLY[@]}")
    _gpumem_reply -W "$words" -- "$2"
    COMPREPLY+=("${files[@]}")
}

# Where another program's command line begins in the words of `gpumem run`, or nothing.
_gpumem_inner() {
    local i word
    for ((i = 2; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word == -- ]]; then
            echo $((i + 1))
            return
        elif [[ $word != -* ]]; then
            echo $i
            return
        elif [[ ${COMP_WORDS[i + 1]} == = ]]; then
            ((i += 2))
        elif [[ ${kinds[$word]} ]]; then
            ((i++))
        fi
    done
    [[ ${COMP_WORDS[COMP_CWORD]} == -* || $i -gt $COMP_CWORD ]] || echo "$COMP_CWORD"
}

_gpumem_command() {
    if declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    elif [[ $1 == "$COMP_CWORD" ]]; then
        _gpumem_reply -c -- "$cur"
    else
        _gpumem_files "$cur"
    fi
}

_gpumem() {
    local -A kinds=() values=()
    local commands='' operand='' inner option
    local program=${COMP_WORDS[0]/#\~/$HOME} cur=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    if [[ $COMP_CWORD == 1 || ($COMP_CWORD == 2 && ${COMP_WORDS[1]} == help) ]]; then
        _gpumem_read "$program" help
        [[ $COMP_CWORD == 2 ]] || commands+=' help'
        [[ $cur == -* && $COMP_CWORD == 1 ]] && commands+=' --help --version'
        _gpumem_reply -W "$commands" -- "$cur"
        return
    fi
    _gpumem_read "$program" help "${COMP_WORDS[1]}"

    # Of --option=value the shell makes three words.
    option=${COMP_WORDS[COMP_CWORD - 1]}
    if [[ $cur == = ]]; then
        cur=''
    elif [[ $option == = ]]; then
        option=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    [[ $operand == COMMAND ]] && inner=$(_gpumem_inner)
    if [[ $inner ]]; then
        _gpumem_command "$inner"
    elif [[ $option == --* && ${kinds[$option]} ]]; then
        _gpumem_value "$option" "$cur"
    elif [[ $cur == -* ]]; then
        _gpumem_reply -W "${!kinds[*]} --help" -- "$cur"
    else
        kinds[operand]=$operand
        _gpumem_value operand "$cur"
    fi
}

complete -F _gpumem gpumem
