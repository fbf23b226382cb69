# shellcheck shell=sh
# What ./dev says of itself. Sourced by ./dev.

usage() {
    cat <<'USAGE'
usage: ./dev COMMAND

  demo [FILE]            build, then load a real file into GPU memory and prove
                         that it arrived
  test [RE]              build, and run the tests; only those whose name matches
                         RE
  test --all             all that a change must pass: also sanitizers, real
                         programs, packages, linters
  test --long [PART]     what takes hours and rarely fails, in parts
  test --times           where the time went: steps, tests, what was compiled
                         how often
  bench [ARGS]           build and run the benchmarks
  parity [ARGS]          replay the recordings of real hardware on softgpu
  prove NAME...          tests that fail when the driver function of that name
                         does nothing
  coverage [ARGS]        lines and branches of src/ that the tests reach
  mutate N [ARGS]        plant N faults in src/, one after another, and see
                         which the tests find
  clients [RE]           run real programs on softgpu
  lint [PART]            formatting, clang-tidy, cppcheck, the repository's own
                         rules
  fuzz [SECONDS]         run the fuzz targets
  package                make dist/gpumem_*.deb and dist/gpumem-*.whl
  release [--dry-run]    tarball, packages, checksums, bill of materials; a tag
  api                    describe the public headers anew, and what is generated
                         from that
  docs                   the API reference for C and C++, as pages of HTML
  floors [--svg FILE]    which folder of softgpu stands on which; its picture
  bundle                 make bundle/, a folder that runs on a bare machine with
                         a GPU
  deps [build|test|all|lint|clients|fuzz|package|browser]
                         install the Debian packages that are missing (default:
                         test)
  format                 rewrite sources as .clang-format says

./dev COMMAND --help says more, and builds nothing.
USAGE
}

# Times are of a machine with 2 cores, without a compiler cache.
usage_of() {
    case $1 in
    demo) cat <<'USAGE' ;;
usage: ./dev demo [FILE]

Builds the command, the libraries, softgpu and examples/tour, then loads FILE
(default: the largest program of the C compiler) into GPU memory, checks that it
arrived, and shares it with another process. NVIDIA's driver is used where it
has a device, else softgpu; GPUMEM_DRIVER decides. Two minutes the first time.
USAGE
    test) cat <<'USAGE' ;;
usage: ./dev test [RE] [-v]
       ./dev test --all [RE]
       ./dev test --only STAGE [RE]
       ./dev test --long [PART...] [RE]
       ./dev test --all|--long --list
       ./dev test --times

Builds into build/ and runs all tests that show behaviour, and the replay of
recorded hardware.

  RE             a regular expression on the tests' names, which begin with
                 their folder: 'unit/test_load'. Only those are run, and only
                 what they need is built
  --all          what a change must pass: ./dev test, then the same under
                 sanitizers, on other profiles, real programs, headers and
                 exports, an installation, packages, linters
  --only STAGE   one stage of --all; --all --list names them
  --long PART    what takes long and rarely fails, in parts of at most an hour;
                 --long --list names them. Without PART all of them, one after
                 the other. Tests get GPUMEM_TEST_LONG=1 and more time
  --times        prints where the time of earlier runs went, by step, folder and
                 test, and what was compiled how often; with another option,
                 after that run
  -v, --verbose  a line for each program and each skip, and all that programs
                 print; build/tests.log has that in any case

A failure is shown at once, with the command that repeats it. Time limits grow
with the machine's load, and the report says so. Exit status: 0 all passed, 1 a
failure, 2 something needed is missing.
USAGE
    bench) cat <<'USAGE' ;;
usage: ./dev bench [ARGS]

Builds (two minutes), and runs each program of bench/ with ARGS.
USAGE
    parity) cat <<'USAGE' ;;
usage: ./dev parity [ARGS]

Replays tests/parity/recordings on softgpu and says what differs; ARGS are those
of tests/parity/compare.py. Half a minute, after a build of two.
USAGE
    prove) cat <<'USAGE' ;;
usage: ./dev prove NAME...

Makes the driver function NAME report success and do nothing, and says which
tests fail then: one of them is the proof that the function is real
(src/softgpu/entry/coverage.def).
USAGE
    coverage) cat <<'USAGE' ;;
usage: ./dev coverage [--out FILE] [--match RE] [--table]

Builds with gcc's counters into build-coverage, runs the tests of unit, fault,
conformance, programs and cli and parity's scenarios there, and prints by folder
of src/ how many lines and branches they run. What each test ran is kept for
./dev mutate. --match runs some tests again and keeps what is known of the
others; --table prints what is known.
USAGE
    mutate) cat <<'USAGE' ;;
usage: ./dev mutate N [--seed S]
       ./dev mutate --again LIST [--found]
       ./dev mutate --score LIST

Makes N one-place changes of src/, chosen by the seed over all folders, in a
copy of the tree (build-mutate), and says which ones the tests find: those that
run the changed line, the quick ones first. Five minutes at most for each
(--seconds), an hour for a batch (--minutes); the same command goes on where it
was ended. --again tries the faults of a list once more. Exit status 1: one that
was found before is found no longer; 3: the batch's time is over.
USAGE
    clients) cat <<'USAGE' ;;
usage: ./dev clients [RE]

Runs programs from PyPI on softgpu, those whose test's name matches RE. The
first time it makes virtual environments in build/clients, which takes some
minutes and a network.
USAGE
    lint) cat <<'USAGE' ;;
usage: ./dev lint [PART]

clang-format, clang's warnings, clang-tidy, cppcheck and the repository's own
rules; or one of them, PART: format, clang, tidy, cppcheck, and

  tidy             clang-tidy with its static analyzer on all files: ten minutes
  tidy-quick       without the analyzer
  tidy-recent      with it, on what the last 40 commits touched and on what is
                   not committed
  cppcheck-recent  cppcheck on the same
  clang-build      compiles and links everything with clang, in build-clang
USAGE
    fuzz) cat <<'USAGE' ;;
usage: ./dev fuzz [SECONDS]
       ./dev fuzz --minimize

Builds the fuzz targets into build-fuzz and runs each for the same part of the
time (default: 60 s). --minimize takes what adds coverage into
tests/fuzz/corpus.
USAGE
    package) cat <<'USAGE' ;;
usage: ./dev package

Makes dist/gpumem_*.deb and dist/gpumem-*.whl of the release build.
Two minutes.
USAGE
    release) cat <<'USAGE' ;;
usage: ./dev release [--dry-run]

Makes dist/release: the sources as a tarball, the Debian package, the wheels,
SHA256SUMS and a bill of materials (SPDX), twice, and compares the bytes. With
--dry-run it lists what is in the way of a release and tags nothing; without,
these are errors, and the tag is made. docs/release.md has the checklist.
USAGE
    api) cat <<'USAGE' ;;
usage: ./dev api

Reads include/gpumem with libclang and writes tools/api/api.json, which
describes every function, struct, member and value, and
include/gpumem/cpp/options.hpp, which is generated from it.
USAGE
    docs) cat <<'USAGE' ;;
usage: ./dev docs

Makes build/docs/api: a page for each header, one for C++, and a list of all
names, of what the headers say. They need no network and build nothing. A
declaration without a text is an error.
USAGE
    floors) cat <<'USAGE' ;;
usage: ./dev floors [--svg FILE]

Builds, then prints for each folder of src/softgpu and src/ what it uses of
those below, by the symbols of the built objects and by includes, and whatever
is wrong. --svg writes the picture of docs/architecture.md.
USAGE
    bundle) cat <<'USAGE' ;;
usage: ./dev bundle

Builds, and makes bundle/: command, libraries, tests and benchmarks in one
folder that needs nothing but libc and a driver. There: bundle/run.sh
[conformance|programs|parity-record|ptx-record|bench|load|caches|all].
USAGE
    deps) cat <<'USAGE' ;;
usage: ./dev deps [build|test|all|lint|clients|fuzz|package|browser]

Installs the Debian packages that the command of that name lacks, or prints the
lines that do it. build is for demo and bench, all for test --all and test
--long.
USAGE
    format) cat <<'USAGE' ;;
usage: ./dev format

Rewrites every source as .clang-format says, with the version of clang-format
that it is for.
USAGE
    esac
}

# wants_help ARGUMENT...: whether help is asked for. What is behind -- is a program's own.
wants_help() {
    for word in "$@"; do
        case $word in
        -h | --help) return 0 ;;
        --) return 1 ;;
        esac
    done
    return 1
}
