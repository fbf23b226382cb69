"""gpumem run --check race: what streams, events and the host order, and what the reports say."""
import json
import re

import checked
import harness

# fill writes n + the thread at each word, add reads it; last: a kernel that races with itself.
PTX = """
.visible .entry fill(.param .u64 to, .param .u64 n) {
.reg .b32 %r<8>; .reg .b64 %rd<8>;
ld.param.u64 %rd1, [to]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x;
mul.wide.u32 %rd2, %r2, 4; add.u64 %rd1, %rd1, %rd2; add.u32 %r1, %r1, %r2;
.loc 1 10 3
st.global.u32 [%rd1], %r1; // fills
ret;
}
.visible .entry add(.param .u64 to, .param .u64 from) {
.reg .b32 %r<8>; .reg .b64 %rd<8>;
ld.param.u64 %rd1, [to]; ld.param.u64 %rd3, [from]; mov.u32 %r2, %tid.x;
mul.wide.u32 %rd2, %r2, 4; add.u64 %rd1, %rd1, %rd2; add.u64 %rd3, %rd3, %rd2;
.loc 1 20 7
ld.global.u32 %r1, [%rd3]; // reads
st.global.u32 [%rd1], %r1;
ret;
}
.visible .entry early(.param .u64 to, .param .u64 from) {
.reg .b32 %r<8>; .reg .b64 %rd<8>;
ld.param.u64 %rd1, [to]; ld.param.u64 %rd3, [from]; mov.u32 %r2, %tid.x;
mul.wide.u32 %rd2, %r2, 4; add.u64 %rd1, %rd1, %rd2; add.u64 %rd3, %rd3, %rd2;
ld.global.u32 %r1, [%rd3];
griddepcontrol.wait;
st.global.u32 [%rd1], %r1;
ret;
}
.visible .entry late(.param .u64 to, .param .u64 from) {
.reg .b32 %r<8>; .reg .b64 %rd<8>;
ld.param.u64 %rd1, [to]; ld.param.u64 %rd3, [from]; mov.u32 %r2, %tid.x;
mul.wide.u32 %rd2, %r2, 4; add.u64 %rd1, %rd1, %rd2; add.u64 %rd3, %rd3, %rd2;
griddepcontrol.wait;
ld.global.u32 %r1, [%rd3];
st.global.u32 [%rd1], %r1;
ret;
}
.visible .entry neighbour(.param .u64 to) {
.reg .b32 %r<8>; .reg .b64 %rd<8>; .shared .b32 s[65];
mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 2; mov.u32 %r4, s; add.u32 %r4, %r4, %r3;
.loc 1 30 1
st.shared.u32 [%r4], %r2;
.loc 1 32 1
ld.shared.u32 %r5, [%r4+4];
ret;
}
"""

BODY = """
a, b = stream(), stream()
event = ctypes.c_void_p()
ok(cuda.cuEventCreate(ref(event), 2))
x, y = alloc(4096), alloc(4096)
put(x, bytes(4096)); put(y, bytes(4096))
def record(stream): ok(cuda.cuEventRecord(event, stream))
def wait(stream): ok(cuda.cuStreamWaitEvent(stream, event, 0))
def copy(to, from_, stream):
    ok(cuda.cuMemcpyDtoDAsync_v2(ctypes.c_uint64(to), ctypes.c_uint64(from_), ctypes.c_size_t(256), stream))
def fill(stream, to=None): launch("fill", to or x, 5, threads=64, stream=stream)
def add(stream, from_=None): launch("add", y, from_ or x, threads=64, stream=stream)
@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def nothing(user): pass
def host(stream): ok(cuda.cuLaunchHostFunc(stream, nothing, None))
def pool_alloc(stream):
    address = ctypes.c_uint64()
    ok(cuda.cuMemAllocAsync(ref(address), ctypes.c_size_t(4096), stream))
    return address.value
def pool_free(address, stream): ok(cuda.cuMemFreeAsync(ctypes.c_uint64(address), stream))
def managed():
    address = ctypes.c_uint64()
    ok(cuda.cuMemAllocManaged(ref(address), ctypes.c_size_t(4096), 1))
    return address.value
def pinned():
    address = ctypes.c_uint64()
    ok(cuda.cuMemHostAlloc(ref(address), ctypes.c_size_t(4096), 2))
    return address.value
def unpin(address): ok(cuda.cuMemFreeHost(ctypes.c_void_p(address)))
def captured(stream, work, times=2):
    graph, made = ctypes.c_void_p(), ctypes.c_void_p()
    ok(cuda.cuStreamBeginCapture_v2(stream, 0)); work()
    ok(cuda.cuStreamEndCapture(stream, ref(graph)))
    ok(cuda.cuGraphInstantiateWithFlags(ref(made), graph, ctypes.c_ulonglong(0)))
    for i in range(times): ok(cuda.cuGraphLaunch(made, stream))
    ok(sync()); ok(cuda.cuGraphExecDestroy(made)); ok(cuda.cuGraphDestroy(graph))
def branches(between):
    record(a); wait(b); fill(a); between(); add(b); ok(cuda.cuEventRecord(event, b)); wait(a)
class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_int * 16)]
class Config(ctypes.Structure):
    _fields_ = [("shape", ctypes.c_uint * 7), ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(Attribute)),
                ("count", ctypes.c_uint)]
def dependent(name, stream):
    attribute = Attribute(6, 0, (1,))  # programmatic stream serialization
    config = Config((1, 1, 1, 64, 1, 1, 0), stream, ctypes.pointer(attribute), 1)
    function = ctypes.c_void_p()
    ok(cuda.cuModuleGetFunction(ref(function), module, name.encode()))
    values = [ctypes.c_uint64(y), ctypes.c_uint64(x)]
    params = (ctypes.c_void_p * 3)(*[ctypes.addressof(value) for value in values])
    ok(cuda.cuLaunchKernelEx(ref(config), function, params, None))
%s
ok(sync())
free(x); free(y)
ok(cuda.cuEventDestroy_v2(event))
for s in (a, b): ok(cuda.cuStreamDestroy_v2(s))
"""

# (what orders them or does not, lines)
RACES = [
    ("nothing", "fill(a); add(b)"),
    ("an event recorded too early", "record(a); fill(a); wait(b); add(b)"),
    ("a wait in another stream", "fill(a); record(a); c = stream(); wait(c); add(b)"),
    ("another stream is waited for", "fill(a); ok(cuda.cuStreamSynchronize(b)); add(b)"),
    ("a copy reads what a kernel fills", "fill(a); copy(y, x, b)"),
    ("a copy writes what a kernel reads", "add(a); copy(x, y + 1024, b)"),
    ("a set", "fill(a); ok(cuda.cuMemsetD32Async(ctypes.c_uint64(x), 1, ctypes.c_size_t(64), b))"),
    ("the default stream does not wait for these", "fill(a); add(None)"),
    ("a host function in one of them", "fill(a); host(a); add(b)"),
    ("branches of a graph", "captured(a, lambda: branches(lambda: None))"),
    ("a graph and a stream", "captured(a, lambda: fill(a), 1)\nfill(a); add(b)"),
    ("a pool's memory", "p = pool_alloc(a); fill(a, p); add(b, p); ok(sync()); pool_free(p, a)"),
    ("managed memory", "m = managed(); fill(a, m); add(b, m); ok(sync()); free(m)"),
    ("pinned memory", "h = pinned(); fill(a, h); add(b, h); ok(sync()); unpin(h)"),
    ("a copy of pinned memory", "h = pinned(); fill(a, h); copy(y, h, b); ok(sync()); unpin(h)"),
    ("a kernel that begins early, and reads first", "fill(a); dependent('early', a)"),
]
ORDERED = [
    ("one stream", "fill(a); add(a)"),
    ("an event", "fill(a); record(a); wait(b); add(b)"),
    ("an event that is complete already",
     "fill(a); record(a); ok(cuda.cuEventSynchronize(event)); wait(b); add(b)"),
    ("by way of a third stream",
     "fill(a); record(a); c = stream(); wait(c); ok(cuda.cuEventRecord(event, c)); wait(b); add(b)"),
    ("the host waits for the stream", "fill(a); ok(cuda.cuStreamSynchronize(a)); add(b)"),
    ("the host waits for the event", "fill(a); record(a); ok(cuda.cuEventSynchronize(event)); add(b)"),
    ("the host asks until the stream is done",
     "fill(a)\nwhile cuda.cuStreamQuery(a): pass\nadd(b)"),
    ("the host asks until the event is done",
     "fill(a); record(a)\nwhile cuda.cuEventQuery(event): pass\nadd(b)"),
    ("the host waits for all", "fill(a); ok(sync()); add(b)"),
    ("a copy and an event", "fill(a); record(a); wait(b); copy(y, x, b)"),
    ("both read", "add(a); copy(y + 1024, x, b)"),
    ("other bytes", "fill(a); copy(y, x + 1024, b)"),
    ("blocking streams and the default stream",
     "s = ctypes.c_void_p(); ok(cuda.cuStreamCreate(ref(s), 0)); fill(s); add(None); fill(s); ok(sync())"),
    ("a synchronous copy behind the stream",
     "fill(a); ok(cuda.cuStreamSynchronize(a)); get(x, 256)"),
    ("memory that is given out again",
     "fill(a); ok(sync()); free(x); x = alloc(4096); put(x, bytes(4096)); add(b)"),
    ("a host function between", "fill(a); host(a); record(a); wait(b); add(b)"),
    ("branches of a graph with an edge", "captured(a, lambda: branches(lambda: (record(a), wait(b))))"),
    ("a pool's memory that an event orders",
     "p = pool_alloc(a); fill(a, p); record(a); wait(b); add(b, p); pool_free(p, b)"),
    ("a pool's memory for another stream",
     "for i in range(8):\n"
     "    p = pool_alloc(a); fill(a, p); pool_free(p, a)\n"
     "    q = pool_alloc(b); fill(b, q); add(b, q); pool_free(q, b)"),
    ("managed memory that an event orders",
     "m = managed(); fill(a, m); record(a); wait(b); add(b, m); ok(sync()); free(m)"),
    ("pinned memory that the host has waited for",
     "h = pinned(); fill(a, h); ok(cuda.cuStreamSynchronize(a)); copy(y, h, b); ok(sync()); unpin(h)"),
    ("a kernel that begins early, and waits", "fill(a); dependent('late', a)"),
    ("what is before that kernel", "fill(a); copy(y + 1024, x, a); dependent('early', a)"),
    ("a graph",
     "graph, made = ctypes.c_void_p(), ctypes.c_void_p()\n"
     "ok(cuda.cuStreamBeginCapture_v2(a, 0)); fill(a); record(a); wait(b); add(b)\n"
     "ok(cuda.cuEventRecord(event, b)); wait(a); fill(a)\n"
     "ok(cuda.cuStreamEndCapture(a, ref(graph)))\n"
     "ok(cuda.cuGraphInstantiateWithFlags(ref(made), graph, ctypes.c_ulonglong(0)))\n"
     "for i in range(3): ok(cuda.cuGraphLaunch(made, a))\n"
     "copy(y + 1024, x, a); ok(sync())\n"
     "ok(cuda.cuGraphExecDestroy(made)); ok(cuda.cuGraphDestroy(graph))"),
]


def outcome(folder, lines, **variables):
    return checked.run(folder, "race", PTX, BODY % lines, **variables)


def test_races_between_streams_are_reported(folder):
    for what, lines in RACES:
        status, _, error = outcome(folder, lines)
        harness.expect("checked: 0 errors" not in error and "error 1 (race, " in error,
                       f"{what}: status {status},\n{error}")


def test_ordered_streams_are_not_reported(folder):
    for what, lines in ORDERED:
        status, _, error = outcome(folder, lines)
        harness.expect(status == 0 and error == checked.SILENT, f"{what}: status {status},\n{error}")


def test_races_are_found_under_every_schedule(folder):
    all_of_them = "\nok(sync())\n".join(lines for _, lines in ORDERED)
    for schedule, seed in [("late", 0), ("random", 1)]:
        settings = {"SOFTGPU_SCHEDULE": schedule, "SOFTGPU_SEED": str(seed)}
        status, _, error = outcome(folder, all_of_them, **settings)
        harness.expect(status == 0 and error.endswith(checked.SILENT) and "(race" not in error,
                       f"{schedule}: status {status},\n{error}")
        for what, lines in RACES:
            _, _, error = outcome(folder, lines, **settings)
            harness.expect("checked: 0 errors" not in error, f"{what}, {schedule}:\n{error}")


VOLATILE = """
.visible .entry parted(.param .u64 to) {
.reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<8>; .shared .b32 s[32];
ld.param.u64 %rd1, [to]; mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 2; mov.u32 %r4, s; add.u32 %r4, %r4, %r3;
setp.lt.u32 %p, %r2, 16; @%p bra L;
st.volatile.shared.u32 [%r4], 1; // stores
bra.uni F;
L: st.volatile.shared.u32 [%r4], 2;
F: xor.b32 %r5, %r3, 64; mov.u32 %r6, s; add.u32 %r6, %r6, %r5; // joined
ld.volatile.shared.u32 %r7, [%r6]; // loads
mul.wide.u32 %rd2, %r2, 4; add.u64 %rd2, %rd1, %rd2; st.global.u32 [%rd2], %r7; ret;
}
"""


def test_independent_lanes_are_found_where_bar_warp_sync_is_missing(folder):
    launch = 'launch("parted", alloc(128), threads=32); ok(sync())'
    apart = {"SOFTGPU_SCHEDULE": "random", "SOFTGPU_LANES": "independent"}
    for seed in ("1", "2", "3"):
        _, _, error = checked.run(folder, "race", VOLATILE, launch, alone=True, SOFTGPU_SEED=seed, **apart)
        for wanted in ("(race, read-write-race)", "no bar.warp.sync orders", "// stores", "// loads"):
            harness.expect(wanted in error, f"{wanted} is not in\n{error}")
        for text, settings in ((VOLATILE.replace("// joined", "bar.warp.sync 0xffffffff;"), apart),
                               (VOLATILE, {"SOFTGPU_SCHEDULE": "random"})):
            status, _, error = checked.run(folder, "race", text, launch, alone=True, SOFTGPU_SEED=seed, **settings)
            harness.expect(status == 0 and "checked: 0 errors" in error, error)


def test_a_race_report_names_both_source_lines(folder):
    _, _, error = checked.run(folder, "race", PTX, 'launch("neighbour", 0, threads=64); ok(sync())')
    print("#", "\n# ".join(error.splitlines()))
    for wanted in ("race", "/src/checked.cu:30", "/src/checked.cu:32", "st.shared.u32 [%r4], %r2;",
                   "ld.shared.u32 %r5, [%r4+4];", "kernel neighbour"):
        harness.expect(wanted in error, f"{wanted} is not in\n{error}")


def test_volatile_accesses_race_on_request(folder):
    text = PTX.replace("st.shared.u32", "st.volatile.shared.u32").replace("ld.shared.u32", "ld.volatile.shared.u32")
    for options, races in ((), False), (("--check-plain-volatile",), True):
        _, _, error = checked.run(folder, "race", text, BODY % 'launch("neighbour", x, threads=64)', *options)
        harness.expect(("st.volatile.shared.u32" in error and "kernel neighbour" in error) == races, error)


def test_a_json_race_report_has_both_source_lines(folder):
    report = folder / "report.json"
    # The host knows that the first kernel has ended, but by no call that would order the second after it.
    lines = """
import threading
filled = threading.Event()
@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def tell(user): filled.set()
fill(a); ok(cuda.cuLaunchHostFunc(a, tell, None)); filled.wait(); add(b)
"""
    status, _, _ = checked.run(folder, "race", PTX, BODY % lines, "--check-format", "json",
                               "--check-output", str(report), "--error-exitcode", "9")
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    harness.expect(status == 9 and len(lines) == 2, f"status {status}, {lines}")
    hazard, total = lines
    for name, value in [("check", "race"), ("kind", "read-write-race"), ("level", "error"), ("space", "global"),
                        ("size", 4), ("write", False), ("other_says", "written by")]:
        harness.expect(hazard[name] == value, f"{name} is not {value} in\n{hazard}")
    for place, kernel, line, text in [("place", "add", 20, "// reads"), ("other", "fill", 10, "// fills")]:
        there = hazard[place]
        harness.expect(there["kernel"] == kernel and there["line"] == line and text in there["ptx"] and
                       there["file"] == "/src/checked.cu" and there["block"] == [0, 0, 0] and
                       there["thread"] == hazard["place"]["thread"], f"{place} is\n{there}")
    harness.expect(re.search(r"  in streams \d+ and \d+\n", hazard["details"]) is not None, hazard["details"])
    harness.expect(total["errors"] >= 1 and total["warnings"] == 0, str(total))


def test_a_race_report_names_both_kernels(folder):
    _, _, error = outcome(folder, "fill(a); add(b)")
    print("#", "\n# ".join(error.splitlines()))
    for wanted in ("kernel add", "kernel fill", "// reads", "// fills", "of an allocation of 4096 bytes", "in streams"):
        harness.expect(wanted in error, f"{wanted} is not in\n{error}")
    # One, or one for each kernel, where warps of both ran before the other's.
    found = re.findall(r"error \d \(race, read-write-race\): kernel (\w+)", error)
    harness.expect(found and len(found) == len(set(found)), f"a kernel's race is reported again in\n{error}")


if __name__ == "__main__":
    harness.main_unless_sanitized(globals())
