#!/bin/sh
# ptxas for programs that run on softgpu: the PTX itself is the result. softgpu checks it when it is
# loaded. gpumem run puts this folder first on the path, and names this file to Triton.
set -eu
self=$(readlink -f "$0")

wrong() {
    printf 'ptxas (gpumem): %s\n' "$1" >&2
    exit 1
}

# Clients key their caches by what this prints, and read the release from it.
version() {
    rest=$PATH:
    while [ -n "$rest" ]; do
        folder=${rest%%:*}
        rest=${rest#*:}
        if [ -x "$folder/ptxas" ] && [ "$(readlink -f "$folder/ptxas")" != "$self" ]; then
            "$folder/ptxas" --version
            rest=
        elif [ -z "$rest" ]; then
            printf 'ptxas: Cuda compilation tools, release 13.0, V13.0.0\n'
        fi
    done
    printf 'gpumem: PTX in place of machine code, for softgpu\n'
    exit 0
}

input=
output=elf.o
while [ $# -gt 0 ]; do
    case $1 in
    --version | -V) version ;;
    -o | --output-file)
        [ $# -gt 1 ] || wrong "$1 needs a file"
        output=$2
        shift
        ;;
    --output-file=*) output=${1#*=} ;;
    # Options whose value is a word of its own.
    -arch | --gpu-name | -maxrregcount | --maxrregcount | -opt-level | --opt-level | -O | -e | \
        --entry | -m | --machine | --options-file | -optf) shift ;;
    -*) ;;
    *)
        [ -z "$input" ] || wrong "$1 is a second input: softgpu links by cuLink"
        input=$1
        ;;
    esac
    shift
done
[ -n "$input" ] || wrong "no input file"
exec cp -- "$input" "$output"
