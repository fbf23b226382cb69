#!/usr/bin/env python3
"""Writes a program that asks a CUDA runtime questions of each function of tiers 1 and 2: each argument in turn is
wrong (NULL, 0, too large, of another kind, gone), the others are right; then two at a time.

questions.py FILE.cu [HEADER]: functions that HEADER, cuda_runtime_api.h, does not declare are left out.
questions.py FILE.cu --all HEADER: all pairs, and of tier 3 as well.
questions.py FILE.cu RECORDING: those that RECORDING (a .txt, perhaps packed as .txt.xz) has the answers of."""
import itertools
import lzma
import random
import re
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3]
PAIRS = 1500
# They end or replace what the next questions need, or wait for another process.
LEFT_OUT = {"cudaDeviceReset", "cudaPeekAtLastError", "cudaGetLastError", "cudaProfilerStart", "cudaProfilerStop",
            "cudaIpcGetEventHandle", "cudaSetDeviceFlags", "cudaDeviceSetLimit", "cudaDeviceSetMemPool"}

HANDLES = {
    "cudaStream_t": ["stream()", "nullptr", "gone(stream)", "capturing()"],
    "cudaEvent_t": ["event()", "nullptr", "gone(event)", "unrecorded()", "untimed()"],
    "cudaGraph_t": ["graph()", "nullptr", "gone(graph)"],
    "cudaGraphNode_t": ["node()", "nullptr"],
    "cudaGraphExec_t": ["exec()", "nullptr", "gone(exec)"],
    "cudaMemPool_t": ["pool()", "nullptr", "gone(pool)"],
    "cudaArray_t": ["array()", "nullptr", "gone(array)"],
    "cudaArray_const_t": ["array()", "nullptr"],
    "cudaMipmappedArray_t": ["mipmapped()", "nullptr"],
    "cudaMipmappedArray_const_t": ["mipmapped()", "nullptr"],
    "cudaUserObject_t": ["object()", "nullptr"],
}
VALUES = {
    "dim3": ["dim3(1)", "dim3(0)", "dim3(1, 0, 1)", "dim3(2048)", "dim3(1, 1, 1u << 20)"],
    "size_t": ["(size_t)16", "(size_t)0", "(size_t)1 << 62", "~(size_t)0", "(size_t)65537"],
    "int": ["0", "-1", "99"],
    "unsigned int": ["0u", "~0u", "7u"],
    "unsigned long long": ["0ull", "~0ull"],
    "cudaExtent": ["extent(16, 16, 1)", "extent(0, 0, 0)", "extent(16, 0, 0)", "extent(16, 16, 0)",
                   "extent((size_t)1 << 40, 16, 1)"],
    "cudaPitchedPtr": ["pitched(device_memory())", "pitched(nullptr)", "pitched(plain)"],
    "cudaMemLocation": ["location(1, 0)", "location(1, 99)", "location(99, 0)", "location(2, 0)"],
    "cudaMemcpyKind": ["cudaMemcpyDefault", "(cudaMemcpyKind)9", "cudaMemcpyHostToHost", "cudaMemcpyHostToDevice",
                       "cudaMemcpyDeviceToHost", "cudaMemcpyDeviceToDevice"],
    "cudaHostFn_t": ["host_function", "nullptr"],
    "cudaStreamCallback_t": ["stream_callback", "nullptr"],
    "const char *": ['"cuMemAlloc"', "nullptr", '""', '"nonsense"'],
    "void **args": ["arguments"],
    "const void *func": ["(const void *)kernel", "nullptr", "(const void *)host_function", "(const void *)symbol_address"],
    "const void *symbol": ["symbol_address", "nullptr", "(const void *)kernel", "(const void *)plain"],
    "const cudaChannelFormatDesc *": ["floats()", "nullptr", "(const cudaChannelFormatDesc *)zero"],
}
MEMORY = ["device_memory()", "nullptr", "(void *)64", "plain", "freed_memory()", "pinned()", "managed()", "from_pool()"]
FIRST = {"cudaHostUnregister": "registered()", "cudaHostRegister": "plain", "cudaHostGetDevicePointer": "registered()",
         "cudaHostGetFlags": "pinned()", "cudaFreeHost": "pinned()", "cudaMemAdvise": "managed()",
         "cudaMemPrefetchAsync": "managed()", "cudaStreamAttachMemAsync": "managed()", "cudaFreeAsync": "from_pool()"}


def parameters(text):
    for each in re.split(r", (?![^()]*\))", text):
        if each == "void":
            return
        match = re.match(r"(.*?[ *])(\w+)$", each)
        yield match.group(1).strip(), match.group(2)


def values(function, kind, name):
    by_name = {"args": "void **args", "func": "const void *func", "symbol": "const void *symbol", "symbolPtr": "const void *func"}
    if name in by_name and f"{kind} ".startswith(by_name[name].rsplit(" ", 1)[0].split("*")[0]):
        return VALUES.get(by_name[name])
    if kind in HANDLES:
        return HANDLES[kind]
    if kind in VALUES:
        return VALUES[kind]
    if kind in ("void *", "const void *"):
        first = FIRST.get(function)
        return [first, *(each for each in MEMORY if each != first)] if first else MEMORY
    if kind.endswith("*"):
        return [f"({kind})out", "nullptr"] if not kind.startswith("const") else [f"({kind})zero", "nullptr"]
    return [f"none<{kind}>()", f"({kind})9999"] if re.match(r"cuda\w*(Attr\w*|Limit|Cache|Mode|Advise|Type|ID)$", kind) else \
        [f"none<{kind}>()"]


def rows(tiers="12"):
    text = (SOURCE / "src/runtime/runtime.def").read_text()
    found = re.findall(r"^RT_(?:PLAIN|FN)\((\w+), (?:BOTH|ONLY13), [" + tiers + r"], \w+, \w+, \w+, \w+, \(([^()]*(?:\([^()]*\))*[^()]*)\), ", text, re.M)
    return [(name, list(parameters(params))) for name, params in found if name not in LEFT_OUT and name.startswith("cuda")]


def asked(every):
    """(function, kinds, arguments) of each question."""
    chosen = random.Random(1)
    pairs = []
    for function, params in rows("123" if every else "12"):
        choices = [values(function, kind, name) for kind, name in params]
        right = [each[0] for each in choices]
        kinds = [kind for kind, _ in params]
        yield function, kinds, right
        for at, each in enumerate(choices):
            for wrong in each[1:]:
                yield function, kinds, [*right[:at], wrong, *right[at + 1:]]
        for (one, ones), (two, twos) in itertools.combinations(enumerate(choices), 2):
            for first, second in itertools.product(ones[1:], twos[1:]):
                arguments = list(right)
                arguments[one], arguments[two] = first, second
                pairs.append((function, kinds, arguments))
    yield from sorted(pairs if every else chosen.sample(pairs, min(PAIRS, len(pairs))), key=lambda pair: pair[0])


GONE = """
static const void *const symbol_address = (const void *)symbol;
static cudaStream_t gone_stream() { cudaStream_t made = stream(); cudaStreamDestroy(made); return made; }
static cudaEvent_t gone_event() { cudaEvent_t made = event(); cudaEventDestroy(made); return made; }
static cudaGraph_t gone_graph() { cudaGraph_t made = graph(); cudaGraphDestroy(made); return made; }
static cudaGraphExec_t gone_exec() { cudaGraphExec_t made = exec(); cudaGraphExecDestroy(made); return made; }
static cudaMemPool_t gone_pool() { cudaMemPool_t made = pool(); cudaMemPoolDestroy(made); return made; }
static cudaArray_t gone_array() { cudaArray_t made = array(); cudaFreeArray(made); return made; }
#define gone(what) gone_##what()
"""


def read_answers(path):
    """[question, answer, whether the context was lost then] for each question of a run or a recording."""
    raw = Path(path).read_bytes()
    text = (lzma.decompress(raw) if str(path).endswith(".xz") else raw).decode(errors="replace")
    found = []
    for line in text.splitlines():
        if line == "# the context is lost" and found:
            found[-1][2] = True
        elif not line.startswith("#") and " = " in line:
            question, _, answer = line.rpartition(" = ")
            found.append([question, answer, False])
    return found


def made_up(header, every=False):
    """(function, kinds, text) of each question of asked() whose function `header` declares."""
    seen = set()
    for function, kinds, arguments in asked(every):
        text = f"{function}({', '.join(arguments)})"
        if text not in seen and (header is None or re.search(rf"\b{function}\(", header)):
            seen.add(text)
            yield function, kinds, text


def recorded(path):
    """The same of each question of a recording, in its order."""
    kinds = {name: [kind for kind, _ in params] for name, params in rows()}
    for question, _, _ in read_answers(path):
        function = question.partition("(")[0]
        yield function, kinds[function], question


def main():
    given, every = sys.argv[-1] if len(sys.argv) > 2 else None, "--all" in sys.argv
    lines, table = [f'#include "{Path(__file__).with_name("base.cuh")}"', GONE], []
    chosen = recorded(given) if given and re.search(r"\.txt(\.xz)?$", given) else \
        made_up(Path(given).read_text() if given else None, every)
    for function, kinds, text in chosen:
        number = len(table)
        lines.append(f"static cudaError_t q{number}() {{ return ((cudaError_t(CUDARTAPI *)({', '.join(kinds)}))"
                     f"{function}){text[len(function):]}; }}")
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        table.append(f'    {{"{escaped}", q{number}}},')
    lines += ["const struct question questions[] = {", *table, "};",
              f"const int question_count = {len(table)};"]
    Path(sys.argv[1]).write_text("\n".join(lines) + "\n")
    print(f"{len(table)} questions")


if __name__ == "__main__":
    main()
