#!/bin/sh
# nvcc for programs that run on softgpu: makes PTX where machine code was asked for. The real nvcc is
# the next one on the path. gpumem run puts this folder first, or one with a link to this file.
set -eu
self=$(readlink -f "$0")

find_next() {
    rest=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin:${CUDA_PATH:-/usr/local/cuda}/bin:
    while [ -n "$rest" ]; do
        folder=${rest%%:*}
        rest=${rest#*:}
        if [ -x "$folder/nvcc" ] && [ "$(readlink -f "$folder/nvcc")" != "$self" ]; then
            printf '%s\n' "$folder/nvcc"
            return
        fi
    done
    printf 'gpumem: nvcc is not on the path\n' >&2
    exit 127
}
real=$(find_next)

machine=
output=
source=
before=
virtual=
code=
for word in "$@"; do
    case $before in
    -arch | --gpu-architecture) virtual=$word ;;
    -code | --gpu-code) code=yes ;;
    esac
    case $word in
    --version | -V)
        "$real" --version
        # Clients key their caches by what is printed here.
        printf 'gpumem: PTX in place of machine code, for softgpu\n'
        exit 0
        ;;
    -cubin | --cubin) machine=yes ;;
    -arch=* | --gpu-architecture=*) virtual=${word#*=} ;;
    -code=* | --gpu-code=*) code=yes ;;
    -odir* | --output-directory* | --output-file* | -o*) output=yes ;;
    *.cu | *.c | *.cpp | *.cc) [ "$before" = -o ] || source=$word ;;
    esac
    before=$word
done

# Of "arch=compute_90,code=sm_90": 90.
first_of() {
    printf '%s\n' "$1" | sed 's/.*arch=compute_\([0-9a-z]*\).*/\1/'
}

# "-cubin FILE.cu" becomes "-ptx FILE.cu", and the result keeps its name. Where an architecture is
# given with machine code alone, its PTX is added to what is compiled or linked.
more=
count=$#
while [ "$count" -gt 0 ]; do
    word=$1
    shift
    count=$((count - 1))
    case $word in
    -cubin | --cubin) word=-ptx ;;
    *arch=compute_*code=*)
        if [ -n "$machine" ]; then
            word=${word%%arch=*}arch=compute_$(first_of "$word"),code=compute_$(first_of "$word")
        else
            more="$more $(first_of "$word")"
        fi
        ;;
    esac
    set -- "$@" "$word"
done
# PTX for the device where machine code is for it alone, or for many: nvcc adds the newest one's PTX.
of_device() {
    "${real%/*}/__nvcc_device_query" 2>/dev/null | sed 's/[^0-9].*//;q'
}
case $virtual in
native | all | all-major) [ -n "$machine" ] || more="$more $(of_device)" ;;
compute_*) [ -n "$machine" ] || [ -z "$code" ] || more="$more ${virtual#compute_}" ;;
esac
for architecture in $more; do
    set -- "$@" -gencode "arch=compute_$architecture,code=compute_$architecture"
done
if [ -n "$machine" ] && [ -z "$output" ] && [ -n "$source" ]; then
    name=${source##*/}
    set -- "$@" -o "${name%.*}.cubin"
fi
exec "$real" "$@"
