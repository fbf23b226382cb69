/* Small buffers are pieces of slabs: no Vulkan call for each, never two with the same bytes, never
 * bytes that the GPU still uses, and the slabs go with the last of them. */
#include "vkgdr_test.h"

#include <pthread.h>

ALL_TESTS(start_vkgdr, close_device);

#define UNIT 256
#define SLAB (2 * MIB)
#define MANY 20000

static vkgdr_t g;

static int start(void **state) {
    if (start_with_context(state) != 0)
        return -1;
    g = open_gpu(0);
    return 0;
}

static int end(void **state) {
    vkgdr_close(g);
    return end_with_context(state);
}

EACH_TEST(start, end);

TEST(small_buffers_of_one_slab_need_one_vulkan_allocation) {
    vkgdr_memory_t memory[SLAB / UNIT];
    for (size_t i = 0; i < COUNT(memory); i++)
        memory[i] = allocate(g, 1 + i % UNIT);
    assert_int_equal(icd->calls("vkAllocateMemory"), 1);
    assert_int_equal(icd->calls("vkMapMemory"), 1);
    vkgdr_memory_t more = allocate(g, 1);
    assert_int_equal(icd->calls("vkAllocateMemory"), 2);
    vkgdr_memory_free(more);
    for (size_t i = 0; i < COUNT(memory); i++)
        vkgdr_memory_free(memory[i]);
}

TEST(allocating_and_freeing_from_a_slab_makes_no_vulkan_call) {
    vkgdr_memory_t held = allocate(g, 64);
    unsigned before = icd->calls("vkAllocateMemory");
    for (int i = 0; i < 1000; i++)
        vkgdr_memory_free(allocate(g, 256 * KIB));
    assert_int_equal(icd->calls("vkAllocateMemory"), before);
    vkgdr_memory_free(held);
}

TEST(large_buffers_have_their_own_vulkan_memory) {
    vkgdr_memory_t one = allocate(g, 256 * KIB + 1), other = allocate(g, SLAB);
    assert_int_equal(icd->live().memories, 2);
    vkgdr_memory_free(one);
    assert_int_equal(icd->live().memories, 1);
    vkgdr_memory_free(other);
}

TEST(freeing_the_last_buffer_frees_its_slab) {
    vkgdr_memory_t first = allocate(g, 64), second = allocate(g, 64);
    CUdeviceptr address = vkgdr_memory_get_device_ptr(first);
    unsigned char byte;
    vkgdr_memory_free(first);
    assert_int_equal(icd->live().memories, 1);
    vkgdr_memory_free(second);
    assert_int_equal(icd->live().memories, 0);
    FAILS_CU(INVALID_VALUE, cu->cuMemcpyDtoH_v2(&byte, address, 1));
}

/* Not thrown away and made anew with each buffer that comes and goes. */
TEST(one_empty_slab_is_kept_while_buffers_live) {
    vkgdr_memory_t memory[25];
    for (size_t i = 0; i < COUNT(memory); i++)
        memory[i] = allocate(g, 256 * KIB);
    assert_int_equal(icd->live().memories, 4);
    for (size_t i = COUNT(memory) - 1; i > 0; i--)
        vkgdr_memory_free(memory[i]);
    assert_int_equal(icd->live().memories, 2);
    vkgdr_memory_free(memory[0]);
    assert_int_equal(icd->live().memories, 0);
}

/* ---- Random steps beside a model ------------------------------------------------------------- */

struct piece {
    vkgdr_memory_t memory;
    size_t size;
    unsigned seed;
};

static void end_piece(struct piece *piece) {
    if (!piece->memory)
        return;
    check_bytes(host_of(piece->memory), piece->size, piece->seed);
    vkgdr_memory_free(piece->memory);
    piece->memory = NULL;
}

TEST(random_allocations_never_share_bytes) {
    static struct piece pieces[200];
    unsigned seed = 20261122;
    const char *takes_long = getenv("GPUMEM_TEST_LONG");
    unsigned steps = takes_long && strcmp(takes_long, "1") == 0 ? 50 * MANY : MANY;
    for (unsigned i = 0; i < steps; i++) {
        struct piece *piece = &pieces[(unsigned)rand_r(&seed) % COUNT(pieces)];
        end_piece(piece);
        unsigned bits = (unsigned)rand_r(&seed) % 17;
        piece->size = 1 + (unsigned)rand_r(&seed) % ((size_t)1 << bits);
        piece->seed = i;
        piece->memory = allocate(g, piece->size);
        fill(host_of(piece->memory), piece->size, i);
        if (i % 16 == 0)
            check_device(piece->memory, piece->size, i);
    }
    for (size_t i = 0; i < COUNT(pieces); i++)
        end_piece(&pieces[i]);
}

/* ---- Work that is queued --------------------------------------------------------------------- */

struct opener {
    struct gate gate;
    uint64_t synchronized;
    bool seen;
};

/* Opens once somebody waits. A free that does not wait never gets here: the time-out ends it. */
static void *open_when_waited_for(void *data) {
    struct opener *opener = data;
    for (int i = 0; i < 10000 && !opener->seen; i++) {
        opener->seen = soft->call_count("cuCtxSynchronize") > opener->synchronized;
        usleep(1000);
    }
    __atomic_store_n(opener->gate.flag, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

TEST(a_free_waits_for_queued_work) {
    pthread_t thread;
    vkgdr_memory_t held = allocate(g, 64), memory = allocate(g, 4096);
    struct opener opener = {.gate = gate_with_stream(),
                            .synchronized = soft->call_count("cuCtxSynchronize")};
    memset(host_of(memory), 0, 4096);
    OK_CU(cu->cuMemsetD8Async(vkgdr_memory_get_device_ptr(memory), 7, 4096, opener.gate.stream));
    unsigned char *host = host_of(memory);
    assert_int_equal(pthread_create(&thread, NULL, open_when_waited_for, &opener), 0);
    vkgdr_memory_free(memory);
    bool done = host[0] == 7 && host[4095] == 7;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(done);
    assert_true(opener.seen);
    vkgdr_memory_free(held);
    OK(gpumem_stream_destroy(device, opener.gate.stream));
    OK_CU(cu->cuMemFreeHost(opener.gate.flag));
}

TEST(memory_is_not_reused_if_waiting_for_its_work_fails) {
    vkgdr_memory_t held = allocate(g, 64), memory = allocate(g, 64);
    CUdeviceptr address = vkgdr_memory_get_device_ptr(memory);
    assert_int_equal(
        soft->fault_arm("cuCtxSynchronize", 1, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_BEFORE), 0);
    vkgdr_memory_free(memory);
    assert_int_equal(soft->fault_disarm(), 1);
    vkgdr_memory_t others[SLAB / UNIT - 2];
    for (size_t i = 0; i < COUNT(others); i++) {
        others[i] = allocate(g, 1);
        assert_true(vkgdr_memory_get_device_ptr(others[i]) != address);
    }
    assert_int_equal(icd->calls("vkAllocateMemory"), 1);
    for (size_t i = 0; i < COUNT(others); i++)
        vkgdr_memory_free(others[i]);
    vkgdr_memory_free(held);
}

/* Nor is the slab kept that has lost them. */
TEST(a_slab_with_unusable_memory_is_not_kept) {
    vkgdr_memory_t held[9];
    for (size_t i = 0; i < COUNT(held); i++)
        held[i] = allocate(g, 256 * KIB);
    assert_int_equal(icd->live().memories, 2);
    assert_int_equal(
        soft->fault_arm("cuCtxSynchronize", 1, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_BEFORE), 0);
    vkgdr_memory_free(held[8]);
    assert_int_equal(soft->fault_disarm(), 1);
    assert_int_equal(icd->live().memories, 1);
    for (size_t i = 0; i < 8; i++)
        vkgdr_memory_free(held[i]);
}
