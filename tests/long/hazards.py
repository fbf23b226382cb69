"""Kinds of hazard that public suites plant in kernels, each in a program of ours with its mended twin.

A row: its name, where its threads are, what a checker says of it, and the kernel's body in CUDA C. `@{broken@|mended@}`
in the body is where the two differ. Rows by ScoR's kinds of race (scopes of atomics and fences, locks), Indigo's (patterns
over the vertices and edges of a graph), and those of compute-sanitizer's and the driver API's samples.
"""

BLOCKS, WARPS = (2, 1), (1, 64)  # two blocks of one thread; two warps, of which a thread each does something

HEAD = """
#define TAKE while (atomicCAS(flag, 0, 1)) ;
#define TAKE_BLOCK while (atomicCAS_block(flag, 0, 1)) ;
#define GIVE atomicExch(flag, 0);
#define GIVE_BLOCK atomicExch_block(flag, 0);
#define FENCE __threadfence();
#define FENCE_BLOCK __threadfence_block();
enum { VERTICES = 8, EDGES = 20 };
__constant__ int first[VERTICES + 1] = {0, 3, 5, 8, 10, 13, 15, 18, 20};
__constant__ int to[EDGES] = {1, 2, 7, 0, 2, 0, 1, 3, 2, 4, 3, 5, 6, 4, 6, 4, 5, 7, 6, 0};
extern "C" __global__ void k(int *data, int *flag, int n) {
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
"""
TWO = "    if (t % 32) return;\n    int who = blockIdx.x + t / 32;\n"
HANDED = "if (who == 0) {{ data[0] = 1; {} atomicExch(flag, 1); {} }} else {{ while (!atomicAdd(flag, 0)) ; {} {} }}"
WW, RW, ATOMIC = "(race, write-write-race)", "(race, read-write-race)", "(race, atomic-race)"


def both(name, expected, body, places=(BLOCKS, WARPS)):
    """A row for two blocks, and one for two warps of a block."""
    return [(f"{name}, between {'blocks' if place is BLOCKS else 'warps'}", place, expected, TWO + body) for place in places]


def in_a_lock(take, after, before, give):
    return f"{take} {after} data[0] = data[0] + who + 1; {before} {give}"


SCOPES = [
    *both("atomics of a block's scope", ATOMIC, "@{atomicAdd_block@|atomicAdd@}(data, who + 1);", [BLOCKS]),
    *both("atomics of two scopes within a block", "", "if (who) atomicAdd_block(data, 1); else atomicAdd(data, 1);", [WARPS]),
    *both("data behind a fence of a block's scope", RW,
          HANDED.format("@{FENCE_BLOCK@|FENCE@}", "", "FENCE", "data[1] = data[0];"), [BLOCKS]),
    *both("data behind a fence of a block's scope, in its block", "",
          HANDED.format("FENCE_BLOCK", "", "FENCE_BLOCK", "data[1] = data[0];"), [WARPS]),
    *both("data without a fence before the flag", RW, HANDED.format("@{@|FENCE@}", "", "FENCE", "data[1] = data[0];")),
    *both("data without a fence behind the flag", RW, HANDED.format("FENCE", "", "@{@|FENCE@}", "data[1] = data[0];")),
    *both("a read after the flag was given", RW,
          HANDED.format("FENCE", "@{data[1] = data[0];@|@}", "FENCE", "data[0] = 2;")),
    *both("a lock of a block's scope", f"{WW}|{RW}",
          in_a_lock("@{TAKE_BLOCK@|TAKE@}", "FENCE", "FENCE", "@{GIVE_BLOCK@|GIVE@}"), [BLOCKS]),
    *both("a lock of a block's scope, in its block", "",
          in_a_lock("TAKE_BLOCK", "FENCE_BLOCK", "FENCE_BLOCK", "GIVE_BLOCK"), [WARPS]),
    *both("a lock with fences of a block's scope", f"{WW}|{RW}",
          in_a_lock("TAKE", "@{FENCE_BLOCK@|FENCE@}", "@{FENCE_BLOCK@|FENCE@}", "GIVE"), [BLOCKS]),
    *both("a lock without a fence after it is taken", f"{WW}|{RW}", in_a_lock("TAKE", "@{@|FENCE@}", "FENCE", "GIVE")),
    *both("a lock without a fence before it is given", f"{WW}|{RW}", in_a_lock("TAKE", "FENCE", "@{@|FENCE@}", "GIVE")),
    *both("a lock of two scopes without a fence after it is taken", f"{WW}|{RW}",
          "if (who) { " + in_a_lock("TAKE_BLOCK", "@{@|FENCE_BLOCK@}", "FENCE_BLOCK", "GIVE_BLOCK") + " } else { "
          + in_a_lock("TAKE", "FENCE", "FENCE", "GIVE") + " }", [WARPS]),
    *both("a lock of two scopes without a fence before it is given", f"{WW}|{RW}",
          "if (who) { " + in_a_lock("TAKE_BLOCK", "FENCE_BLOCK", "@{@|FENCE_BLOCK@}", "GIVE_BLOCK") + " } else { "
          + in_a_lock("TAKE", "FENCE", "FENCE", "GIVE") + " }", [WARPS]),
    *both("a store beside an atomic", ATOMIC, "if (who) @{data[0] = 7@|atomicExch(data, 7)@}; else atomicAdd(data, 1);"),
    *both("a store beside an atomic of a block's scope", ATOMIC,
          "if (who) @{data[0] = 7@|atomicExch_block(data, 7)@}; else atomicAdd_block(data, 1);", [WARPS]),
    *both("a store outside of the lock", WW, "@{if (who) { data[0] = 5; return; }@|@} TAKE FENCE data[0] = who; FENCE GIVE"),
    *both("a store behind the lock", RW, "TAKE FENCE data[1 + who] = data[0]; FENCE GIVE @{if (!who) data[0] = 1;@|@}"),
    *both("a store behind the lock of the one that comes last", RW,
          "TAKE FENCE data[1 + who] = data[0]; FENCE GIVE @{if (who) data[0] = 1;@|@}"),
    ("order that is passed on through a third thread", (2, 64), RW, TWO.replace("t / 32", "t / 32 * 2") + """
        if (who == 0) { data[0] = 1; @{@|FENCE@} atomicExch(flag, 1); }
        if (who == 2) { while (atomicAdd(flag, 0) != 1) ; FENCE atomicExch(flag, 2); }
        if (who == 1) { while (atomicAdd(flag, 0) != 2) ; FENCE data[1] = data[0]; }"""),
]

VERTEX, EDGE = "if (i >= VERTICES) return;\n", "for (int e = first[i]; e < first[i + 1]; e++) "
GRAPHS = [
    ("edges that are counted without an atomic", (2, 4), f"{RW}|{WW}",
     VERTEX + EDGE + "if (to[e] > i) @{data[0]++@|atomicAdd(data, 1)@};"),
    ("the largest vertex, checked before it is stored", (2, 4), f"{RW}|{WW}",
     VERTEX + "int degree = first[i + 1] - first[i]; @{if (data[0] < degree) data[0] = degree@|atomicMax(data, degree)@};"),
    ("vertices that push to their neighbours", (1, 64), f"{RW}|{WW}",
     "i = t / 8; if (t % 8) return; " + EDGE + "@{data[to[e]] += i@|atomicAdd(data + to[e], i)@};"),
    ("vertices that pull from their neighbours in place", (2, 4), RW,
     VERTEX + "int sum = 0; " + EDGE + "sum += data[to[e]]; data[i@{@| + VERTICES@}] = sum;"),
    ("a list of work whose end is a plain count", (2, 4), f"{RW}|{WW}",
     VERTEX + "if (first[i + 1] - first[i] > 2) data[1 + @{data[0]++@|atomicAdd(data, 1)@}] = i;"),
    ("paths that are halved by plain stores", (2, 4), f"{RW}|{WW}|{ATOMIC}",
     VERTEX + """int v = i, up; atomicExch(data + i, i ? i - 1 : 0);
        for (;;) { up = atomicAdd(data + v, 0); if (up == v) break;
            int next = atomicAdd(data + up, 0); @{data[v] = next@|atomicCAS(data + v, up, next)@}; v = next; }"""),
    ("one vertex too many", (1, 16), "(memory, out-of-bounds)",
     "if (i @{<=@|<@} VERTICES) flag[1020 + i / 2] = i / 2;"),
    ("a neighbour beyond the list", (1, 8), "(memory, out-of-bounds)",
     "int sum = 0; for (int e = first[i]; e < first[i] + @{4@|2@}; e++) sum += flag[1004 + e]; data[i] = sum;"),
    ("sums of a block without the first barrier", (1, 64), RW,
     "__shared__ int sums[64]; sums[t] = i; @{@|__syncthreads();@} data[t] = sums[63 - t];"),
    ("a tree of sums without a barrier in its loop", (1, 128), f"{RW}|{WW}", """
        __shared__ int sums[128]; sums[t] = i; __syncthreads();
        for (int half = 64; half; half /= 2) { if (t < half) sums[t] += sums[t + half]; @{@|__syncthreads();@} }
        if (t == 0) data[0] = sums[0];"""),
    ("shared memory used again without a barrier", (1, 64), RW, """
        __shared__ int word[64]; int sum = 0;
        for (int round = 0; round < 3; round++) {
            word[t] = round * t; __syncthreads(); sum += word[63 - t]; @{@|__syncthreads();@} }
        data[t] = sum;"""),
    ("a result that one thread sets and all read", (1, 64), RW,
     "if (t == 0) data[0] = n; @{@|__syncthreads();@} data[1 + t] = data[0];"),
    ("blocks that read what others set", (2, 32), RW,
     "@{data[i] = i; data[64 + i] = data[63 - i]@|data[64 + i] = 63 - i@};"),
]

SAMPLES = [
    ("a store that is not aligned", (1, 1), "(memory, misaligned)", "*(int *)((char *)data + @{1@|4@}) = 42;"),
    ("a store far outside", (1, 1), "(memory, out-of-bounds)", "data[@{(1L << 40)@|0@}] = 42;"),
    ("a barrier that half of a block reaches", (1, 64), "(sync, ",
     "if (t < 16) { data[t] = 1; @{__syncthreads();@|@} } else data[t] = 2;"),
    ("two barriers for one", (1, 32), "(sync, divergent-barrier)", """
        @{if (t < 16) { data[t] = 1; __syncthreads(); } else { data[t] = 2; __syncthreads(); asm volatile("// high"); }
        @|data[t] = 1; __syncthreads();@}"""),
    ("a warp's meeting that leaves out a lane", (1, 32), "(sync, member-mask)",
     "unsigned mask = __ballot_sync(~0U, t < 16); if (t @{<=@|<@} 16) { __syncwarp(mask); data[t] = t; }"),
    ("a vote for which lanes do not come", (1, 32), "(sync, ",
     "if (t < 16) data[t] = __any_sync(@{~0U@|0xffffU@}, t == 3); __syncthreads();"),
    ("lanes of a warp that do not meet", (1, 32), RW,
     "__shared__ int word[32]; word[t] = t; @{@|__syncwarp();@} data[t] = word[31 - t];"),
    ("shared memory that nobody has set", (1, 32), "(init, uninitialized)",
     "__shared__ int word[64]; word[t] = t; @{@|word[t + 32] = 0;@} __syncthreads(); data[t] = word[t + 32];"),
    ("a kernel's heap beyond a block of it", (1, 1), "(memory, out-of-bounds)",
     "char *block = (char *)malloc(64); if (block) { block[@{64@|63@}] = 1; data[0] = block[@{64@|63@}]; free(block); }"),
    ("a kernel's heap after it was freed", (1, 1), "(memory, use-after-free)",
     "int *block = (int *)malloc(64); if (block) { @{free(block); *block = 1@|*block = 1; free(block)@}; }"),
    ("a kernel's heap that is freed twice", (1, 1), "(memory, ",
     "int *block = (int *)malloc(64); if (block) { *block = 1; @{free(block);@|@} free(block); }"),
    ("an array of a thread beyond its end", (1, 1), "(memory, out-of-bounds)",
     "int words[8]; for (int j = 0; j < n - 1016@{ + 1@|@}; j++) words[j] = j * n; for (int j = 0; j < 8; j++)"
     " data[j] = words[(j * n) % 8];"),
    ("an assertion that fails", (1, 4), "(memory, trap)", "if (t @{>= 0@|> 4@}) asm volatile(\"trap;\"); data[t] = 1;"),
    ("sums of vectors without a guard", (9, 128), "(memory, out-of-bounds)", "if (i < @{n + 1@|n@}) data[i] = flag[i] + 1;"),
    ("tiles of matrices without a barrier", (1, 64), RW, """
        __shared__ int left[8][8], right[8][8]; int row = t / 8, column = t % 8, sum = 0;
        for (int tile = 0; tile < 2; tile++) {
            left[row][column] = flag[tile * 64 + t]; right[row][column] = flag[128 + tile * 64 + t]; @{@|__syncthreads();@}
            for (int j = 0; j < 8; j++) sum += left[row][j] * right[j][column];
            __syncthreads(); }
        data[t] = sum;"""),
    ("a histogram without atomics", (4, 32), f"{RW}|{WW}", "@{data[i % 16]++@|atomicAdd(data + i % 16, 1)@};"),
    ("a word that a thread spins on without an atomic", BLOCKS, f"{RW}|{WW}", TWO +
     "if (who == 0) { data[0] = 1; FENCE @{*flag = 1@|atomicExch(flag, 1)@}; } else { while (!atomicAdd(flag, 0)) ; FENCE"
     " data[1] = data[0]; }"),
]

ROWS = [*((f"scopes: {row[0]}", *row[1:]) for row in SCOPES), *((f"graphs: {row[0]}", *row[1:]) for row in GRAPHS),
        *((f"samples: {row[0]}", *row[1:]) for row in SAMPLES)]

# What the host does around a kernel. (name, what a checker says, broken lines, mended lines); `data` and `flag` are
# buffers of 4 KiB, of which `flag` is zero.
ADD = "launch('k', data, flag, 1024, threads=64{})"
HOST = [
    ("memory that is not freed", "(memory, leak)", "alloc(100)", "free(alloc(100))"),
    ("memory that is freed twice", "(memory, api-error)|(memory, double-free)",
     "x = alloc(64); free(x); cuda.cuMemFree_v2(ctypes.c_uint64(x))", "x = alloc(64); free(x)"),
    ("a kernel on freed memory", "(memory, use-after-free)", "x = alloc(4096); free(x); launch('k', x, flag, 1024, threads=64); sync()",
     "x = alloc(4096); launch('k', x, flag, 1024, threads=64); sync(); free(x)"),
    ("a memset that is too short", "(init, uninitialized)",
     "x = alloc(256); ok(cuda.cuMemsetD8_v2(ctypes.c_uint64(x), 0, ctypes.c_size_t(200))); launch('k', data, x, 1024, threads=64); sync(); free(x)",
     "x = alloc(256); ok(cuda.cuMemsetD8_v2(ctypes.c_uint64(x), 0, ctypes.c_size_t(256))); launch('k', data, x, 1024, threads=64); sync(); free(x)"),
    ("a copy of what nothing has written", "(init, uninitialized)", "get(data, 64)", "put(data, bytes(64)); get(data, 64)"),
    ("two streams without an event between them", WW,
     "a, b = stream(), stream(); launch('k', data, flag, 1024, threads=64, stream=a); launch('k', data, flag, 1024, threads=64, stream=b); sync()",
     "a, b = stream(), stream(); launch('k', data, flag, 1024, threads=64, stream=a); event = ctypes.c_void_p();"
     "ok(cuda.cuEventCreate(ref(event), 2)); ok(cuda.cuEventRecord(event, a)); ok(cuda.cuStreamWaitEvent(b, event, 0));"
     "launch('k', data, flag, 1024, threads=64, stream=b); sync(); ok(cuda.cuEventDestroy_v2(event))"),
    ("a copy beside a kernel", "(race, ",
     "a = stream(); launch('k', data, flag, 1024, threads=64, stream=a); ok(cuda.cuMemcpyDtoDAsync_v2(ctypes.c_uint64(flag), ctypes.c_uint64(data), ctypes.c_size_t(256), stream())); sync()",
     "a = stream(); launch('k', data, flag, 1024, threads=64, stream=a); ok(cuda.cuMemcpyDtoDAsync_v2(ctypes.c_uint64(flag), ctypes.c_uint64(data), ctypes.c_size_t(256), a)); sync()"),
]
HOST_KERNEL = "data[t] = flag[t] + n;"
