#!/bin/sh
# Runs the bundle on a machine with a GPU. Needs libc, a POSIX shell, coreutils, awk and a driver.
#   run.sh [conformance|programs|cuda|parity-record|ptx-record|bench|load|caches|torch|all]
# Results go to $OUT (default ./out). GPUMEM_DRIVER chooses the driver (default nvidia). The exit
# status is 1 when anything failed, 2 where there is no driver with a device.
set -u
BUNDLE=$(cd "$(dirname "$0")" && pwd)
OUT=${OUT:-./out}
LIMIT=${LIMIT:-120}           # seconds for one test program
PARITY_JOBS=${PARITY_JOBS:-12}
CUDA_JOBS=${CUDA_JOBS:-8}     # programs of the CUDA runtime at a time
PARITY_SECONDS=${PARITY_SECONDS:-220}    # for each of the three recordings
LOAD_MIB=${LOAD_MIB:-8192}    # size of the file that `load` streams
GPUMEM_DRIVER=${GPUMEM_DRIVER:-nvidia}
export GPUMEM_DRIVER
STATUS=0

usage() {
    echo "usage: run.sh [conformance|programs|cuda|parity-record|ptx-record|bench|load|caches|torch|all]"
}

case ${1:-all} in
conformance | programs | cuda | parity-record | ptx-record | bench | load | caches | torch | all) ;;
-h | --help)
    usage
    exit 0
    ;;
*)
    usage >&2
    exit 2
    ;;
esac

mkdir -p "$OUT" || exit 2
OUT=$(cd "$OUT" && pwd)

# Nothing can be had without a driver: said before anything is made for it.
why=$("$BUNDLE/bin/gpumem" info 2>&1) || {
    echo "run.sh: no driver with a device:" >&2
    echo "$why" >&2
    exit 2
}

about() {
    {
        date -u '+date: %Y-%m-%dT%H:%M:%SZ'
        uname -srm | sed 's/^/kernel: /'
        sed -n 's/^PRETTY_NAME=/system: /p' /etc/os-release 2>/dev/null
        echo "driver chosen: $GPUMEM_DRIVER"
        nvidia-smi --query-gpu=name,driver_version,memory.total,ecc.mode.current \
            --format=csv,noheader 2>/dev/null | sed 's/^/gpu: /'
        "$BUNDLE/bin/gpumem" --version
        "$BUNDLE/bin/gpumem" info
    } >"$OUT/machine.txt" 2>&1
}

# Counts TAP lines; a program that ends badly without a failed test is a failure by itself.
run_conformance() {
    mkdir -p "$OUT/conformance"
    : >"$OUT/conformance/counts"
    for program in "$BUNDLE"/tests/conformance/run "$BUNDLE"/tests/conformance/*/run; do
        for file in $("$program" --files); do
            run_file "$program" "$file"
        done
    done
    awk '{ print }
         /: [0-9]+ passed, / { p += $2; f += $4; s += $6 }
         END {
             print p + 0 " passed, " f + 0 " failed, " s + 0 " skipped"
             exit (f > 0 || p == 0)
         }' "$OUT/conformance/counts" >"$OUT/conformance.txt" || STATUS=1
    cat "$OUT/conformance.txt"
}

# run_file PROGRAM FILE: the tests of one file, in a process of their own.
run_file() {
    name=$2
    CMOCKA_MESSAGE_OUTPUT=tap timeout -k 5 "$LIMIT" "$1" "$2" \
        >"$OUT/conformance/$name.tap" 2>&1 </dev/null
    code=$?
    awk -v name="$name" -v code=$code '
        /^1\.\.[0-9]+/ { planned += substr($1, 4) }
        /^(not )?ok/ { seen++ }
        /^(# )?skip: / { reason = $0 }
        /# SKIP/ { skipped++; print "  skipped: " $0 " (" reason ")"; next }
        /^ok/ { passed++ }
        /^not ok/ { failed++; print "  failed: " $0 }
        END {
            if (seen < planned || seen == 0) {
                failed++; print "  failed: " planned - seen " tests gave no result"
            }
            if (code != 0 && failed == 0) { failed++; print "  failed: exit status " code }
            print name ": " passed + 0 " passed, " failed + 0 " failed, " skipped + 0 " skipped"
        }' "$OUT/conformance/$name.tap" >>"$OUT/conformance/counts"
}

# Programs with kernels: what each prints goes to $OUT/programs, and is compared with golden/, which
# softgpu printed. The long ones are the same programs with more work.
run_programs() {
    mkdir -p "$OUT/programs"
    : >"$OUT/programs.txt"
    for golden in "$BUNDLE"/tests/programs/golden/*.txt; do
        [ -f "$golden" ] || continue
        text=$(basename "$golden")
        name=${text%%.*}
        long=0
        [ "$text" = "$name.txt" ] || long=1
        GPUMEM_TEST_LONG=$long timeout -k 5 "$LIMIT" "$BUNDLE/tests/programs/$name" \
            >"$OUT/programs/$text" 2>"$OUT/programs/$text.err" </dev/null
        code=$?
        [ -s "$OUT/programs/$text.err" ] || rm -f "$OUT/programs/$text.err"
        if [ $code = 77 ]; then
            echo "$text: $(tail -n 1 "$OUT/programs/$text")"
        elif [ $code != 0 ]; then
            echo "$text: failed with status $code"
        elif cmp -s "$golden" "$OUT/programs/$text"; then
            echo "$text: the same"
        else
            echo "$text: differs"
        fi
    done >>"$OUT/programs.txt"
    grep -q ': the same$' "$OUT/programs.txt" && ! grep -Eq ': (failed|differs)' "$OUT/programs.txt" ||
        STATUS=1
    cat "$OUT/programs.txt"
}

# Programs of the CUDA runtime, with each of our libraries and, over NVIDIA's driver, with NVIDIA's, if
# the bundle has them: what each prints is in $OUT/cuda, and is compared with golden/.
run_cuda() {
    if [ ! -d "$BUNDLE/tests/cuda" ]; then
        echo "no programs of the CUDA runtime: where the bundle was made, there was no nvcc"
        return
    fi
    mkdir -p "$OUT/cuda"
    : >"$OUT/cuda.txt"
    started=0
    for abi in 13 12; do
        for program in "$BUNDLE/tests/cuda/$abi"/*; do
            case $program in
            *.so | */\*) continue ;;
            esac
            for library in "$BUNDLE/lib/gpumem/runtime/$abi" "$BUNDLE/tests/cuda/nvidia/$abi"; do
                [ -d "$library" ] || continue
                whose=ours
                case $library in
                */nvidia/*) [ "$GPUMEM_DRIVER" != softgpu ] || continue; whose=theirs ;;
                esac
                one_cuda "$program" "$abi" "$library" "$whose" >>"$OUT/cuda.txt" &
                started=$((started + 1))
                [ $((started % CUDA_JOBS)) != 0 ] || wait
            done
        done
    done
    wait
    sort -o "$OUT/cuda.txt" "$OUT/cuda.txt"
    grep -q ': the same$' "$OUT/cuda.txt" && ! grep -Eq ': (failed|differs)' "$OUT/cuda.txt" || STATUS=1
    cat "$OUT/cuda.txt"
}

# one_cuda PROGRAM ABI LIBRARY_FOLDER WHOSE: one line about it.
one_cuda() {
    name=$(basename "$1")
    text=$OUT/cuda/$name.$2.$4.txt
    path=$3
    [ "$GPUMEM_DRIVER" != softgpu ] || path=$path:$BUNDLE/lib/gpumem/softgpu
    LD_LIBRARY_PATH=$path timeout -k 5 "$LIMIT" "$1" >"$text" 2>"$text.err" </dev/null
    code=$?
    [ -s "$text.err" ] || rm -f "$text.err"
    if [ $code = 77 ]; then
        echo "$name $2 $4: $(tail -n 1 "$text")"
    elif [ $code != 0 ]; then
        echo "$name $2 $4: failed with status $code"
    elif cmp -s "$BUNDLE/tests/cuda/golden/$name.txt" "$text"; then
        echo "$name $2 $4: the same"
    else
        echo "$name $2 $4: differs"
    fi
}

# Three recordings, each in an order of its own: what is not the same in all is not scored.
run_parity_record() {
    mkdir -p "$OUT/parity"
    for seed in 1 2 3; do
        name=$(date -u +%Y%m%dT%H%M%SZ)-$seed.txt
        "$BUNDLE/tests/parity/parity" run --jobs "$PARITY_JOBS" --shuffle $seed \
            --deadline "$PARITY_SECONDS" -o "$OUT/parity/$name" >"$OUT/parity/$name.log" 2>&1 </dev/null || {
            echo "parity: recording $seed ended with status $?"
            STATUS=1
        }
        echo "parity: $(wc -l <"$OUT/parity/$name" 2>/dev/null || echo 0) lines in $name"
    done
}

# What kernels answer. Less than a minute on hardware; on softgpu PTX_EVERY=1024 tries few of the
# approximate functions' inputs.
run_ptx_record() {
    "$BUNDLE/tests/parity/ptx_record" all --jobs "$PARITY_JOBS" --every "${PTX_EVERY:-1}" "$OUT/ptx" || {
        echo "ptx: status $?"
        STATUS=1
    }
    gzip -9 -f "$OUT"/ptx/*.txt "$OUT"/ptx/*.bin 2>/dev/null || true
}

run_bench() {
    for program in "$BUNDLE"/bench/bench_*; do
        [ -x "$program" ] || continue
        name=$(basename "$program")
        echo "== $name"
        if [ "$name" = bench_traces ] && ! command -v python3 >/dev/null 2>&1; then
            echo "no python3: recorded programs are not replayed"
            continue
        fi
        timeout -k 5 600 "$program" >"$OUT/$name.txt" 2>&1 </dev/null || {
            echo "$name: status $?"
            STATUS=1
        }
        cat "$OUT/$name.txt"
    done
    run_peers
}

# Other allocators from Python, where there is one; it says itself which packages are missing.
run_peers() {
    echo "== peers"
    if ! command -v python3 >/dev/null 2>&1; then
        echo "no python3: PyTorch, CuPy, cuda.core and RMM are not measured"
        return
    fi
    timeout -k 5 600 python3 "$BUNDLE/bench/peers.py" >"$OUT/peers.txt" 2>&1 </dev/null || {
        echo "peers: status $?"
        STATUS=1
    }
    cat "$OUT/peers.txt"
}

# Clients' caches, on this machine's driver and on softgpu in turn. PYTHON has numba-cuda, cuda.core or
# pycuda; without any of them the script says so.
run_caches() {
    python=${PYTHON:-$(command -v python3)} || {
        echo "no python3: clients' caches are not tried"
        return
    }
    "$python" "$BUNDLE/clients/caches_in_turn.py" "$BUNDLE/bin/gpumem" "$python" >"$OUT/caches.txt" 2>&1 </dev/null ||
        STATUS=1
    cat "$OUT/caches.txt"
}

# PyTorch's calls, its kernels, cuBLAS and cuDNN, and functions that Triton compiles, with gpumem's runtime over this
# machine's driver, then with NVIDIA's. PYTHON has PyTorch; without it the script says so.
run_torch() {
    python=${PYTHON:-$(command -v python3)} || {
        echo "no python3: PyTorch is not tried"
        return
    }
    version=$("$python" -c 'import torch; print(torch.version.cuda.split(".")[0])' 2>/dev/null) || {
        echo "$python has no PyTorch for CUDA: not tried (PYTHON names another)"
        return
    }
    ours=$BUNDLE/lib/gpumem/runtime/$version/libcudart.so.$version
    set --
    products=products
    # Products of matrices are wgmma for an H200, which softgpu refuses.
    [ "$GPUMEM_DRIVER" != softgpu ] || {
        set -- "$BUNDLE/bin/gpumem" run --softgpu --profile h200 --
        products=
    }
    mkdir -p "$OUT/torch"
    for program in torch_runtime torch_compiled; do
        arguments=
        [ $program = torch_runtime ] || arguments=$products
        for whose in ours theirs; do
            runtime=
            [ $whose = theirs ] || runtime=$ours
            text=$OUT/torch/$program.$whose.txt
            LD_PRELOAD=$runtime CLIENT_RUNTIME=$runtime timeout -k 5 580 "$@" "$python" -W ignore \
                "$BUNDLE/clients/programs/$program.py" $arguments >"$text" 2>&1 </dev/null
            code=$?
            echo "$program.$whose: status $code, $(grep -c '^ok' "$text") passed, $(grep -c '^not ok' "$text") failed"
        done
    done | tee "$OUT/torch.txt"
    # NVIDIA's is there to compare with: only ours decides.
    ! grep -q 'ours: status [^0]' "$OUT/torch.txt" || STATUS=1
}

run_load() {
    file=${LOAD_FILE:-$OUT/../load.bin}
    made=
    if [ ! -f "$file" ]; then
        made=$file
        trap 'rm -f "$made"' EXIT
        trap 'exit 130' INT
        trap 'exit 143' TERM HUP
        # Bytes that differ from block to block, without waiting for random ones.
        openssl enc -aes-128-ctr -K 00 -iv 00 </dev/zero 2>/dev/null |
            head -c "$((LOAD_MIB * 1048576))" >"$file" ||
            head -c "$((LOAD_MIB * 1048576))" /dev/urandom >"$file"
        [ "$(wc -c <"$file")" -gt 0 ] || head -c "$((LOAD_MIB * 1048576))" /dev/urandom >"$file"
    fi
    for round in 1 2 3; do
        "$BUNDLE/bin/gpumem" load "$file" >"$OUT/load-$round.txt" 2>&1 </dev/null || STATUS=1
        "$BUNDLE/bin/gpumem" load --json "$file" >"$OUT/load-$round.json" 2>/dev/null || STATUS=1
    done
    cat "$OUT/load-3.txt"
    [ -z "$made" ] || rm -f "$made"
}

about
case ${1:-all} in
conformance) run_conformance ;;
programs) run_programs ;;
cuda) run_cuda ;;
parity-record) run_parity_record ;;
ptx-record) run_ptx_record ;;
bench) run_bench ;;
load) run_load ;;
caches) run_caches ;;
torch) run_torch ;;
all)
    run_conformance
    run_programs
    run_cuda
    run_parity_record
    run_ptx_record
    run_load
    run_caches
    run_torch
    run_bench
    ;;
esac
exit $STATUS
