#!/usr/bin/env python3
"""gpumem run --check memory,race,init,sync: patterns of synchronization that programs use. Nothing is said of the right
kernel, which computes what it should, under any schedule; and each broken twin is found."""
import checked
import harness
from checked import SILENT
from harness import expect

checked.HEAD = checked.HEAD.replace(".version 8.0", ".version 8.6")

# Parameters: two buffers of 64 KiB, of which `to` is zero and `from` counts in words.
FRAME = """
.visible .entry k(.param .u64 to, .param .u64 from) %(attributes)s
{
    .reg .pred %%p, %%q, %%first; .reg .b32 %%r<32>; .reg .b64 %%d<16>;
    ld.param.u64 %%d1, [to]; ld.param.u64 %%d2, [from]; mov.u32 %%r1, %%tid.x; mov.u32 %%r2, %%ctaid.x;
    mov.u32 %%r3, %%ntid.x; setp.eq.u32 %%first, %%r1, 0;
    mad.lo.u32 %%r4, %%r2, %%r3, %%r1; mul.wide.u32 %%d3, %%r4, 4; add.u64 %%d4, %%d2, %%d3; add.u64 %%d5, %%d1, %%d3;
%(body)s
    ret;
}
"""

BODY = """
import array
to, from_ = alloc(65536), alloc(65536)
put(to, bytes(65536))
put(from_, array.array("I", range(16384)).tobytes())
launch("k", to, from_, blocks=%(blocks)d, threads=%(threads)d)
assert sync() == 0
got = array.array("I", get(to, 65536))
sums = [sum(range(i * %(threads)d, (i + 1) * %(threads)d)) for i in range(%(blocks)d)]
print("right" if %(right)s else "wrong " + str(got[:16].tolist()))
free(to)
free(from_)
"""


class Pattern:
    """A kernel, its launch, what it computes in `got`, and what breaks it: (text, instead of it, what is reported;
    behind a bar, what is where the threads ran in another order)."""

    def __init__(self, name, blocks, threads, right, body, broken, attributes=""):
        self.name, self.body, self.broken, self.attributes = name, body, broken, attributes
        self.program = BODY % {"blocks": blocks, "threads": threads, "right": right}

    def run(self, folder, body, **variables):
        return checked.run(folder, "memory,race,init,sync", FRAME % {"body": body, "attributes": self.attributes},
                           self.program, **variables)

    def silent(self, folder):
        for schedule, seed in ("eager", 0), ("late", 0), ("random", 3), ("random", 4):
            status, out, text = self.run(folder, self.body, SOFTGPU_SCHEDULE=schedule, SOFTGPU_SEED=str(seed))
            expect(status == 0 and out == "right\n" and text.endswith(SILENT) and text.count("softgpu: ") == 1,
                   f"{self.name}, {schedule}: exit status {status}\n{out}{text}")

    def found(self, folder):
        for old, new, wanted in self.broken:
            expect(self.body.count(old) >= 1, f"{self.name} does not have {old}")
            text = self.run(folder, self.body.replace(old, new), SOFTGPU_KERNEL_LIMIT="2")[2]
            expect(any(one in text for one in wanted.split("|")),
                   f"{self.name} with {new!r} instead of {old!r}: no {wanted} in\n{text}")


# Each block adds its tile to what the blocks before it have published, as a value and a flag behind it.
LOOK_BACK = Pattern(
    "a look-back scan", 8, 32, "all(got[i] == sum(sums[:i + 1]) for i in range(8))", """
    ld.global.u32 %r5, [%d4];
    redux.sync.add.u32 %r5, %r5, 0xffffffff;
    @!%first bra done;
    mul.wide.u32 %d6, %r2, 4; add.u64 %d7, %d1, %d6;
    setp.eq.u32 %p, %r2, 0; @%p bra publish;
look: ld.relaxed.gpu.global.u32 %r6, [%d7+4092]; setp.eq.u32 %p, %r6, 0; @%p bra look;
    fence.acq_rel.gpu;
    ld.global.u32 %r7, [%d7+-4]; add.u32 %r5, %r5, %r7;
publish: st.global.u32 [%d7], %r5;
    membar.gl;
    st.relaxed.gpu.global.u32 [%d7+4096], 1;
done:""", [("membar.gl;", "", "(race, read-write-race)"),
           ("    fence.acq_rel.gpu;\n", "", "(race, read-write-race)"),
           ("membar.gl;", "membar.cta;", "(race, read-write-race)")])

# Each block leaves a sum; the one that is counted last adds them up.
LAST_BLOCK = Pattern(
    "a reduction by the last block", 8, 64, "got[4096] == sum(sums)", """
    .shared .align 4 .b8 last[4];
    ld.global.u32 %r5, [%d4]; st.global.u32 [%d5], %r5;
    membar.gl;
    bar.sync 0;
    @!%first bra counted;
    mov.u32 %r8, %nctaid.x; sub.u32 %r8, %r8, 1;
    atom.inc.global.u32 %r6, [%d1+20000], %r8;
    setp.eq.u32 %p, %r6, %r8; selp.u32 %r6, 1, 0, %p; st.shared.u32 [last], %r6;
counted: bar.sync 0;
    ld.shared.u32 %r6, [last]; setp.eq.u32 %p, %r6, 0; @%p ret;
    membar.gl;
    mul.wide.u32 %d6, %r1, 4; add.u64 %d7, %d1, %d6; mov.u32 %r9, 0; mov.u32 %r10, 0;
more: ld.global.u32 %r11, [%d7]; add.u32 %r9, %r9, %r11; add.u64 %d7, %d7, 256; add.u32 %r10, %r10, 1;
    setp.lt.u32 %p, %r10, 8; @%p bra more;
    red.global.add.u32 [%d1+16384], %r9;""",
    [("    membar.gl;\n    bar.sync 0;", "    bar.sync 0;", "(race, read-write-race)"),
     ("    membar.gl;\n    bar.sync 0;", "    membar.gl;", "(race, read-write-race)"),
     ("counted: bar.sync 0;", "counted:", "(race, ")])

# Tiles are copied into two buffers in turn; each thread adds what its neighbour has had copied.
DOUBLE_BUFFER = Pattern(
    "two buffers of cp.async", 1, 64, "all(got[i] == sum(range((i + 1) % 64, 512, 64)) for i in range(64))", """
    .shared .align 16 .b8 buffer[512];
    mov.u32 %r5, buffer; shl.b32 %r6, %r1, 2; add.u32 %r7, %r5, %r6;
    add.u32 %r8, %r1, 1; and.b32 %r8, %r8, 63; shl.b32 %r8, %r8, 2; add.u32 %r8, %r5, %r8;
    cp.async.ca.shared.global [%r7], [%d4], 4; cp.async.commit_group;
    mov.u32 %r9, 0; mov.u32 %r10, 0; mov.u32 %r13, 256;
tile: add.u32 %r11, %r10, 1; setp.ge.u32 %q, %r11, 8;
    add.u64 %d4, %d4, 256; add.u32 %r12, %r7, %r13;
    @!%q cp.async.ca.shared.global [%r12], [%d4], 4;
    cp.async.commit_group;
    cp.async.wait_group 1;
    bar.sync 0;
    xor.b32 %r13, %r13, 256; add.u32 %r14, %r8, %r13; ld.shared.u32 %r15, [%r14]; add.u32 %r9, %r9, %r15;
    bar.sync 0; // again
    mov.u32 %r10, %r11; setp.lt.u32 %p, %r10, 8; @%p bra tile;
    cp.async.wait_all;
    st.global.u32 [%d5], %r9;""",
    [("    bar.sync 0; // again\n", "", "(race, read-write-race)"),
     ("    cp.async.wait_group 1;\n    bar.sync 0;", "    cp.async.wait_group 1;", "(race, "),
     ("cp.async.wait_group 1;", "cp.async.wait_group 2;", "(sync, copy-without-wait)")])

# A warp has tiles copied in bulk into two buffers, each with an mbarrier that is told of the bytes and one at which
# the readers give it back.
PIPELINE = Pattern(
    "producer and consumers with mbarriers", 1, 64, "all(got[i] == sum(range(i, 256, 32)) for i in range(32))", """
    .shared .align 128 .b8 buffer[256]; .shared .align 8 .b8 full[16]; .shared .align 8 .b8 empty[16];
    mov.u32 %r5, buffer; mov.u32 %r6, full; mov.u32 %r7, empty;
    @%first mbarrier.init.shared.b64 [full], 1; @%first mbarrier.init.shared.b64 [full+8], 1;
    @%first mbarrier.init.shared.b64 [empty], 32; @%first mbarrier.init.shared.b64 [empty+8], 32;
    fence.mbarrier_init.release.cluster;
    bar.sync 0;
    mov.u32 %r10, 0; mov.u32 %r20, 0; shr.u32 %r8, %r1, 5; setp.ne.u32 %p, %r8, 0; @%p bra consume;
    @!%first ret;
produce: and.b32 %r11, %r10, 1; shl.b32 %r12, %r11, 3; add.u32 %r13, %r6, %r12; add.u32 %r14, %r7, %r12;
    shl.b32 %r15, %r11, 7; add.u32 %r15, %r5, %r15; shr.u32 %r16, %r10, 1; and.b32 %r16, %r16, 1; xor.b32 %r16, %r16, 1;
given: mbarrier.try_wait.parity.shared.b64 %q, [%r14], %r16; @!%q bra given;
    mbarrier.arrive.expect_tx.shared.b64 %d6, [%r13], 128;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r15], [%d2], 128, [%r13];
    add.u64 %d2, %d2, 128; add.u32 %r10, %r10, 1; setp.lt.u32 %p, %r10, 8; @%p bra produce;
    ret;
consume: and.b32 %r11, %r10, 1; shl.b32 %r12, %r11, 3; add.u32 %r13, %r6, %r12; add.u32 %r14, %r7, %r12;
    shl.b32 %r15, %r11, 7; add.u32 %r15, %r5, %r15; shr.u32 %r16, %r10, 1; and.b32 %r16, %r16, 1;
    and.b32 %r17, %r1, 31; shl.b32 %r17, %r17, 2; add.u32 %r15, %r15, %r17;
there: mbarrier.try_wait.parity.shared.b64 %q, [%r13], %r16; @!%q bra there;
    ld.shared.u32 %r18, [%r15]; add.u32 %r20, %r20, %r18;
    mbarrier.arrive.shared.b64 %d6, [%r14];
    add.u32 %r10, %r10, 1; setp.lt.u32 %p, %r10, 8; @%p bra consume;
    st.global.u32 [%d5+-128], %r20;""",
    [("given: mbarrier.try_wait.parity.shared.b64 %q, [%r14], %r16; @!%q bra given;", "",
      "(sync, copy-without-wait)|(sync, mbarrier)"),
     ("there: mbarrier.try_wait.parity.shared.b64 %q, [%r13], %r16; @!%q bra there;", "",
      "(sync, copy-without-wait)|(init, uninitialized)"),
     ("@%first mbarrier.init.shared.b64 [full], 1;", "", "(sync, uninitialized-mbarrier)")])

# A barrier of the whole grid, in global memory, as programs write it by hand.
GRID = Pattern(
    "a barrier of the grid", 8, 64, "got[:8].tolist() == sums[1:] + sums[:1]", """
    .shared .align 4 .b8 sum[4];
    @%first st.shared.u32 [sum], 0;
    bar.sync 0;
    ld.global.u32 %r5, [%d4]; atom.shared.add.u32 %r6, [sum], %r5;
    bar.sync 0;
    ld.shared.u32 %r5, [sum]; mul.wide.u32 %d6, %r2, 4; add.u64 %d7, %d1, %d6;
    @%first st.global.u32 [%d7+4096], %r5;
    bar.sync 0;
    @!%first bra met;
    fence.acq_rel.gpu; // before
    red.relaxed.gpu.global.add.u32 [%d1+20000], 1;
spin: ld.relaxed.gpu.global.u32 %r6, [%d1+20000]; setp.lt.u32 %p, %r6, 8; @%p bra spin;
    fence.acq_rel.gpu; // behind
met: bar.sync 0;
    add.u32 %r8, %r2, 1; and.b32 %r8, %r8, 7; mul.wide.u32 %d6, %r8, 4; add.u64 %d8, %d1, %d6;
    ld.global.u32 %r9, [%d8+4096]; @%first st.global.u32 [%d7], %r9;""",
    [("    fence.acq_rel.gpu; // before\n", "", "(race, read-write-race)"),
     ("    fence.acq_rel.gpu; // behind\n", "", "(race, read-write-race)"),
     ("met: bar.sync 0;", "met:", "(race, read-write-race)")])

# A warp adds up in shared memory, half of it at a time.
WARP = Pattern(
    "a reduction in a warp", 2, 32, "got[:2].tolist() == sums", """
    .shared .align 4 .b8 mine[128];
    mov.u32 %r5, mine; shl.b32 %r6, %r1, 2; add.u32 %r5, %r5, %r6;
    ld.global.u32 %r7, [%d4]; st.shared.u32 [%r5], %r7; bar.warp.sync 0xffffffff; // stored
    mov.u32 %r8, 16;
half: shl.b32 %r9, %r8, 2; add.u32 %r10, %r5, %r9; setp.lt.u32 %p, %r1, %r8;
    @%p ld.shared.u32 %r11, [%r10]; bar.warp.sync 0xffffffff; // read
    @%p add.u32 %r7, %r7, %r11; @%p st.shared.u32 [%r5], %r7; bar.warp.sync 0xffffffff; // added
    shr.u32 %r8, %r8, 1; setp.ne.u32 %q, %r8, 0; @%q bra half;
    mul.wide.u32 %d6, %r2, 4; add.u64 %d7, %d1, %d6; ld.shared.u32 %r7, [mine]; @%first st.global.u32 [%d7], %r7;""",
    [("bar.warp.sync 0xffffffff; // stored", "", "(race, read-write-race)"),
     ("bar.warp.sync 0xffffffff; // added", "", "(race, read-write-race)"),
     ("bar.warp.sync 0xffffffff; // added", "@%p bar.warp.sync 0xffffffff;", "(race, read-write-race)")])

# The first block of a cluster adds up what the others have in their shared memory.
CLUSTER = Pattern(
    "a reduction of a cluster", 8, 64, "got[0] == sum(sums[:4]) and got[1] == sum(sums[4:])", """
    .shared .align 4 .b8 sum[4];
    @%first st.shared.u32 [sum], 0;
    bar.sync 0;
    ld.global.u32 %r5, [%d4]; atom.shared.add.u32 %r6, [sum], %r5;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; // added
    mov.u32 %r7, %cluster_ctarank; setp.ne.u32 %p, %r7, 0; @%p bra last; @!%first bra last;
    mov.u32 %r8, sum; mov.u32 %r9, 0; mov.u32 %r10, 0;
block: mapa.shared::cluster.u32 %r11, %r8, %r10; ld.shared::cluster.u32 %r12, [%r11]; add.u32 %r9, %r9, %r12;
    add.u32 %r10, %r10, 1; setp.lt.u32 %q, %r10, 4; @%q bra block;
    shr.u32 %r13, %r2, 2; mul.wide.u32 %d6, %r13, 4; add.u64 %d7, %d1, %d6; st.global.u32 [%d7], %r9;
last: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;""",
    [("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; // added", "bar.sync 0;",
      "at offset 0 of the shared memory of block "),
     ("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; // added",
      "barrier.cluster.arrive.release.aligned;", "(sync, cluster-barrier)"),
     ("barrier.cluster.arrive.release.aligned;", "barrier.cluster.arrive.relaxed.aligned;", "(race, ")],
    ".explicitcluster .reqnctapercluster 4")

# A block sends its sum to the first of its cluster, whose mbarrier is told of the bytes.
SENT = Pattern(
    "st.async to another block", 4, 32, "got[0] == sum(sums[:2]) and got[1] == sum(sums[2:])", """
    .shared .align 8 .b8 box[8]; .shared .align 8 .b8 told[8];
    @%first mbarrier.init.shared.b64 [told], 1;
    @%first fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; // ready
    ld.global.u32 %r5, [%d4]; redux.sync.add.u32 %r5, %r5, 0xffffffff;
    mov.u32 %r7, %cluster_ctarank; mov.u32 %r8, box; mov.u32 %r9, told; mapa.shared::cluster.u32 %r10, %r8, 0;
    mapa.shared::cluster.u32 %r11, %r9, 0; setp.eq.u32 %p, %r7, 0; @!%first bra last; @%p bra take;
    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r10], %r5, [%r11]; bra last;
take: mbarrier.arrive.expect_tx.shared.b64 %d6, [told], 4;
wait: mbarrier.try_wait.parity.shared.b64 %q, [told], 0; @!%q bra wait;
    ld.shared.u32 %r12, [box]; add.u32 %r5, %r5, %r12;
    shr.u32 %r13, %r2, 1; mul.wide.u32 %d6, %r13, 4; add.u64 %d7, %d1, %d6; st.global.u32 [%d7], %r5;
last: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;""",
    [("wait: mbarrier.try_wait.parity.shared.b64 %q, [told], 0; @!%q bra wait;", "",
      "(sync, copy-without-wait)|(race, ")],
    ".explicitcluster .reqnctapercluster 2")

# One warp leaves words for the other, with two barriers of the block: of them, one arrives at each and one waits.
NAMED = Pattern(
    "named barriers", 1, 64, "all(got[32 + i] == sum(range(i, 256, 32)) for i in range(32))", """
    .shared .align 4 .b8 word[128];
    mov.u32 %r5, word; and.b32 %r6, %r1, 31; shl.b32 %r6, %r6, 2; add.u32 %r5, %r5, %r6;
    mov.u32 %r10, 0; mov.u32 %r9, 0; setp.ge.u32 %p, %r1, 32; @%p bra takes;
gives: bar.sync 1, 64; // free
    ld.global.u32 %r7, [%d4]; st.shared.u32 [%r5], %r7; bar.arrive 2, 64;
    add.u64 %d4, %d4, 128; add.u32 %r10, %r10, 1; setp.lt.u32 %q, %r10, 8; @%q bra gives;
    ret;
takes: bar.arrive 1, 64; bar.sync 2, 64;
    xor.b32 %r8, %r5, 4; ld.shared.u32 %r7, [%r5]; add.u32 %r9, %r9, %r7;
    add.u32 %r10, %r10, 1; setp.lt.u32 %q, %r10, 8; @%q bra takes;
    st.global.u32 [%d5], %r9;""",
    [("bar.sync 1, 64; // free", "bar.arrive 1, 64;", "(sync, deadlock)"),
     ("bar.sync 2, 64;", "bar.arrive 2, 64;", "(race, ")])

# Threads of several blocks change a word, one at a time.
LOCK = Pattern(
    "a lock", 4, 32, "got[0] == sum(sums)", """
    ld.global.u32 %r5, [%d4]; redux.sync.add.u32 %r5, %r5, 0xffffffff; @!%first ret;
lock: atom.acquire.gpu.global.cas.b32 %r6, [%d1+4096], 0, 1; setp.ne.u32 %p, %r6, 0; @%p bra lock;
    ld.global.u32 %r7, [%d1]; add.u32 %r7, %r7, %r5; st.global.u32 [%d1], %r7;
    atom.release.gpu.global.exch.b32 %r6, [%d1+4096], 0;""",
    [("atom.release.gpu", "atom.relaxed.gpu", "(race, "), ("atom.acquire.gpu", "atom.relaxed.gpu", "(race, "),
     ("atom.release.gpu", "atom.release.cta", "(race, ")])

# As a barrier of libcu++: a thread arrives, and waits with the state that it got.
TOKEN = Pattern(
    "arrivals with a state", 1, 64, "all(got[i] == (63 - i) * 4 for i in range(64))", """
    .shared .align 8 .b8 meets[8]; .shared .align 4 .b8 word[256];
    @%first mbarrier.init.shared.b64 [meets], 64; bar.sync 0;
    mov.u32 %r5, word; shl.b32 %r6, %r1, 2; add.u32 %r7, %r5, %r6; sub.u32 %r8, 252, %r6; add.u32 %r8, %r5, %r8;
    mov.u32 %r9, 0; mov.u32 %r10, 0;
round: st.shared.u32 [%r7], %r1; mbarrier.arrive.shared.b64 %d6, [meets]; // stored
one: mbarrier.test_wait.shared.b64 %q, [meets], %d6; @!%q bra one;
    ld.shared.u32 %r11, [%r8]; add.u32 %r9, %r9, %r11; mbarrier.arrive.shared.b64 %d6, [meets];
two: mbarrier.test_wait.shared.b64 %q, [meets], %d6; @!%q bra two;
    add.u32 %r10, %r10, 1; setp.lt.u32 %p, %r10, 4; @%p bra round;
    st.global.u32 [%d5], %r9;""",
    [("mbarrier.arrive.shared.b64 %d6, [meets]; // stored",
      "mbarrier.arrive.relaxed.cta.shared.b64 %d6, [meets];", "(race, "),
     ("one: mbarrier.test_wait.shared.b64", "one: mbarrier.test_wait.relaxed.cta.shared.b64", "(race, ")])

PATTERNS = [LOOK_BACK, LAST_BLOCK, DOUBLE_BUFFER, PIPELINE, GRID, WARP, CLUSTER, SENT, NAMED, LOCK, TOKEN]


def tests_of(pattern):
    name = pattern.name.replace(" ", "_").replace(".", "_").replace("-", "_")

    def right(folder):
        pattern.silent(folder)

    def broken(folder):
        pattern.found(folder)

    right.__name__, broken.__name__ = f"test_{name}", f"test_{name}_broken"
    return {one.__name__: one for one in (right, broken)}


if __name__ == "__main__":
    harness.main_unless_sanitized({name: test for pattern in PATTERNS for name, test in tests_of(pattern).items()})
