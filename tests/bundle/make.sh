#!/bin/sh
# Makes the bundle: one folder with the command, the libraries, tests and benchmarks, that runs on
# another machine and needs nothing there but libc and a driver.
#   make.sh BUILD_FOLDER BUNDLE_FOLDER
set -eu
HERE=$(cd "$(dirname "$0")" && pwd)
BUILD=$1
BUNDLE=$2
# What may come from the other machine: the parts of the C library, and the driver itself. The runtime of the programs
# that nvcc compiled is chosen by run.sh.
SYSTEM='^(linux-vdso|libc|libm|libdl|libpthread|librt|ld-linux[a-z0-9_-]*|libcuda|libcudart)\.so'
MOST_MIB=60

rm -rf "$BUNDLE"
mkdir -p "$BUNDLE/bin" "$BUNDLE/lib" "$BUNDLE/tests"
cp -a "$BUILD/bin/gpumem" "$BUNDLE/bin/"
cp -a "$BUILD"/lib/libgpumem.so* "$BUILD"/lib/libvkgdr.so* "$BUILD/lib/gpumem" "$BUNDLE/lib/"
[ ! -d "$BUILD/share" ] || cp -a "$BUILD/share" "$BUNDLE/"
for folder in bench examples; do
    for program in "$BUILD/$folder"/*; do
        if [ ! -f "$program" ] || [ ! -x "$program" ]; then
            continue
        fi
        mkdir -p "$BUNDLE/$folder"
        cp -a "$program" "$BUNDLE/$folder/"
    done
done
cp -a "$HERE/../../bench/peers.py" "$BUNDLE/bench/"
mkdir -p "$BUNDLE/clients/programs" "$BUNDLE/tests/traces"
cp -a "$HERE"/../traces/*.xz "$BUNDLE/tests/traces/"
cp -a "$HERE/../clients/caches_in_turn.py" "$BUNDLE/clients/"
for name in caches tap torch_compiled torch_runtime; do
    cp -a "$HERE/../clients/programs/$name.py" "$BUNDLE/clients/programs/"
done
# Unit tests, fault sweeps and the runtime's tests are softgpu's, and the page's program is C++, whose library is not the
# bundle's to bring.
(cd "$BUILD/tests" && find . \( -path ./CMakeFiles -o -path ./runner -o -path ./unit -o -path ./fault \
    -o -path ./runtime \
    -o -path ./docs/cpp_page \) -prune -o \
    -type f -perm -u+x ! -name '*.cmake' -print) |
    while read -r path; do
        mkdir -p "$BUNDLE/tests/$(dirname "$path")"
        cp -a "$BUILD/tests/$path" "$BUNDLE/tests/$path"
    done
mkdir -p "$BUNDLE/tests/programs"
cp -a "$HERE/../programs/golden" "$BUNDLE/tests/programs/"
GPUMEM_BUILD_DIR=$BUILD python3 "$HERE/../programs/cuda_programs.py" "$BUNDLE/tests/cuda"
cp "$HERE/run.sh" "$BUNDLE/run.sh"

elf_files() {
    find "$BUNDLE" -type f | while read -r file; do
        [ "$(head -c 4 "$file" | tr -d '\177')" != ELF ] || echo "$file"
    done
}

# Libraries that are not the other machine's to provide go into lib/, where every program looks.
elf_files | xargs readelf -d 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u |
    grep -Ev "$SYSTEM|^libgpumem\.so|^libsoftgpu\.so" | while read -r name; do
    path=$(cc "-print-file-name=$name")
    [ -f "$path" ] || {
        echo "bundle: $name is needed and not found" >&2
        exit 1
    }
    cp -L "$path" "$BUNDLE/lib/$name"
    echo "with $name"
done

# NVIDIA's runtime stays as it is.
elf_files | grep -v /nvidia/ | xargs strip --strip-debug

# Every program must load from the bundle alone, with each library from libc or from here.
failed=$(elf_files | while read -r file; do
    ldd "$file" 2>/dev/null | sed -n 's/^[[:space:]]*\([^ ]*\) => \(.*\) (0x.*/\1 \2/p; s/=> not found/=> not found/p' |
        while read -r name path; do
            case $path in
            "$BUNDLE"/*) ;;
            *) echo "$name" | grep -Eq "$SYSTEM" || echo "$file: $name comes from $path" ;;
            esac
        done
done)
[ -z "$failed" ] || {
    echo "$failed" >&2
    exit 1
}

size=$(du -sm "$BUNDLE" | cut -f1)
[ "$size" -lt "$MOST_MIB" ] || {
    echo "bundle: $size MiB; $MOST_MIB are allowed" >&2
    exit 1
}
echo "bundle: $BUNDLE, $size MiB, $("$BUNDLE/tests/conformance/run" --files | wc -l) files of conformance tests"
