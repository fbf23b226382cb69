"""gpumem run --check race: what streams, events and the host order, and what the reports say."""
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
def add(stream): launch("add", y, x, threads=64, stream=stream)
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


def test_races_between_streams(folder):
    for what, lines in RACES:
        status, _, error = outcome(folder, lines)
        harness.expect("checked: 0 errors" not in error and "error 1 (race, " in error,
                       f"{what}: status {status},\n{error}")


def test_order_between_streams(folder):
    for what, lines in ORDERED:
        status, _, error = outcome(folder, lines)
        harness.expect(status == 0 and error == checked.SILENT, f"{what}: status {status},\n{error}")


def test_order_under_other_schedules(folder):
    for schedule, seed in [("late", 0), ("random", 1), ("random", 2)]:
        for what, lines in ORDERED:
            status, _, error = outcome(folder, lines, SOFTGPU_SCHEDULE=schedule, SOFTGPU_SEED=str(seed))
            harness.expect(status == 0 and error.endswith(checked.SILENT) and "(race" not in error,
                           f"{what}, {schedule}: status {status},\n{error}")
        for what, lines in RACES:
            _, _, error = outcome(folder, lines, SOFTGPU_SCHEDULE=schedule, SOFTGPU_SEED=str(seed))
            harness.expect("checked: 0 errors" not in error, f"{what}, {schedule}:\n{error}")


def test_both_places_are_named(folder):
    _, _, error = checked.run(folder, "race", PTX, 'launch("neighbour", 0, threads=64); ok(sync())')
    print("#", "\n# ".join(error.splitlines()))
    for wanted in ("race", "/src/checked.cu:30", "/src/checked.cu:32", "st.shared.u32 [%r4], %r2;",
                   "ld.shared.u32 %r5, [%r4+4];", "kernel neighbour"):
        harness.expect(wanted in error, f"{wanted} is not in\n{error}")


def test_both_kernels_are_named(folder):
    _, _, error = outcome(folder, "fill(a); add(b)")
    print("#", "\n# ".join(error.splitlines()))
    for wanted in ("kernel add", "kernel fill", "// reads", "// fills", "of an allocation of 4096 bytes", "in streams"):
        harness.expect(wanted in error, f"{wanted} is not in\n{error}")
    harness.expect(len(re.findall(r"error \d", error)) == 1, f"not one report in\n{error}")


if __name__ == "__main__":
    checked.main(globals())
