/*
 * Whole or nothing, for calls of Vulkan: the first call of an operation is refused, then the
 * second, and so on, and then the first of many; each time nothing of it is left.
 */
#include "base/descriptor.h"
#include "vulkan/device.h"
#include "vulkan_test.h"

#include <errno.h>
#include <sys/mman.h>

ALL_TESTS(find_icd, NULL);

#define SIZE ((size_t)2 * MIB)

/* VkResults that stand for what goes wrong: no memory, the device is lost, the map is refused, the
 * descriptor is not known. */
static const int results[] = {-2, -4, -5, -1000072003};

struct subject {
    struct gm_vulkan *vulkan;
    struct gm_vulkan_memory *memory;
    unsigned char *place;
    int file, fd;
    void *host;
};

struct operation {
    const char *name;
    gpumem_status (*act)(struct subject *);
    void (*undo)(struct subject *); /* after an act that succeeded */
};

struct state {
    struct vulkan_icd_live live;
    size_t descriptors, memories;
};

static struct state look(const struct subject *subject) {
    return (struct state){
        .live = icd->live(),
        .descriptors = open_descriptors(),
        .memories = subject->vulkan ? gm_vulkan_memory_count(subject->vulkan) : 0,
    };
}

static void assert_same(const struct operation *operation, unsigned call, int result,
                        struct state was, struct state is) {
    if (memcmp(&was.live, &is.live, sizeof was.live) == 0 && was.descriptors == is.descriptors &&
        was.memories == is.memories)
        return;
    fail_msg("%s, call %u answering %d: %zu descriptors, were %zu; %zu memories, were %zu; alive "
             "%zu %zu %zu %zu, were %zu %zu %zu %zu",
             operation->name, call, result, is.descriptors, was.descriptors, is.memories,
             was.memories, is.live.instances, is.live.devices, is.live.memories, is.live.maps,
             was.live.instances, was.live.devices, was.live.memories, was.live.maps);
}

/* One run with call number `call` and all that follow, or just that one, refused. False once there
 * is no such call. */
static bool run(const struct operation *operation, struct subject *subject, unsigned call,
                unsigned count, int result) {
    struct state before = look(subject);
    icd->reset();
    icd->refuse(NULL, call, count, result);
    gpumem_status status = operation->act(subject);
    bool reached = icd->calls(NULL) >= call;
    icd->refuse(NULL, 1, 0, 0);
    if (status == GPUMEM_OK) {
        if (operation->undo)
            operation->undo(subject);
    } else if (gpumem_last_error()->vulkan_code != result || !gpumem_last_error()->call[0] ||
               !strstr(gpumem_last_error()->message, " answered VK_")) {
        fail_msg("%s, call %u answering %d: %s", operation->name, call, result,
                 gpumem_last_error()->message);
    }
    assert_used_well();
    assert_same(operation, call, result, before, look(subject));
    if (reached && status == GPUMEM_OK && count == UINT32_MAX)
        fail_msg("%s succeeded although call %u and all later ones were refused", operation->name,
                 call);
    return reached;
}

static void sweep(const struct operation *operation, struct subject *subject) {
    for (size_t i = 0; i < COUNT(results); i++)
        for (unsigned count = 1; count; count = count == 1 ? UINT32_MAX : 0) {
            unsigned call = 1;
            while (run(operation, subject, call, count, results[i]))
                call++;
            if (call == 1)
                fail_msg("%s makes no call that can fail", operation->name);
        }
}

/* ---- Operations ------------------------------------------------------------------------------ */

static gpumem_status open_it(struct subject *subject) {
    gpumem_status status = gm_vulkan_open(softgpu_uuid, &subject->vulkan, NULL, 0);
    if (status != GPUMEM_OK)
        subject->vulkan = NULL;
    return status;
}

static void close_it(struct subject *subject) {
    gm_vulkan_close(subject->vulkan);
    subject->vulkan = NULL;
}

static gpumem_status allocate(struct subject *subject) {
    return gm_vulkan_allocate(subject->vulkan, SIZE, 0, &subject->memory);
}

static gpumem_status import(struct subject *subject) {
    return gm_vulkan_import(subject->vulkan, subject->file, SIZE, 0, &subject->memory);
}

static void free_it(struct subject *subject) {
    OK(gm_vulkan_free(subject->memory));
}

static gpumem_status export(struct subject *subject) {
    return gm_vulkan_export(subject->memory, &subject->fd);
}

static void close_export(struct subject *subject) {
    close(subject->fd);
}

static gpumem_status map(struct subject *subject) {
    return gm_vulkan_map(subject->memory, NULL, &subject->host);
}

static gpumem_status map_placed(struct subject *subject) {
    return gm_vulkan_map(subject->memory, subject->place, &subject->host);
}

static void unmap(struct subject *subject) {
    OK(gm_vulkan_unmap(subject->memory));
}

static gpumem_status unmap_placed(struct subject *subject) {
    return gm_vulkan_unmap(subject->memory);
}

static void map_again(struct subject *subject) {
    OK(map_placed(subject));
}

static gpumem_status flush(struct subject *subject) {
    return gm_vulkan_flush(subject->memory, 5, 100);
}

static gpumem_status invalidate(struct subject *subject) {
    return gm_vulkan_invalidate(subject->memory, 5, 100);
}

/* ---- Sweeps ---------------------------------------------------------------------------------- */

static int begin(void **state) {
    static struct subject subject;
    start_with_icd(state);
    memset(&subject, 0, sizeof subject);
    subject.file = gm_fd_memory("test");
    void *at = mmap(NULL, 2 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    subject.place = (unsigned char *)(((uintptr_t)at + SIZE - 1) / SIZE * SIZE);
    assert_int_equal(ftruncate(subject.file, (off_t)SIZE), 0);
    *state = &subject;
    return 0;
}

static int end(void **state) {
    struct subject *subject = *state;
    close_it(subject);
    assert_nothing_left();
    close(subject->file);
    return 0;
}

EACH_TEST(begin, end);

TEST_IS(opening_vulkan_is_all_or_nothing,
        sweep(&(struct operation){"open", open_it, close_it}, *state));

TEST(allocating_and_importing_vulkan_memory_is_all_or_nothing) {
    struct subject *subject = *state;
    OK(open_it(subject));
    sweep(&(struct operation){"allocate", allocate, free_it}, subject);
    sweep(&(struct operation){"import", import, free_it}, subject);
    setenv("VULKAN_ICD_COHERENT", "both", 1); /* a second type to be tried */
    close_it(subject);
    OK(open_it(subject));
    sweep(&(struct operation){"import with two types", import, free_it}, subject);
}

TEST(exporting_mapping_and_flushing_vulkan_memory_is_all_or_nothing) {
    struct subject *subject = *state;
    setenv("VULKAN_ICD_COHERENT", "no", 1);
    OK(open_it(subject));
    OK(allocate(subject));
    sweep(&(struct operation){"export", export, close_export}, subject);
    sweep(&(struct operation){"map", map, unmap}, subject);
    sweep(&(struct operation){"map at a place", map_placed, unmap}, subject);
    OK(map_placed(subject));
    sweep(&(struct operation){"unmap from a place", unmap_placed, map_again}, subject);
    sweep(&(struct operation){"flush", flush, NULL}, subject);
    sweep(&(struct operation){"invalidate", invalidate, NULL}, subject);
    assert_ptr_equal(gm_vulkan_memory_host(subject->memory), subject->place);
    free_it(subject);
}

/* Without the unmap the range cannot be kept, so the memory stays, and the device with it. Last of
 * its program, because it stays to the end. */
TEST_WITH(vulkan_memory_that_cannot_be_unmapped_is_kept, begin, NULL) {
    struct subject *subject = *state;
    OK(open_it(subject));
    OK(import(subject));
    OK(map_placed(subject));
    subject->place[SIZE - 1] = 1;
    icd->refuse("vkUnmapMemory2KHR", 1, 1, -5);
    FAILS(OUT_OF_HOST_MEMORY, gm_vulkan_free(subject->memory));
    SAYS("vkUnmapMemory2KHR answered VK_ERROR_MEMORY_MAP_FAILED");
    assert_int_equal(gm_vulkan_quarantined(subject->vulkan), 1);
    assert_int_equal(gm_vulkan_memory_count(subject->vulkan), 1);
    assert_int_equal(subject->place[SIZE - 1], 1); /* mapped still */
    struct gm_vulkan *was = subject->vulkan;
    close_it(subject);
    struct vulkan_icd_live live = icd->live();
    MEMBERS(live, (devices, 1), (memories, 1));
    OK(open_it(subject)); /* that one again, and it works */
    assert_ptr_equal(subject->vulkan, was);
    OK(allocate(subject));
    free_it(subject);
    close_it(subject);
    assert_used_well();
}
