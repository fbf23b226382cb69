#!/usr/bin/env python3
"""Makes forms/*.def: an instruction of each operation, type and modifier that works on registers alone,
from the rules that softgpu decodes by (src/softgpu/ptx/ptx_forms.def), and those that want
more than one statement. What ptxas refuses for sm_90 is left out, so ptxas must be on the path.

    forms.py [--ptxas PROGRAM] [-o FOLDER]
"""
import argparse
import itertools
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
RULES = os.path.join(HERE, "../../../src/softgpu/ptx/ptx_forms.def")

# Operations whose rules give all their forms. The others have forms of their own below, or a reason in
# OTHERWISE; test_forms.py checks that none is missing.
REGULAR = """abs add and bfe bfi bfind bmsk brev clz cnot copysign cos cvt div dp2a dp4a ex2 fma fns lg2 mad
 mad24 max min mul mul24 neg not or popc rcp rem rsqrt sad selp set setp shf shl shr sin slct sqrt sub szext
 tanh testp xor""".split()
BY_HAND = """activemask addc atom bar cvta elect isspacep ld lop3 madc match mma mov movmatrix prmt red redux shfl st
 subc vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vote vset
 vset2 vset4 vshl vshr vsub vsub2 vsub4 ldmatrix stmatrix""".split()
OTHERWISE = {
    "control flow, calls and waits: scenes and random programs":
        "barrier bra brkpt brx exit nanosleep ret trap fence membar griddepcontrol",
    "needs a place in memory that ptxas or the driver lays out: conformance and unit tests":
        "alloca stackrestore stacksave cp discard applypriority createpolicy prefetch prefetchu ldu",
    "asynchronous barriers and clusters: conformance tests": "mbarrier mapa getctarank",
    "fragments without a defined layout: conformance tests": "wmma",
    "textures and surfaces: conformance tests": "istypep suld suq sured sust tex tld4 txq",
    "gives no value": "pmevent",
}

# The files, by the first operation of a form; what is in none is arithmetic.
FILES = {
    "conversions": "cvt",
    "comparisons": "set setp selp slct testp",
    "memory_and_warps": "st shfl vote match redux activemask elect movmatrix bar mma isspacep",
    "video_sums": "vadd vsub vabsdiff",
    "video_choices": "vmin vmax vshl vshr",
    "video_vectors": """vadd2 vadd4 vsub2 vsub4 vavrg2 vavrg4 vabsdiff2 vabsdiff4 vmin2 vmin4 vmax2 vmax4
        vset2 vset4""",
    "video_products": "vmad vset",
}

WIDTH = {"h": 16, "w": 32, "d": 64, "p": 1}
ROUNDINGS = "rn rz rm rp rna rni rzi rmi rpi".split()
COMPARES = "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan".split()


def macros(text):
    return dict(re.findall(r'^#define (\w+)\s+((?:"[^"]*"\s*)+)$', text, re.M))


def words(text, known):
    """A C expression of string literals and macros, joined."""
    parts = re.findall(r'"([^"]*)"|(\w+)', text)
    return "".join(literal if not name else words(known[name], known) for literal, name in parts)


def read_rules():
    with open(RULES, encoding="utf-8") as file:
        text = file.read()
    known = macros(text)
    rules = []
    for line in text.splitlines():
        found = re.match(r"SG_RULE\((\w+), (.*)\)$", line)
        if found:
            fields = re.findall(r'((?:"[^"]*"|[A-Z_0-9]+)(?:\s+(?:"[^"]*"|[A-Z_0-9]+))*)(?:, |$)', found.group(2))
            rules.append((found.group(1), *[words(field, known) for field in fields]))
    return rules


def choices(token):
    """The choices for a word of a rule's modifiers, each with its dots."""
    missing = token.endswith("?")
    token = token[:-1] if missing else token
    if token.startswith("=") or token == "CACHE":
        return [""]
    key, colon, names = token.partition(":")
    if not colon:
        found = [key if key.startswith(".") else "." + key]
    else:
        known = {"r": ROUNDINGS, "c": COMPARES}
        found = ["." + name for name in (known[key] if names == "*" else names.split("|"))]
    return found + [""] if missing else found


def bits_of(kind):
    return 16 if kind in ("f16", "bf16", "e4m3x2", "e5m2x2") else \
        32 if kind in ("tf32", "f16x2", "bf16x2", "u16x2", "s16x2") else int(re.sub(r"\D", "", kind))


def slot(kind, small="w"):
    """The register for a type, and the class of values to try; small: the register for bytes."""
    bits = bits_of(kind)
    letter = small if bits < 16 else {16: "h", 32: "w", 64: "d"}[bits]
    value = {"tf32": "f32", "u16x2": "i16x2", "s16x2": "i16x2"}.get(kind, kind)
    if re.fullmatch(r"[usb]\d+", value):
        value = f"i{WIDTH[letter]}"
    return letter, value


def operands(pattern, kinds):
    """(outs, ins, text) of a rule's operands; with and without the optional ones."""
    cut = re.findall(r"\?.|.", pattern)
    for mask in itertools.product((True, False), repeat=sum(part[0] == "?" for part in cut)):
        flags, taken = iter(mask), ""
        for part in cut:
            if part[0] != "?":
                taken += part
            elif next(flags):
                taken += part[1]
        yield from one_operands(taken, kinds)


def one_operands(pattern, kinds):
    outs, ins, text = "", [], []
    # bf16 is converted from and to bytes in 16-bit registers only.
    small = "h" if "bf16" in kinds else "w"

    def out(letter):
        nonlocal outs
        outs += letter
        return f"${len(outs) - 1}"

    def use(value):
        ins.append(value)
        return "$" + chr(ord("a") + len(ins) - 1)

    for letter in pattern:
        if letter == "d":
            text.append(out(slot(kinds[0], small)[0]))
        elif letter == "U":
            text.append(out("w"))
        elif letter == "W":
            text.append(out({16: "w", 32: "d"}[bits_of(kinds[0])]))
        elif letter in "1234":
            text.append(use(slot(kinds[int(letter) - 1], small)[1]))
        elif letter == "u":
            text.append(use("sh"))
        elif letter == "q":
            text.append(use("i64"))
        elif letter == "w":
            text.append(use({16: "i32", 32: "i64"}[bits_of(kinds[0])]))
        elif letter == "p":
            text.append(out("p"))
        elif letter == "P":
            text.append(use("p"))
        elif letter == "x":
            text.append(out("p") + "|" + out("p"))
        else:
            raise ValueError(f"operand {letter} of {pattern}")
    yield outs, ins, ", ".join(text)


def wanted(op, mods, kinds):
    """Leaves out what only repeats: booleans are tried with some comparisons, set with fewer types."""
    parts = set("".join(mods).split(".")) - {""}
    boolean = parts & {"and", "or", "xor"} if op in ("set", "setp") else set()
    if boolean and not parts & {"lt", "ne", "nan", "hi"}:
        return False
    if op == "set":
        few = kinds[1] in ("s32", "u32", "f32", "f64", "f16", "bf16x2")
        if kinds[0] not in ("u32", "f32") and not (few and parts & {"lt", "neu", "hs", "nan", "ge"}):
            return False
        if boolean and kinds[0] != "u32":
            return False
    return True


def regular(rules):
    for op, modifiers, types, pattern in rules:
        if op not in REGULAR:
            continue
        lists = [choices(token) for token in modifiers.split()]
        kinds_of = [kind.rstrip("?").split("|") for kind in types.split()]
        for mods in itertools.product(*lists):
            for kinds in itertools.product(*kinds_of):
                if kinds == ("pred",):
                    for outs, ins, text in one_operands(pattern, kinds):
                        yield outs, ins, f"{op}.pred {text};"
                    continue
                if not wanted(op, mods, kinds):
                    continue
                for outs, ins, text in operands(pattern, kinds):
                    yield outs, ins, f"{op}{''.join(mods)}{''.join('.' + kind for kind in kinds)} {text};"


def carries():
    """Chains: the first instruction writes the carry, which the second reads and writes."""
    for bits, letter in ((32, "w"), (64, "d")):
        for sign in "us":
            kind = f"{sign}{bits}"
            for first, second in itertools.product(("add", "sub"), repeat=2):
                yield letter * 3, [f"i{bits}"] * 4, \
                    f"{first}.cc.{kind} $0, $a, $b; {second}c.cc.{kind} $1, $c, $d; addc.{kind} $2, 0, 0;"
            yield letter * 2, [f"i{bits}"] * 4, f"sub.cc.{kind} $0, $a, $b; subc.{kind} $1, $c, $d;"
            for half in ("lo", "hi"):
                yield letter * 3, [f"i{bits}"] * 6, \
                    f"mad.{half}.cc.{kind} $0, $a, $b, $c; madc.{half}.cc.{kind} $1, $d, $e, $f; addc.{kind} $2, 0, 0;"
                yield letter * 2, [f"i{bits}"] * 5, f"add.cc.{kind} $0, $a, $b; madc.{half}.{kind} $1, $c, $d, $e;"


def bits():
    for table in (0x00, 0xff, 0x80, 0xfe, 0x96, 0xe8, 0xca, 0xd8, 0x1b, 0x72):
        yield "w", ["i32"] * 3, f"lop3.b32 $0, $a, $b, $c, {table:#04x};"
    for table, way in itertools.product((0x96, 0x01, 0x80), ("and", "or")):
        yield "wp", ["i32"] * 3 + ["p"], f"lop3.{way}.b32 $0|$1, $a, $b, $c, {table:#04x}, $d;"
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        yield "w", ["i32", "i32", "sel"], f"prmt.b32{mode} $0, $a, $b, $c;"
    for fill in ("b16", "b32", "b64"):
        letter, value = slot(fill)
        yield letter, [value], f"mov.{fill} $0, $a;"
    yield "ww", ["i64"], "mov.b64 {$0,$1}, $a;"
    yield "d", ["i32", "i32"], "mov.b64 $0, {$a,$b};"
    yield "hh", ["i32"], "mov.b32 {$0,$1}, $a;"
    yield "w", ["i16", "i16"], "mov.b32 $0, {$a,$b};"
    yield "hhhh", ["i64"], "mov.b64 {$0,$1,$2,$3}, $a;"
    yield "d", ["i16"] * 4, "mov.b64 $0, {$a,$b,$c,$d};"
    yield "p", ["p"], "mov.pred $0, $a;"
    for negated in ("and", "or", "xor", "not"):
        text = "!$a" if negated == "not" else "$a, $b"
        if negated != "not":
            yield "p", ["p", "p"], f"{negated}.pred $0, {text};"
    for pack in ("u16", "s16"):
        yield "w", ["i32", "i32"], f"cvt.pack.sat.{pack}.s32 $0, $a, $b;"
    for pack in ("u8", "s8", "u4", "s4", "u2", "s2"):
        yield "w", ["i32"] * 3, f"cvt.pack.sat.{pack}.s32.b32 $0, $a, $b, $c;"
    for space in ("global", "shared", "local", "const"):
        yield "pp", ["i32"], f"isspacep.{space} $0, $X; isspacep.{space} $1, $Y;"
    yield "p", ["i32"], "{ .reg .b64 t, u; cvt.u64.u32 t, $S; cvta.shared.u64 u, t; cvta.to.shared.u64 u, u; setp.eq.u64 $0, t, u; }"


def warps():
    every = "-1"
    for way in ("up", "down", "bfly", "idx"):
        yield "wp", ["i32", "lane"], f"shfl.sync.{way}.b32 $0|$1, $a, $b, {0 if way == 'up' else 31}, {every};"
        yield "wp", ["i32", "lane"], f"shfl.sync.{way}.b32 $0|$1, $a, $b, {0x1800 if way == 'up' else 0x181f}, {every};"
        yield "wp", ["i32", "lane", "sh"], f"shfl.sync.{way}.b32 $0|$1, $a, $b, $c, {every};"
    for way in ("all", "any", "uni"):
        yield "p", ["p"], f"vote.sync.{way}.pred $0, $a, {every};"
        yield "p", ["p"], f"vote.sync.{way}.pred $0, !$a, {every};"
    yield "w", ["p"], f"vote.sync.ballot.b32 $0, $a, {every};"
    for kind in ("b32", "b64"):
        value = slot(kind)[1]
        for few in (value, "few" + kind[1:]):
            yield "w", [few], f"match.sync.any.{kind} $0, $a, {every};"
            yield "wp", [few], f"match.sync.all.{kind} $0|$1, $a, {every};"
    for way in ("add", "min", "max"):
        for kind in ("u32", "s32"):
            yield "w", ["i32"], f"redux.sync.{way}.{kind} $0, $a, {every};"
    for way in ("and", "or", "xor"):
        yield "w", ["i32"], f"redux.sync.{way}.b32 $0, $a, {every};"
    yield "w", ["p"], "activemask.b32 $0;"
    yield "w", ["p"], "mov.u32 $0, 0; @$a activemask.b32 $0;"
    yield "wp", ["i32"], f"elect.sync $0|$1, {every};"
    yield "w", ["i32"], "movmatrix.sync.aligned.m8n8.trans.b16 $0, $a;"
    for way in ("and", "or"):
        yield "p", ["p"], f"bar.red.{way}.pred $0, 1, $a;"
        yield "p", ["p"], f"bar.red.{way}.pred $0, 1, !$a;"
    yield "w", ["p"], "bar.red.popc.u32 $0, 1, $a;"


def video():
    """Scalar forms with some choices of parts; vectors of two and four with masks and selectors."""
    parts = [("", "", ""), ("", ".b0", ".b3"), ("", ".h1", ".h0"), (".b2", ".b1", ""), (".h0", "", ".b2")]
    for op in ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr"):
        ends = (".clamp", ".wrap") if op in ("vshl", "vshr") else ("",)
        last = ("u32",) if op in ("vshl", "vshr") else ("u32", "s32")
        for d, a, b in itertools.product(("u32", "s32"), ("u32", "s32"), last):
            for sat, end in itertools.product(("", ".sat"), ends):
                for to, left, right in parts:
                    name = f"{op}.{d}.{a}.{b}{sat}{end}"
                    second = "sh" if op in ("vshl", "vshr") else "i32"
                    if not to:
                        yield "w", ["i32", second], f"{name} $0, $a{left}, $b{right};"
                        for way in ("add", "min", "max"):
                            yield "w", ["i32", second, "i32"], f"{name}.{way} $0, $a{left}, $b{right}, $c;"
                    else:
                        yield "w", ["i32", second, "i32"], f"{name} $0{to}, $a{left}, $b{right}, $c;"
    for sides in itertools.product(("u32", "s32"), repeat=2):
        for end in ("", ".shr7", ".shr15", ".po", ".po.shr7"):
            for sat, d in itertools.product(("", ".sat"), ("u32", "s32")):
                for left, right in (("", ""), (".b1", ".h1"), (".h0", ".b3")):
                    name = f"vmad.{d}.{'.'.join(sides)}" + (".po" if ".po" in end else "") + sat + end.replace(".po", "")
                    yield "w", ["i32"] * 3, f"{name} $0, $a{left}, $b{right}, $c;"
        for compare in ("eq", "ne", "lt", "le", "gt", "ge"):
            yield "w", ["i32"] * 2, f"vset.{'.'.join(sides)}.{compare} $0, $a.b1, $b;"
            for way in ("add", "min", "max"):
                yield "w", ["i32"] * 3, f"vset.{'.'.join(sides)}.{compare}.{way} $0, $a, $b.h1, $c;"
            for count in "24":
                yield "w", ["i32"] * 3, f"vset{count}.{'.'.join(sides)}.{compare} $0, $a, $b, $c;"
                yield "w", ["i32"] * 3, f"vset{count}.{'.'.join(sides)}.{compare}.add $0, $a, $b, $c;"
    for op, count in itertools.product(("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"), "24"):
        swaps = [("", "", ""), (".h0", ".h10", ".h32")] if count == "2" else [("", "", ""), (".b20", ".b7610", ".b3210")]
        for d, a, b in itertools.product(("u32", "s32"), repeat=3):
            for end in ("", ".sat", ".add"):
                for to, left, right in swaps:
                    yield "w", ["i32"] * 3, f"{op}{count}.{d}.{a}.{b}{end} $0{to}, $a{left}, $b{right}, $c;"


def memory():
    """Loads that widen, stores that narrow, atomics on the thread's own cell."""
    for space, at in (("global", "$G"), ("shared", "$S")):
        for kind in ("u8", "s8", "u16", "s16", "u32", "s32"):
            for letter, bits in (("w", 32), ("d", 64)):
                if int(kind[1:]) <= bits:
                    yield letter, ["i64"], f"st.{space}.b64 [{at}], $a; ld.{space}.{kind} $0, [{at}+1-1];"
        for kind, value in (("b8", "i32"), ("b16", "i32"), ("b16", "i16"), ("b32", "i64"), ("b32", "i32")):
            yield "d", [value], f"st.{space}.{kind} [{at}], $a; ld.{space}.b64 $0, [{at}];"
        yield "dww", ["i32", "i64"], f"st.{space}.b64 [{at}+8], $b; st.{space}.b32 [{at}+4], $a; " \
            f"ld.{space}.v2.b32 {{$1,$2}}, [{at}+8]; ld.{space}.b64 $0, [{at}];"
        yield "wwww", ["i32"] * 4, f"st.{space}.v4.b32 [{at}], {{$a,$b,$c,$d}}; ld.{space}.v4.b32 {{$3,$2,$1,$0}}, [{at}];"
        yield "www", ["i32"] * 2, f"st.{space}.v2.b16 [{at}], {{$a,$b}}; ld.{space}.u32 $0, [{at}]; " \
            f"ld.{space}.v2.u8 {{$1,$2}}, [{at}+2];"
        yield from atomics(space, at)


def atomics(space, at):
    kinds = [(way, kind) for way in ("add", "min", "max") for kind in ("u32", "s32", "u64", "s64", "f32", "f64")]
    kinds += [(way, kind) for way in ("and", "or", "xor", "exch") for kind in ("b32", "b64")]
    kinds += [("inc", "u32"), ("dec", "u32")]
    kinds += [(f"{way}.noftz", kind) for way in ("add", "min", "max") for kind in ("f16", "bf16", "f16x2", "bf16x2")]
    for way, kind in kinds:
        letter, value = slot(kind)
        size = f"b{bits_of(kind)}"
        start = f"st.{space}.{size} [{at}], $a; "
        yield letter * 2, [value, value], f"{start}atom.{space}.{way}.{kind} $0, [{at}], $b; ld.{space}.{size} $1, [{at}];"
        if way != "exch":
            yield letter, [value, value], f"{start}red.{space}.{way}.{kind} [{at}], $b; ld.{space}.{size} $0, [{at}];"
        generic = f"{start}atom.{way}.{kind} $0, [$X], $b; ld.{space}.{size} $1, [{at}];"
        yield letter * 2, [value, value], generic.replace("$X", at if space == "global" else "$Y")
    for kind in ("b16", "b32", "b64"):
        letter, value = slot(kind)
        yield letter * 2, ["few" + kind[1:]] * 3, \
            f"st.{space}.{kind} [{at}], $a; atom.{space}.cas.{kind} $0, [{at}], $b, $c; ld.{space}.{kind} $1, [{at}];"
    yield "dddd", ["few64"] * 4 + ["i64"] * 2, f"st.{space}.v2.b64 [{at}], {{$a,$b}}; {{ .reg .b128 o, c, n; " \
        f"mov.b128 c, {{$c,$d}}; mov.b128 n, {{$e,$f}}; atom.{space}.cas.b128 o, [{at}], c, n; mov.b128 {{$0,$1}}, o; }} " \
        f"ld.{space}.v2.b64 {{$2,$3}}, [{at}];"
    yield "dddd", ["i64"] * 4, f"st.{space}.v2.b64 [{at}], {{$a,$b}}; {{ .reg .b128 o, n; " \
        f"mov.b128 n, {{$c,$d}}; atom.{space}.exch.b128 o, [{at}], n; mov.b128 {{$0,$1}}, o; }} " \
        f"ld.{space}.v2.b64 {{$2,$3}}, [{at}];"
    if space == "global":
        for count, kind in ((2, "f32"), (4, "f32"), (2, "f16x2"), (4, "f16x2"), (4, "bf16x2"), (2, "f16"), (8, "bf16")):
            letter, value = slot(kind)
            size = bits_of(kind) // 8
            names = [chr(ord("a") + i) for i in range(count)]
            stores = " ".join(f"st.global.b{size * 8} [$G+{i * size}], $a;" for i in range(count))
            loads = " ".join(f"ld.global.b{size * 8} ${i}, [$G+{i * size}];" for i in range(count))
            values = ",".join("$" + chr(ord(name) + 1) for name in names)
            noftz = "" if kind == "f32" else ".noftz"
            yield letter * count, [value] * (count + 1), \
                f"{stores} red.global.v{count}.{kind}.add{noftz} [$G], {{{values}}}; {loads}"


def matrices():
    """Fragments of full warps: shape, types of D, A, B, C, registers of each."""
    def fragment(first, count):
        return "{" + ",".join("$" + chr(ord("a") + first + i) for i in range(count)) + "}"

    rows = []
    for d, c in itertools.product(("f16", "f32"), repeat=2):
        if d == c:
            rows.append(("m16n8k8", d, "f16", "f16", c, 2, 1))
            rows.append(("m16n8k16", d, "f16", "f16", c, 4, 2))
    rows += [("m16n8k8", "f32", "bf16", "bf16", "f32", 2, 1), ("m16n8k16", "f32", "bf16", "bf16", "f32", 4, 2),
             ("m16n8k4", "f32", "tf32", "tf32", "f32", 2, 1), ("m16n8k8", "f32", "tf32", "tf32", "f32", 4, 2),
             ("m8n8k4", "f64", "f64", "f64", "f64", 1, 1), ("m16n8k4", "f64", "f64", "f64", "f64", 2, 1),
             ("m16n8k8", "f64", "f64", "f64", "f64", 4, 2), ("m16n8k16", "f64", "f64", "f64", "f64", 8, 4)]
    for a, b in itertools.product(("u8", "s8"), repeat=2):
        rows += [("m8n8k16", "s32", a, b, "s32", 1, 1), ("m16n8k16", "s32", a, b, "s32", 2, 1),
                 ("m16n8k32", "s32", a, b, "s32", 4, 2)]
    for a, b in itertools.product(("u4", "s4"), repeat=2):
        rows += [("m8n8k32", "s32", a, b, "s32", 1, 1), ("m16n8k32", "s32", a, b, "s32", 2, 1),
                 ("m16n8k64", "s32", a, b, "s32", 4, 2)]
    for a, b in itertools.product(("e4m3", "e5m2"), repeat=2):
        rows += [("m16n8k32", "f32", a, b, "f32", 4, 2), ("m16n8k32", "f16", a, b, "f16", 4, 2),
                 ("m16n8k16", "f32", a, b, "f32", 2, 1), ("m16n8k16", "f16", a, b, "f16", 2, 1)]
    pack = {"f16": ("mf16x2", "f16x2"), "bf16": ("mbf16x2", "bf16x2"), "tf32": ("mf32", "f32"), "f64": ("mf64", "f64")}
    for shape, d, a, b, c, na, nb in rows:
        edge = 2 if d == "f64" or shape.startswith("m8") else 4
        edge = 4 if shape.startswith("m16") and d == "f64" else 2 if shape.startswith("m8") else edge
        nd = edge // 2 if d == "f16" else edge
        letter = "d" if d == "f64" else "w"
        for choice in (0, 1):
            left = pack.get(a, ("i32", "r32"))[choice]
            right = pack.get(b, ("i32", "r32"))[choice]
            add = {"f16": ("mf16x2", "f16x2"), "f32": ("mf32", "f32"), "f64": ("mf64", "f64"),
                   "s32": ("i32", "i32")}[c][choice]
            if a in ("e4m3", "e5m2"):
                left = right = ("me8", "r32")[choice]
            ins = [left] * na + [right] * nb + [add] * nd
            to = "{" + ",".join(f"${i}" for i in range(nd)) + "}"
            text = f"{to}, {fragment(0, na)}, {fragment(na, nb)}, {fragment(na + nb, nd)};"
            for end in ("", ".satfinite") if d == "s32" else ("",):
                yield letter * nd, ins, f"mma.sync.aligned.{shape}.row.col{end}.{d}.{a}.{b}.{c} {text}"
    for shape, na, nb, nd in (("m8n8k128", 1, 1, 2), ("m16n8k128", 2, 1, 4), ("m16n8k256", 4, 2, 4)):
        for way in ("xor", "and"):
            to = "{" + ",".join(f"${i}" for i in range(nd)) + "}"
            yield "w" * nd, ["r32"] * (na + nb) + ["i32"] * nd, \
                f"mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.{way}.popc {to}, {fragment(0, na)}, " \
                f"{fragment(na, nb)}, {fragment(na + nb, nd)};"
    for shape, layouts in (("m8n8k4", itertools.product(("row", "col"), repeat=2)),):
        for a, b in layouts:
            yield "w" * 8, ["mf16x2"] * 4 + ["mf32"] * 8, \
                f"mma.sync.aligned.{shape}.{a}.{b}.f32.f16.f16.f32 {{$0,$1,$2,$3,$4,$5,$6,$7}}, {fragment(0, 2)}, " \
                f"{fragment(2, 2)}, {fragment(4, 8)};"
    for count in (1, 2, 4):
        names = ",".join(f"${i}" for i in range(count))
        values = fragment(0, count)
        for end in ("", ".trans"):
            yield "w" * count, ["r32"] * 4, \
                f"st.shared.v4.b32 [$S], {{$a,$b,$c,$d}}; bar.warp.sync -1; " \
                f"ldmatrix.sync.aligned.m8n8.x{count}{end}.shared.b16 {{{names}}}, [$S];"
            yield "wwww", ["r32"] * 4, \
                f"st.shared.v4.b32 [$S], {{$a,$b,$c,$d}}; bar.warp.sync -1; " \
                f"stmatrix.sync.aligned.m8n8.x{count}{end}.shared.b16 [$S], {values}; bar.warp.sync -1; " \
                "ld.shared.v4.b32 {$0,$1,$2,$3}, [$S];"


def every_form():
    seen, found = set(), []
    rules = read_rules()
    for outs, ins, text in itertools.chain(regular(rules), carries(), bits(), warps(), video(), memory(), matrices()):
        if text not in seen:
            seen.add(text)
            found.append((outs, ins, text))
    return found


REGISTER = {"i16": "h", "f16": "h", "bf16": "h", "e4m3x2": "h", "e5m2x2": "h", "few16": "h", "i64": "d", "f64": "d",
            "mf64": "d", "few64": "d", "p": "p"}


def statement(form):
    """The form in registers whose names say their width, for ptxas."""
    outs, ins, text = form
    for i in range(len(outs) - 1, -1, -1):
        text = text.replace(f"${i}", f"o{outs[i]}{i}")
    for i, value in enumerate(ins):
        text = text.replace(f"${chr(ord('a') + i)}", f"i{REGISTER.get(value, 'w')}{i}")
    return text.replace("$G", "rg").replace("$S", "rs").replace("$X", "rg").replace("$Y", "ry")


def taken(forms, ptxas):
    """The forms that ptxas accepts: each is on a line of its own, and lines with errors drop out."""
    head = [".version 9.0", ".target sm_90", ".address_size 64"]
    regs = []
    for kind, width in (("h", "b16"), ("w", "b32"), ("d", "b64"), ("p", "pred")):
        regs.append(f".reg .{width} o{kind}<16>, i{kind}<32>;")
    good = list(forms)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "forms.ptx")
        for _ in range(400):
            lines = head + [".entry k() {", *regs, ".reg .b64 rg, ry; .reg .b32 rs;",
                            *[statement(form) for form in good], "ret; }"]
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
            done = subprocess.run([ptxas, "-arch=sm_90", "-O0", "-o", "/dev/null", path], stderr=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode == 0:
                return good
            bad = {int(n) for n in re.findall(r"line (\d+); (?:error|fatal)", done.stdout + done.stderr)}
            first = len(head) + 1 + len(regs) + 1 + 1
            left = [form for i, form in enumerate(good) if i + first not in bad]
            if len(left) == len(good):
                sys.exit("forms: ptxas fails without a line:\n" + done.stderr[:2000])
            good = left
    sys.exit("forms: ptxas never comes to an end")


def file_of(text):
    operation = re.search(r"(?<![\w$%.])[a-z]\w*", text).group()
    return next((name for name, operations in FILES.items() if operation in operations.split()), "arithmetic")


def alike(rows, place):
    """Rows that differ in their word at a place only are one row, with all these words to choose from."""
    found = {}
    for row in rows:
        free = place < len(row) and row[place][0].startswith(".")
        key = (row[:place], row[place + 1:]) if free else (row, None)
        found[key] = found.get(key, ()) + (row[place] if free else ())
    return [before if behind is None else (*before, words, *behind) for (before, behind), words in found.items()]


def perhaps(rows, place):
    """A row that lacks just the word at a place that another has is that other one's empty choice."""
    left = dict.fromkeys(rows)
    for row in rows:
        without = row[:place] + row[place + 1:]
        if row in left and without in left and row != without and row[place][0][0] == "." and "" not in row[place]:
            del left[without]
            left = {(*row[:place], (*row[place], ""), *row[place + 1:]) if one == row else one: None for one in left}
    return list(left)


def merged(rows):
    """Rows, each a list of words, as few rows whose words are tuples of words to choose from."""
    rows = [tuple((word,) for word in row) for row in rows]
    before = None
    while before != len(rows):
        before = len(rows)
        for step in (alike, perhaps):
            for place in reversed(range(max(map(len, rows)))):
                rows = step(rows, place)
    return rows


def pattern(row):
    return "".join(words[0] if len(words) == 1 else f"<{'|'.join(words)}>" for words in row)


def put_row(file, outs, ins, text):
    """In lines of 100 columns, the text cut where a word ends."""
    line = f'FORM("{outs}", "{ins}", "'
    for word in re.findall(r"[^|> ]*[|> ]?", text):
        if len(line) + len(word) > 98:
            file.write((line.removesuffix(' "') if line.endswith(', "') else line + '"') + "\n")
            line = '     "'
        line += word
    file.write(line + '")\n')


def write(folder, forms):
    files = {name: {} for name in [*FILES, "arithmetic"]}
    for outs, ins, text in forms:
        of_kind = files[file_of(text)].setdefault((outs, " ".join(ins)), [])
        of_kind.append(re.findall(r"\.\w+|[^.]+|\.", text))
    for name, kinds in files.items():
        with open(os.path.join(folder, f"{name}.def"), "w", encoding="utf-8") as file:
            file.write("/* Made by forms.py. FORM(registers written, classes of what is read, statements): a form for\n"
                       " * each choice among the words of <a|b|c>. */\n"
                       "/* clang-format off */\n")
            for (outs, ins), rows in kinds.items():
                for row in merged(rows):
                    put_row(file, outs, ins, pattern(row))
            file.write("/* clang-format on */\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("-o", default=os.path.join(HERE, "forms"))
    options = parser.parse_args()
    every = every_form()
    good = taken(every, options.ptxas)
    write(options.o, good)
    print(f"{len(good)} forms, {len(every) - len(good)} refused by ptxas")


if __name__ == "__main__":
    main()
