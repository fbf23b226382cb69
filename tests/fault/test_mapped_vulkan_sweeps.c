/*
 * Whole or nothing, for mapped memory whose Vulkan calls fail: each one of each step, alone and
 * with all that follow. What Vulkan will not unmap is counted as quarantined and stays; nothing
 * else may.
 */
#include "mapped_acts.h"

#include <sys/mman.h>

EACH_TEST(start_with_icd, NULL);

/* VkResults: no memory of the host or of the device, the device is lost, a map is refused, a
 * descriptor is not known, and one without a name. */
static const int results[] = {-1, -2, -4, -5, -1000072003, -77};

struct picture {
    struct vulkan_icd_live live;
    char *state;
    size_t descriptors;
    uint64_t lost;
};

static struct picture look(void) {
    return (struct picture){.live = icd->live(),
                            .state = soft->state_dump(),
                            .descriptors = open_descriptors(),
                            .lost = quarantined(NULL)};
}

static void complain(const char *act, unsigned call, unsigned count, int result, const char *what) {
    fail_msg("%s, call %u%s answering %d: %s; the last message: %s", act, call,
             count == 1 ? "" : " and all after it", result, what, last_message());
}

/* What was lost keeps an import, its mapping and perhaps its device. */
static bool same_objects(const struct picture *was, const struct picture *is) {
    size_t lost = (size_t)(is->lost - was->lost);
    if (!lost)
        return memcmp(&was->live, &is->live, sizeof was->live) == 0;
    return is->live.memories <= was->live.memories + lost && is->live.maps <= was->live.maps + lost;
}

/* One run; false once there is no such call. */
static bool run(const struct mapped_act *act, struct subject *s, unsigned call, unsigned count,
                int result) {
    const char *name = act->name;
    struct picture before = look();
    icd->reset();
    icd->refuse(NULL, call, count, result);
    int status = act->act(s);
    bool reached = icd->calls(NULL) >= call;
    icd->refuse(NULL, 1, 0, 0);
    if (status != 0 && !reached)
        complain(name, call, count, result, "it fails without a fault");
    end_what_is_left(s);
    settle(s);
    assert_used_well();
    struct picture after = look();
    if (strcmp(before.state, after.state) != 0) {
        print_error("before:\n%s\nafter:\n%s\n", before.state, after.state);
        complain(name, call, count, result, "softgpu's state has changed");
    }
    if (before.descriptors != after.descriptors && before.lost == after.lost)
        complain(name, call, count, result, "the descriptors have changed");
    if (!same_objects(&before, &after))
        complain(name, call, count, result, "objects of Vulkan are left");
    soft->free_text(before.state);
    soft->free_text(after.state);
    return reached;
}

static void sweep(gpumem_mapped_method method, const struct mapped_act *act, struct subject *s) {
    unsigned calls = 0;
    (void)run(act, s, 100000, 1, -1); /* what is made on first use is there then */
    for (size_t i = 0; i < COUNT(results); i++)
        for (unsigned count = 1; count; count = count == 1 ? UINT32_MAX : 0)
            for (calls = 1; run(act, s, calls, count, results[i]);)
                calls++;
    print_message("%s, %s: %u calls of Vulkan\n", gpumem_mapped_method_name(method), act->name,
                  calls - 1);
    if (calls == 1)
        fail_msg("%s makes no call of Vulkan", act->name);
}

static void sweep_method(gpumem_mapped_method method, const char *coherent) {
    struct subject s;
    setenv("VULKAN_ICD_COHERENT", coherent, 1);
    begin_subject(&s, method);
    for (size_t i = 0; i < COUNT(mapped_acts); i++)
        if (has_act(method, &mapped_acts[i]))
            sweep(method, &mapped_acts[i], &s);
    end_subject(&s);
}

TEST_IS(vulkan_failures_leak_nothing_with_import, sweep_method(GPUMEM_MAPPED_VULKAN_IMPORT, "yes"));
TEST_IS(vulkan_failures_leak_nothing_with_import_and_flushes,
        sweep_method(GPUMEM_MAPPED_VULKAN_IMPORT, "no"));
TEST_IS(vulkan_failures_leak_nothing_with_export, sweep_method(GPUMEM_MAPPED_VULKAN_EXPORT, "yes"));

/* ---- What Vulkan does not unmap -------------------------------------------------------------- */

static bool is_anybodys(void *place) {
    void *at =
        mmap(place, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED)
        return false;
    munmap(at, 4096);
    return true;
}

/* Its driver may still unmap them one day. */
TEST(an_address_that_vulkan_cannot_unmap_is_never_reused) {
    struct subject s;
    begin_subject(&s, GPUMEM_MAPPED_VULKAN_IMPORT);
    gpumem_buffer *buffer = NEW_BUFFER(s.mapped, 8 * MIB);
    unsigned char *host = gpumem_buffer_host_pointer(buffer);
    uint64_t lost = quarantined(NULL);
    icd->reset();
    icd->refuse("vkUnmapMemory2KHR", 1, 1, -4);
    OK(gpumem_buffer_shrink(buffer, 4 * MIB, NULL));
    assert_int_equal(quarantined(NULL), lost + 1);
    OK(gpumem_buffer_grow(buffer, 8 * MIB, NULL)); /* over what is still mapped */
    OK(gpumem_mapped_write(buffer, 8 * MIB - 5, "last", 5));
    char bytes[5];
    OK(read_now(buffer, 8 * MIB - 5, bytes, 5, NULL));
    assert_string_equal(bytes, "last");
    OK(gpumem_buffer_free(buffer, NULL));
    assert_false(is_anybodys(host));
    assert_false(is_anybodys(host + 4 * MIB));
    buffer = NEW_BUFFER(s.mapped, 8 * MIB);
    host = gpumem_buffer_host_pointer(buffer);
    OK(gpumem_buffer_free(buffer, NULL));
    assert_true(is_anybodys(host));
    assert_used_well();
    end_subject(&s);
}

static int begin(void **state) {
    return begin_sweeps(state) != 0 ? -1 : find_icd(state);
}

ALL_TESTS(begin, end_sweeps);
