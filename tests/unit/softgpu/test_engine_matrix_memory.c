/* ldmatrix, stmatrix, movmatrix, wmma in shared memory; warps that come together; faults. */
#include "kernel.h"

#include "matrix_forms.h"

#define HEAD                                                                                       \
    ".version 9.0\n.target sm_90\n.address_size 64\n"                                              \
    ".visible .entry k(.param .u64 in, .param .u64 out) {\n"                                       \
    ".reg .pred p; .reg .b32 r<24>; .reg .b64 d<8>; .reg .f32 f<24>;\n"                            \
    ".shared .align 128 .b8 sm[4096];\n"                                                           \
    "ld.param.u64 d0, [in]; ld.param.u64 d1, [out]; mov.u32 r0, %tid.x; mov.u32 r1, sm;\n"         \
    "mad.wide.u32 d2, r0, 16, d0; mad.wide.u32 d3, r0, 16, d1;\n"
/* Each lane's 16 bytes of `in` into shared memory: 32 rows of eight elements. */
#define FILL                                                                                       \
    "ld.global.v4.b32 {r4,r5,r6,r7}, [d2]; mad.lo.u32 r2, r0, 16, r1;\n"                           \
    "st.shared.v4.b32 [r2], {r4,r5,r6,r7}; bar.sync 0;\n"
#define KEEP "st.global.v4.b32 [d3], {r8,r9,r10,r11};\n"

/* Between the two is what no kernel may touch. */
static struct {
    uint16_t rows[32][8];
    unsigned char nothing[1024];
    uint32_t got[32][4];
} memory __attribute__((aligned(16)));

/* Allocated is what the tests use, and no more. */
static bool allocated(void *user, uint64_t address, uint64_t *low, uint64_t *length) {
    uint64_t first = (uint64_t)(uintptr_t)memory.rows, second = (uint64_t)(uintptr_t)memory.got;
    bool is_first = address >= first && address - first < sizeof memory.rows;
    *low = is_first ? first : second;
    *length = is_first ? sizeof memory.rows : sizeof memory.got;
    return is_first || (address >= second && address - second < sizeof memory.got);
}

static struct sg_grid_fault run(const char *body, enum sg_level level, unsigned threads) {
    char text[4096];
    snprintf(text, sizeof text, "%s%s ret; }\n", HEAD, body);
    for (unsigned i = 0; i < 32 * 8; i++)
        memory.rows[i / 8][i % 8] = (uint16_t)(i * 257 + 3);
    memset(memory.got, 0xcc, sizeof memory.got);
    struct kernel kernel = KERNEL_WITH(text, level, 1, threads, memory.rows, memory.got);
    kernel.launch.extent = allocated;
    struct sg_grid_fault fault = kernel_run(&kernel, 0);
    kernel_free(&kernel);
    return fault;
}

static void runs(const char *body, enum sg_level level) {
    struct sg_grid_fault fault = run(body, level, 32);
    if (fault.kind != SG_FAULT_COUNT)
        fail_msg("%s: %s %s", body, sg_fault_name(fault.kind), fault.report);
}

/* Lane l of matrix m: elements 2 (l % 4) and the next of row l / 4; transposed, of that column. */
static uint32_t pair(unsigned m, unsigned lane, bool transposed) {
    unsigned line = lane / 4, at = 2 * (lane % 4);
    const uint16_t(*all)[8] = (const uint16_t(*)[8])memory.rows + 8 * m;
    uint32_t low = transposed ? all[at][line] : all[line][at];
    uint32_t high = transposed ? all[at + 1][line] : all[line][at + 1];
    return low | high << 16;
}

TEST(ldmatrix_loads_each_lanes_elements) {
    static const struct {
        const char *body;
        unsigned count;
        bool transposed;
    } cases[] = {
        {FILL "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r8}, [r2];" KEEP, 1, false},
        {FILL "ldmatrix.sync.aligned.m8n8.x2.shared::cta.b16 {r8,r9}, [r2];" KEEP, 2, false},
        {FILL "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r8,r9,r10,r11}, [r2];" KEEP, 4, false},
        {FILL "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {r8,r9,r10,r11}, [r2];" KEEP, 4,
         true},
        {FILL
         "add.u32 r2, r2, -64; ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {r8}, [r2+64];" KEEP,
         1, true},
        {FILL "cvt.u64.u32 d4, r2; cvta.shared.u64 d4, d4;\n"
              "ldmatrix.sync.aligned.m8n8.x2.trans.b16 {r8,r9}, [d4];" KEEP,
         2, true},
        /* The registers of a result may hold the addresses. */
        {FILL "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {r2,r9}, [r2]; mov.b32 r8, r2;" KEEP, 2,
         false},
    };
    FOR_EACH_LEVEL(level) {
        for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
            runs(cases[c].body, (enum sg_level)level);
            for (unsigned lane = 0; lane < 32; lane++)
                for (unsigned m = 0; m < cases[c].count; m++)
                    if (memory.got[lane][m] != pair(m, lane, cases[c].transposed))
                        fail_msg("case %zu, lane %u, matrix %u: %x, not %x", c, lane, m,
                                 memory.got[lane][m], pair(m, lane, cases[c].transposed));
        }
    }
}

TEST(stmatrix_stores_and_movmatrix_transposes) {
    static const char load[] =
        FILL "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r8,r9,r10,r11}, [r2];"
             "add.u32 r3, r2, 1024;";
    static const char back[] = "bar.sync 0; ld.shared.v4.b32 {r8,r9,r10,r11}, [r3];" KEEP;
    char body[2048];
    snprintf(body, sizeof body, "%s%s%s", load,
             "stmatrix.sync.aligned.m8n8.x4.shared.b16 [r3], {r8,r9,r10,r11};", back);
    runs(body, SG_LEVEL_GENERIC);
    assert_memory_equal(memory.got, memory.rows, sizeof memory.rows);
    snprintf(body, sizeof body, "%s%s%s", load,
             "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [r3], {r8,r9};"
             "stmatrix.sync.aligned.m8n8.x1.shared.b16 [r3+256], {r10};"
             "cvt.u64.u32 d4, r3; cvta.shared.u64 d4, d4;"
             "stmatrix.sync.aligned.m8n8.x1.b16 [d4+384], {r11};",
             back);
    runs(body, SG_LEVEL_GENERIC);
    for (unsigned i = 0; i < 16 * 8; i++) {
        uint16_t element;
        memcpy(&element, (const char *)memory.got + 2 * i, sizeof element);
        assert_int_equal(element, memory.rows[i / 64 * 8 + i % 8][i / 8 % 8]);
    }
    assert_memory_equal(memory.got[16], memory.rows[16], 256);
    snprintf(body, sizeof body, "%s%s", load,
             "movmatrix.sync.aligned.m8n8.trans.b16 r8, r8;"
             "movmatrix.sync.aligned.m8n8.trans.b16 r9, r10;" KEEP);
    runs(body, SG_LEVEL_GENERIC);
    for (unsigned lane = 0; lane < 32; lane++) {
        assert_int_equal(memory.got[lane][0], pair(0, lane, true));
        assert_int_equal(memory.got[lane][1], pair(2, lane, true));
    }
}

TEST(wmma_reads_and_writes_shared_memory) {
    runs(FILL "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16\n"
              "{r4,r5,r6,r7,r12,r13,r14,r15}, [r1], 16;\n"
              "mov.b32 r8, r4; mov.b32 r9, r5; mov.b32 r10, r6; mov.b32 r11, r15;" KEEP,
         SG_LEVEL_GENERIC);
    for (unsigned lane = 0; lane < 32; lane++) {
        const uint16_t *all = &memory.rows[0][0] + lane / 4 * 16 + 2 * (lane % 4);
        assert_memory_equal(&memory.got[lane][0], all, 4);
        assert_memory_equal(&memory.got[lane][1], all + 8 * 16, 4);
        assert_memory_equal(&memory.got[lane][2], all + 8, 4);
        assert_memory_equal(&memory.got[lane][3], all + 8 * 16 + 8, 4);
    }
    runs(FILL "mov.b32 r4, r0; mov.b32 r5, 7; cvt.u64.u32 d4, r1; cvta.shared.u64 d4, d4;\n"
              "wmma.store.d.sync.aligned.row.m8n8k32.s32 [d4+1024], {r4,r5}, 8; bar.sync 0;\n"
              "ld.shared.v2.b32 {r8,r9}, [r2+1024]; mov.b32 r10, 0; mov.b32 r11, 0;" KEEP,
         SG_LEVEL_GENERIC);
    for (unsigned lane = 0; lane < 16; lane++) /* lanes 2l have what two lanes wrote side by side */
        assert_int_equal(memory.got[lane][0], 2 * lane);
}

/* Half of the warp comes by another way; and what others have computed is there. */
TEST(warp_wide_instructions_wait_for_diverged_lanes) {
    runs(FILL "setp.lt.u32 p, r0, 11; mov.b32 r8, 1; mov.b32 r9, 0; mov.b32 r12, 0;\n"
              "@p bra LOW; mov.b32 r8, 2; mov.b32 r9, 5; add.u32 r12, r0, 100; bra MEET;\n"
              "LOW: mov.b32 r9, 9; add.u32 r12, r0, 100;\n"
              "MEET: movmatrix.sync.aligned.m8n8.trans.b16 r10, r12; mov.b32 r11, 0;" KEEP,
         SG_LEVEL_GENERIC);
    for (unsigned lane = 0; lane < 32; lane++) {
        unsigned line = lane / 4, at = 2 * (lane % 4);
        unsigned low = at * 4 + line / 2, high = (at + 1) * 4 + line / 2;
        uint32_t wanted = (line & 1 ? 0 : low + 100) | (line & 1 ? 0 : (high + 100) << 16);
        assert_int_equal(memory.got[lane][0], lane < 11 ? 1 : 2);
        assert_int_equal(memory.got[lane][2], wanted);
    }
    /* Lanes that have exited are not waited for. */
    runs("setp.ge.u32 p, r0, 24; @p exit; mov.b32 r9, 0; mov.b32 r10, 0; mov.b32 r11, 0;\n"
         "setp.ge.u32 p, r0, 3; @p bra NEXT; mov.b32 r9, 4; NEXT:\n"
         "movmatrix.sync.aligned.m8n8.trans.b16 r8, r0;" KEEP,
         SG_LEVEL_GENERIC);
    assert_int_equal(memory.got[0][1], 4);
    assert_int_equal(memory.got[23][1], 0);
    assert_int_equal(memory.got[24][1], 0xcccccccc);
}

/* All lanes' elements are there; only those write for whom the guard is true. */
TEST(a_guard_selects_the_lanes_that_write) {
    runs("setp.lt.u32 p, r0, 7; mov.b32 r8, 77; mov.b32 r9, 88; mov.b32 r10, 0; mov.b32 r11, 0;\n"
         "@p movmatrix.sync.aligned.m8n8.trans.b16 r8, r0;\n"
         "setp.lt.u32 p, r0, 0; @p movmatrix.sync.aligned.m8n8.trans.b16 r9, r0;" KEEP,
         SG_LEVEL_GENERIC);
    for (unsigned lane = 0; lane < 32; lane++) {
        unsigned line = lane / 4, at = 2 * (lane % 4);
        uint32_t moved = line & 1 ? 0 : (at * 4 + line / 2) | ((at + 1) * 4 + line / 2) << 16;
        assert_int_equal(memory.got[lane][0], lane < 7 ? moved : 77);
        assert_int_equal(memory.got[lane][1], 88);
    }
}

TEST(lanes_that_never_converge_are_a_deadlock) {
    struct sg_grid_fault fault = run("setp.lt.u32 p, r0, 16; @p bra LOW;\n"
                                     "movmatrix.sync.aligned.m8n8.trans.b16 r8, r0; bra END;\n"
                                     "LOW: movmatrix.sync.aligned.m8n8.trans.b16 r8, r0; END:" KEEP,
                                     SG_LEVEL_GENERIC, 32);
    assert_int_equal(fault.kind, SG_FAULT_DEADLOCK);
}

TEST(matrix_faults_name_the_lane) {
    struct sg_grid_fault fault =
        run("setp.eq.u32 p, r0, 5; mad.lo.u32 r2, r0, 16, r1; @p add.u32 r2, r2, 8;\n"
            "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r8}, [r2];",
            SG_LEVEL_GENERIC, 32);
    MEMBERS(fault, (kind, SG_FAULT_MISALIGNED), (thread[0], 5));
    assert_false(fault.write);
    fault = run("mad.lo.u32 r2, r0, 16, r1; stmatrix.sync.aligned.m8n8.x4.shared.b16 [r2+4000],\n"
                "{r0,r0,r0,r0};",
                SG_LEVEL_GENERIC, 32);
    assert_int_equal(fault.kind, SG_FAULT_SPACE);
    assert_true(fault.write);
    fault = run("ldmatrix.sync.aligned.m8n8.x1.b16 {r8}, [d0];", SG_LEVEL_GENERIC, 32);
    assert_int_equal(fault.kind, SG_FAULT_SPACE);
    fault = run("mov.u64 d4, 64; wmma.load.a.sync.aligned.row.m16n16k16.global.bf16\n"
                "{r4,r5,r6,r7}, [d4], 16;",
                SG_LEVEL_GENERIC, 32);
    MEMBERS(fault, (kind, SG_FAULT_ADDRESS), (address, 64));
    assert_false(fault.write);
    fault = run("mov.u64 d4, 64; wmma.store.d.sync.aligned.row.m16n16k16.global.f16\n"
                "[d4], {r0,r0,r0,r0}, 16;",
                SG_LEVEL_GENERIC, 32);
    assert_int_equal(fault.kind, SG_FAULT_ADDRESS);
    assert_true(fault.write);
    /* The last lines are behind the end. */
    fault = run("wmma.load.a.sync.aligned.row.m16n16k16.global.bf16 {r4,r5,r6,r7}, [d0], 24;",
                SG_LEVEL_GENERIC, 32);
    assert_int_equal(fault.kind, SG_FAULT_ADDRESS);
    assert_true(fault.address >= (uint64_t)(uintptr_t)memory.rows + sizeof memory.rows);
    fault = run("add.u64 d4, d0, 2; wmma.load.a.sync.aligned.row.m16n16k16.global.bf16\n"
                "{r4,r5,r6,r7}, [d4], 16;",
                SG_LEVEL_GENERIC, 32);
    assert_int_equal(fault.kind, SG_FAULT_MISALIGNED);
}
