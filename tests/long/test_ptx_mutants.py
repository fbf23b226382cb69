#!/usr/bin/env python3
"""Texts of PTX with a mistake in them: what ptxas of the modelled driver's release refuses is refused when it is loaded,
and what it takes is taken. mutants.txt has what differs, and why.

    test_ptx_mutants.py [--count N] [--seed S] [--show]      more than the test does; --show prints what differs
"""
import argparse
import ctypes
import os
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "tests/harness"), str(ROOT / "tests/clients")]
import environment  # noqa: E402
from tap_report import Report  # noqa: E402

BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", ROOT / "build")).resolve()
UNIT = ROOT / "tests/unit/softgpu"
LONG = os.environ.get("GPUMEM_TEST_LONG") == "1"
COUNT, SEED = int(os.environ.get("GPUMEM_MUTANTS", "6000" if LONG else "600")), 1
DIED = "ptxas died of it"
BATCH = 24  # instructions that ptxas reads together

# ---- the two readers -------------------------------------------------------------------------------------------------


class Softgpu:
    def __init__(self):
        for name in [name for name in os.environ if name.startswith("SOFTGPU_")]:
            del os.environ[name]
        os.environ.update(SOFTGPU_PTX="driver", SOFTGPU_LOG="off", SOFTGPU_MEMORY="64M")
        self.cuda = ctypes.CDLL(BUILD / "lib/gpumem/softgpu/libsoftgpu.so.0")
        context = ctypes.c_void_p()
        assert self.cuda.cuInit(0) == 0 and self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        self.cuda.cuCtxSetCurrent(context)

    def refusal(self, text):
        """What it says of a text; "" if it loads."""
        log, module = ctypes.create_string_buffer(400), ctypes.c_void_p()
        options = (ctypes.c_int * 2)(5, 6)  # the buffer of errors, and its size
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        result = self.cuda.cuModuleLoadDataEx(ctypes.byref(module), text.encode("latin-1"), 2, options, values)
        if result == 0:
            self.cuda.cuModuleUnload(module)
        return "" if result == 0 else log.value.decode("latin-1").strip() or f"error {result}"


class Ptxas:
    def __init__(self, folder):
        self.folder, self.program = folder, os.environ.get("GPUMEM_PTXAS")
        if not self.program:
            python = environment.python_of("ptxas", BUILD)
            self.program = next(python.parents[1].glob("lib/python*/site-packages/nvidia/*/bin/ptxas"))

    def errors(self, text):
        """Lines with what ptxas says of them; line 0 for what it says of none."""
        with tempfile.NamedTemporaryFile(dir=self.folder, suffix=".ptx") as file:
            file.write(text.encode("latin-1"))
            file.flush()
            done = subprocess.run([self.program, "-arch=sm_90a", "-O0", "-o", "/dev/null", file.name], check=False,
                                  capture_output=True, text=True, errors="replace", timeout=100)
        found = {}
        for line, what in re.findall(r"^ptxas (?:.*?, line (\d+); )?(?:error|fatal) *: *(.*)", done.stderr, re.M):
            if "Ptx assembly aborted due to errors" not in what:
                found.setdefault(int(line or 0), what)
        if done.returncode < 0:
            return {0: DIED}
        return found if found or done.returncode == 0 else {0: done.stderr.strip()[-200:] or f"status {done.returncode}"}


# ---- texts -----------------------------------------------------------------------------------------------------------

WORD = re.compile(r'//[^\n]*|"[^"\n]*"|\.?[A-Za-z_$%][\w$]*(?:::\w+)*|0[fFdD][0-9a-fA-F]+|[\d.]+\w*|<<|>>|[^\s\w]')


def strings(text):
    return "".join(piece.encode().decode("unicode_escape") for piece in re.findall(r'"((?:[^"\\]|\\.)*)"', text))


def around():
    """What stands before and behind an instruction in the unit tests."""
    text = (UNIT / "form_text.h").read_text()
    before, behind = re.search(r"FORM_BEFORE(.*?)#define FORM_BEHIND(.*?)#endif", text, re.S).groups()
    return strings(before).replace(".version 9.5", ".version 9.0").replace("sm_90a", "sm_90"), strings(behind)


def instructions():
    text = (UNIT / "program_forms.def").read_text()
    every = [strings(found) for found in re.findall(r'^FORM\(("(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*),', text, re.M)]
    return [one for one in every if "\n" not in one and one.count(";") == 1]


def files():
    found = [path.read_text(encoding="latin-1") for path in sorted((ROOT / "tests/fixtures").rglob("*.ptx"))]
    return [re.sub(r"//[^\n]*", "", text) for text in found if len(text) < 30000]


REGISTERS = ["p0", "p1", "b1", "h0", "h1", "r0", "r1", "r2", "f0", "f1", "d0", "d1", "e0", "e1", "q0", "v4", "sm", "gl", "ct",
             "lo", "kp", "pa", "tx", "su", "L", "fn", "_", "%tid.x", "%clock64", "WARP_SZ", "!p1", "-1", "nothing"]
NUMBERS = ["0", "1", "-1", "2", "3", "15", "16", "17", "31", "32", "33", "64", "100", "255", "256", "65535", "65536",
           "0x7fffffff", "0x80000000", "0xffffffff", "4294967296", "0x7fffffffffffffff", "9223372036854775808",
           "18446744073709551615", "18446744073709551616", "0U", "1.5", "0f3F800000", "0d3FF0000000000000", "0b101", "017"]


class Mutator:
    def __init__(self, seed, words):
        self.random = random.Random(seed)
        self.words = words  # of modifiers

    def one_word(self, word):
        pick = self.random.choice
        if word.startswith("."):
            return pick([pick(self.words), word + pick(self.words), "", word + word])
        if re.match(r"\d", word):
            return pick(NUMBERS)
        if re.match(r"[A-Za-z_%$]", word):
            return pick(REGISTERS)
        return pick(["", word * 2, ",", ";", "{", "}", "[", "]", "(", ")", "+4", "-", "|p2", ":", "+20"])

    def instruction(self, text, others):
        """Another one, which differs in a place or two."""
        places = list(WORD.finditer(text))[:-1]
        for _ in range(self.random.choice((1, 1, 1, 2))):
            at = self.random.choice(places)
            kind = self.random.random()
            if kind < 0.7:
                new = self.one_word(at.group())
            elif kind < 0.8:
                new = ""
            elif kind < 0.9:
                new = self.random.choice([place.group() for place in places])
            else:
                new = self.random.choice([word.group() for word in WORD.finditer(self.random.choice(others))])
            text = text[:at.start()] + new + text[at.end():]
            places = list(WORD.finditer(text))[:-1] or [at]
            if at.end() > len(text):
                break
        return text

    def file(self, text):
        """A text with one of its statements changed, doubled, left out or moved, and which line that is."""
        lines = text.split("\n")
        full = [number for number, line in enumerate(lines) if line.strip() and line.strip() not in "{}()"]
        at = self.random.choice(full)
        kind = self.random.random()
        if kind < 0.12:
            lines[at] += lines[at]
        elif kind < 0.22:
            lines[at] = ""
        elif kind < 0.3:
            other = self.random.choice(full)
            lines[at], lines[other] = lines[other], lines[at]
        else:
            places = list(WORD.finditer(lines[at]))
            word = self.random.choice(places)
            lines[at] = lines[at][:word.start()] + self.one_word(word.group()) + lines[at][word.end():]
        return "\n".join(lines), lines[at].strip()


def modifiers():
    text = (ROOT / "src/softgpu/ptx/ptx_opcodes.c").read_text()
    parts = re.search(r"parts\[\] = \{(.*?)\};", text, re.S).group(1)
    common = "u8 u16 u32 u64 s8 s16 s32 s64 b8 b16 b32 b64 b128 f16 f16x2 bf16 f32 f64 pred v2 v4 v8 rn rz sat ftz lo wide " \
             "shared global local const param volatile relaxed acquire sync aligned cta gpu sys nc cc eq lt".split()
    return ["." + word for word in re.findall(r'"([^"]+)"', parts) + common * 8]


# ---- comparing -------------------------------------------------------------------------------------------------------


def judged(ptxas, before, behind, batch):
    """What ptxas says of each instruction, "" where it takes it. They are read together, on a line each, until no line
    is refused; those behind a wrong word are not read, so that they are asked again."""
    said = dict.fromkeys(batch, "")
    first = before.count("\n") + 1
    left = list(batch)
    while left:
        found = ptxas.errors(before + "\n".join(left) + behind)
        if not found:
            break
        wrong = [number for number in found if first <= number < first + len(left)]
        for number in wrong:
            said[left[number - first]] = found[number]
        if not wrong:  # it names no line of these
            if len(left) == 1:
                said[left[0]] = next(iter(found.values()))
                break
            for half in (left[:len(left) // 2], left[len(left) // 2:]):
                said.update(judged(ptxas, before, behind, half))
            break
        left = [one for number, one in enumerate(left) if number + first not in found]
    return said


def compare(ptxas, softgpu, count, seed):
    """Lines of what differs, and how many texts there were and how many ptxas refuses."""
    before, behind = around()
    forms, whole = instructions(), files()
    mutator = Mutator(seed, modifiers())
    singles = list(dict.fromkeys(mutator.instruction(mutator.random.choice(forms), forms) for _ in range(count * 5 // 6)))
    singles = [one for one in singles if "\n" not in one]
    texts = [mutator.file(mutator.random.choice(whole)) for _ in range(count // 6)]
    batches = [singles[at:at + BATCH] for at in range(0, len(singles), BATCH)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        said = [pair for part in pool.map(lambda batch: judged(ptxas, before, behind, batch), batches) for pair in part.items()]
        of_texts = list(pool.map(lambda pair: next(iter(ptxas.errors(pair[0]).values()), ""), texts))
    asked = [(one, before + one + behind, what) for one, what in said]
    asked += [(line, text, what) for (text, line), what in zip(texts, of_texts)]
    lines = []
    for name, text, theirs in asked:
        ours = softgpu.refusal(text)
        if theirs != DIED and bool(ours) != bool(theirs):
            lines.append(f"taken: {name}  <- {theirs}" if theirs else f"refused: {name}  <- {ours}")
    return lines, len(asked), sum(bool(theirs) for _, _, theirs in asked)


def reasons():
    found = []
    for line in (HERE / "mutants.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            found.append(re.compile(line.split(" => ")[0]))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--show", action="store_true", help="print all that differs")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as folder:
            lines, count, refused = compare(Ptxas(folder), Softgpu(), options.count, options.seed)
    except environment.Unavailable as why:
        print(f"1..0 # SKIP no ptxas: {str(why).splitlines()[-1]}")
        return 0
    known = reasons()
    new = [line for line in lines if not any(pattern.search(line) for pattern in known)]
    if options.show:
        print("\n".join(lines))
    print(f"# {count} texts, of which ptxas refuses {refused}; {len(lines)} differ, {len(new)} without a reason")
    report = Report()
    report.expect(len(lines) * 50 < count, "where the two differ is rare", f"{len(lines)} of {count} texts")
    report.result("texts with a mistake are refused as ptxas refuses them", new)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
