#!/bin/sh
# seeds.sh TARGET FOLDER: inputs of a fuzz target that are made of files of the repository, so that
# the corpus need not repeat them. Only `image` has such: the images of tests/fixtures, behind a byte that
# says how they are read (tests/fuzz/image.c).
set -eu
cd "$(dirname "$0")/../.."
target=$1
to=$2
[ "$target" = image ] || exit 0
# As an input of a link for sm_90: without a name, with the machine code preferred, with all log,
# and for no architecture.
for options in 011 017 057 050; do
    for image in tests/fixtures/images/*.cubin tests/fixtures/images/*.fatbin tests/fixtures/images/*.ptx \
        tests/fixtures/images/*.object tests/fixtures/images/*.archive; do
        # shellcheck disable=SC2059  # the format is the byte
        { printf "\\$options" && cat "$image"; } >"$to/seed-$options-${image##*/}.bin"
    done
done
