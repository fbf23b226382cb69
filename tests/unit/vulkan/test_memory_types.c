/* Which memory is taken, how much of it there is, and what non-coherent memory needs. */
#include "vulkan/device.h"
#include "vulkan_test.h"

#include <sys/mman.h>

ALL_TESTS(find_icd, NULL);

EACH_TEST(start_with_icd, NULL);

static struct gm_vulkan *vulkan;

static void open_with(const char *coherent) {
    setenv("VULKAN_ICD_COHERENT", coherent, 1);
    OK(gm_vulkan_open(softgpu_uuid, &vulkan, NULL, 0));
}

static void close_it(void) {
    gm_vulkan_close(vulkan);
    assert_nothing_left();
}

static void check_type(unsigned flags, unsigned index, bool coherent) {
    struct gm_vulkan_type type;
    OK(gm_vulkan_choose(vulkan, flags, &type));
    MEMBERS(type, (index, index), (coherent, coherent), (atom, VULKAN_ICD_ATOM), (heap_bytes, GIB));
}

TEST(coherent_memory_is_preferred) {
    struct gm_vulkan_type type;
    open_with("both");
    check_type(0, 3, true);
    check_type(GM_VULKAN_REQUIRE_COHERENT, 3, true);
    check_type(GM_VULKAN_FORCE_NON_COHERENT, 2, false);
    check_type(GM_VULKAN_REQUIRE_COHERENT | GM_VULKAN_FORCE_NON_COHERENT, 3, false);
    FAILS(INVALID_ARGUMENT, gm_vulkan_choose(vulkan, 4, &type));
    close_it();

    open_with("yes");
    check_type(0, 2, true);
    check_type(GM_VULKAN_FORCE_NON_COHERENT, 2, false);
    close_it();

    open_with("no");
    check_type(0, 2, false);
    FAILS(NOT_SUPPORTED, gm_vulkan_choose(vulkan, GM_VULKAN_REQUIRE_COHERENT, &type));
    SAYS("0: device, 1: host visible coherent, 2: device visible");
    assert_false(gm_vulkan_get_facts(vulkan)->coherent);
    close_it();
}

/* ---- What the device sees -------------------------------------------------------------------- */

/* Memory of two and a half atoms, mapped; `device_side` maps what was exported. */
#define SIZE (2 * VULKAN_ICD_ATOM + 32)

static struct gm_vulkan_memory *memory;
static unsigned char *host, *device_side;

static void map_both(const char *coherent, unsigned flags) {
    void *at;
    int fd;
    open_with(coherent);
    OK(gm_vulkan_allocate(vulkan, SIZE, flags, &memory));
    OK(gm_vulkan_export(memory, &fd));
    device_side = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(device_side, MAP_FAILED);
    close(fd);
    OK(gm_vulkan_map(memory, NULL, &at));
    host = at;
}

static void unmap_both(void) {
    munmap(device_side, SIZE);
    OK(gm_vulkan_free(memory));
    close_it();
}

TEST(host_writes_are_invisible_before_a_flush) {
    map_both("no", 0);
    assert_false(gm_vulkan_memory_type(memory)->coherent);
    memset(host, 1, SIZE);
    assert_int_equal(device_side[0], 0);
    OK(gm_vulkan_flush(memory, VULKAN_ICD_ATOM + 3, 1)); /* the whole atom, and no more */
    assert_int_equal(device_side[VULKAN_ICD_ATOM - 1], 0);
    assert_int_equal(device_side[VULKAN_ICD_ATOM], 1);
    assert_int_equal(device_side[2 * VULKAN_ICD_ATOM - 1], 1);
    assert_int_equal(device_side[2 * VULKAN_ICD_ATOM], 0);
    OK(gm_vulkan_flush(memory, SIZE - 1, 1)); /* the last atom has no end */
    assert_int_equal(device_side[2 * VULKAN_ICD_ATOM], 1);
    assert_int_equal(device_side[SIZE - 1], 1);
    assert_int_equal(device_side[0], 0);
    OK(gm_vulkan_flush(memory, VULKAN_ICD_ATOM - 1, 2)); /* across two */
    assert_int_equal(device_side[0], 1);
    unmap_both();
}

TEST(device_writes_are_invisible_before_an_invalidate) {
    map_both("no", 0);
    memset(device_side, 2, SIZE);
    assert_int_equal(host[0], 0);
    OK(gm_vulkan_invalidate(memory, 1, VULKAN_ICD_ATOM - 1));
    assert_int_equal(host[0], 2);
    assert_int_equal(host[VULKAN_ICD_ATOM], 0);
    OK(gm_vulkan_invalidate(memory, 0, SIZE));
    assert_int_equal(host[SIZE - 1], 2);
    unmap_both();
}

/* Widening to atoms writes nothing that the CPU did not write. */
TEST(a_flush_keeps_device_bytes_in_the_same_atom) {
    map_both("no", 0);
    device_side[1] = 9;
    host[0] = 1;
    OK(gm_vulkan_flush(memory, 0, 1));
    assert_int_equal(device_side[0], 1);
    assert_int_equal(device_side[1], 9);
    unmap_both();
}

TEST(flushed_ranges_are_widened_to_whole_atoms) {
    map_both("no", 0);
    for (size_t offset = 0; offset <= SIZE; offset++)
        for (size_t size = 0; offset + size <= SIZE; size++) {
            OK(gm_vulkan_flush(memory, offset, size));
            OK(gm_vulkan_invalidate(memory, offset, size));
        }
    assert_used_well();
    unmap_both();
}

TEST(coherent_memory_makes_no_flush_call) {
    map_both("yes", 0);
    host[0] = 1;
    assert_int_equal(device_side[0], 1);
    OK(gm_vulkan_flush(memory, 0, SIZE));
    OK(gm_vulkan_invalidate(memory, 0, SIZE));
    assert_int_equal(icd->calls("vkFlushMappedMemoryRanges"), 0);
    assert_int_equal(icd->calls("vkInvalidateMappedMemoryRanges"), 0);
    unmap_both();
    map_both("yes", GM_VULKAN_FORCE_NON_COHERENT);
    OK(gm_vulkan_flush(memory, 0, SIZE));
    OK(gm_vulkan_invalidate(memory, 0, SIZE));
    assert_int_equal(icd->calls("vkFlushMappedMemoryRanges"), 1);
    assert_int_equal(icd->calls("vkInvalidateMappedMemoryRanges"), 1);
    unmap_both();
}

/* ---- How much -------------------------------------------------------------------------------- */

TEST(allocating_beyond_the_budget_is_refused) {
    uint64_t budget, usage;
    struct gm_vulkan_memory *first, *second = NULL;
    setenv("VULKAN_ICD_BUDGET", "4194304", 1);
    open_with("yes");
    OK(gm_vulkan_get_budget(vulkan, &budget, &usage));
    assert_int_equal(budget, 4 * MIB);
    assert_int_equal(usage, 0);
    OK(gm_vulkan_allocate(vulkan, 3 * MIB, 0, &first));
    OK(gm_vulkan_get_budget(vulkan, &budget, &usage));
    assert_int_equal(usage, 3 * MIB);
    FAILS(OUT_OF_MEMORY, gm_vulkan_allocate(vulkan, 2 * MIB, 0, &second));
    SAYS("vkAllocateMemory answered VK_ERROR_OUT_OF_DEVICE_MEMORY");
    assert_int_equal(gpumem_last_error()->vulkan_code, -2);
    FAILS(OUT_OF_MEMORY, gm_vulkan_allocate(vulkan, 2 * GIB, 0, &second));
    SAYS("the heap has 1073741824");
    FAILS(INVALID_ARGUMENT, gm_vulkan_allocate(vulkan, 0, 0, &second));
    assert_null(second);
    OK(gm_vulkan_free(first));
    close_it();
}

TEST(allocating_beyond_the_allocation_limit_is_refused) {
    struct gm_vulkan_memory *all[3], *more = NULL;
    int fd;
    setenv("VULKAN_ICD_ALLOCATIONS", "3", 1);
    open_with("yes");
    for (size_t i = 0; i < COUNT(all); i++)
        OK(gm_vulkan_allocate(vulkan, MIB, 0, &all[i]));
    assert_int_equal(gm_vulkan_memory_count(vulkan), 3);
    FAILS(OUT_OF_CAPACITY, gm_vulkan_allocate(vulkan, MIB, 0, &more));
    SAYS("allows 3 Vulkan allocations and imports at a time");
    OK(gm_vulkan_export(all[0], &fd));
    FAILS(OUT_OF_CAPACITY, gm_vulkan_import(vulkan, fd, MIB, 0, &more));
    OK(gm_vulkan_free(all[0]));
    OK(gm_vulkan_import(vulkan, fd, MIB, 0, &more)); /* room again */
    close(fd);
    OK(gm_vulkan_free(more));
    OK(gm_vulkan_free(all[1]));
    OK(gm_vulkan_free(all[2]));
    assert_int_equal(gm_vulkan_memory_count(vulkan), 0);
    close_it();
}
