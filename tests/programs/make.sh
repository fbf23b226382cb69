#!/bin/sh
# Makes the PTX of the programs' kernels with clang: kernels/NAME.cu becomes FOLDER/NAME.ptx.
#   make.sh [FOLDER]
# FOLDER is kernels/ by default. CLANG names the compiler, which must be version 14: others choose
# other registers and orders. Nothing of NVIDIA's is needed.
#
# A first line `// target sm_80` chooses the target; the default is sm_70. clang 14 knows none above
# sm_86, so a kernel for sm_90 is compiled for sm_80 and then renamed to sm_90; its newer
# instructions are inline PTX.
set -eu
HERE=$(cd "$(dirname "$0")" && pwd)
FOLDER=${1:-$HERE/kernels}
CLANG=${CLANG:-clang}

compile() {
    "$CLANG" -x cuda --cuda-device-only "--cuda-gpu-arch=$1" -nocudainc -nocudalib -O2 \
        -ffp-contract=off -Wall -Wextra -Wno-unknown-cuda-version -Wno-pass-failed \
        -Xclang -target-feature -Xclang +ptx75 -S -o "$3" "$2"
}

for source in "$HERE"/kernels/*.cu; do
    name=$(basename "$source" .cu)
    text=$FOLDER/$name.ptx
    target=$(sed -n '1s/^\/\/ target //p' "$source")
    case ${target:-sm_70} in
    sm_90)
        compile sm_80 "$source" "$text.made"
        sed -e 's/^\.version .*/.version 8.0/' -e 's/^\.target .*/.target sm_90/' "$text.made" >"$text"
        rm "$text.made"
        ;;
    *) compile "${target:-sm_70}" "$source" "$text" ;;
    esac
done
