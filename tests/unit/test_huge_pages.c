/* Pinned memory in huge pages that the system has set aside, and what comes in their place. */
#include "library_test.h"
#include "planted_files.h"

#include "base/host_memory.h"
#include "memory/host/huge_pages.h"

#include <errno.h>
#include <sys/mman.h>

static size_t reserve; /* huge pages that are left */
static size_t mapped;

/* Stands for the reserve: plain pages, so many of them. */
static void *take_from_reserve(size_t bytes) {
    if (bytes / GM_HUGE_PAGE > reserve) {
        errno = ENOMEM;
        return NULL;
    }
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    reserve -= bytes / GM_HUGE_PAGE;
    mapped++;
    return base;
}

/* As where a control group grants no huge pages: addresses are given, pages are not. */
static void *give_addresses_alone(size_t bytes) {
    void *base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mapped++;
    return base == MAP_FAILED ? NULL : base;
}

static int setup(void **state) {
    if (planted_make() != 0 || open_device(state) != 0)
        return -1;
    mapped = 0;
    reserve = 0;
    plant("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    gm_huge_for_tests(take_from_reserve, planted_root);
    return 0;
}

static int teardown(void **state) {
    gm_huge_for_tests(NULL, "");
    return close_device(state) | planted_remove();
}

EACH_TEST(setup, teardown);

static gpumem_resource *make(gpumem_pinned_method method) {
    return NEW_PINNED(.method = method, .slab_bytes = 4 * MIB,
                      .huge_pages = GPUMEM_HUGE_PAGES_RESERVED);
}

static gpumem_buffer *take(gpumem_resource *resource, size_t bytes) {
    gpumem_buffer *buffer = NEW_BUFFER(resource, bytes);
    OK(gpumem_buffer_fill(buffer, 0, bytes, 0x5c, NULL));
    synchronize(NULL);
    const unsigned char *host = gpumem_buffer_host_pointer(buffer);
    assert_int_equal(host[0], 0x5c);
    assert_int_equal(host[bytes - 1], 0x5c);
    return buffer;
}

TEST(reserved_huge_pages_are_used_while_available) {
    reserve = 3;
    gpumem_resource *resource = make(GPUMEM_PINNED_AUTO);
    gpumem_pinned_info info = pinned_info_of(resource);
    MEMBERS(info, (method, GPUMEM_PINNED_REGISTERED), (slabs, 0));
    gpumem_buffer *first = take(resource, 4 * MIB);
    info = pinned_info_of(resource);
    assert_int_equal(mapped, 1);
    MEMBERS(info, (slabs, 1), (huge_bytes, 4 * MIB), (pinned_bytes, 4 * MIB));
    assert_string_equal(info.reserved_reason, "");
    gpumem_buffer *second = take(resource, 4 * MIB); /* one page is left, and two are wanted */
    info = pinned_info_of(resource);
    MEMBERS(info, (slabs, 2), (huge_bytes, 4 * MIB), (pinned_bytes, 8 * MIB));
    assert_non_null(strstr(info.reserved_reason, "mmap did not get 2 reserved huge pages"));
    assert_non_null(strstr(info.reserved_reason, "Cannot allocate memory"));
    assert_int_equal(info.transparent_huge_pages, 1);
    assert_string_equal(info.transparent_reason, "");
    DESTROY(first, second, resource);
}

TEST(huge_pages_that_cannot_be_touched_are_returned) {
    gm_huge_for_tests(give_addresses_alone, planted_root);
    gpumem_resource *resource = make(GPUMEM_PINNED_REGISTERED);
    gpumem_buffer *buffer = take(resource, 4 * MIB);
    gpumem_pinned_info info = pinned_info_of(resource);
    assert_int_equal(mapped, 1);
    assert_int_equal(info.huge_bytes, 0);
    assert_non_null(strstr(info.reserved_reason, "madvise"));
    DESTROY(buffer, resource);
}

TEST(a_refused_registration_falls_back_to_ordinary_pages) {
    reserve = 100;
    gpumem_resource *resource = make(GPUMEM_PINNED_REGISTERED);
    soft->fault_arm("cuMemHostRegister_v2", 1, CUDA_ERROR_NOT_SUPPORTED, SOFTGPU_FAULT_AFTER);
    gpumem_buffer *buffer = take(resource, 4 * MIB);
    assert_int_equal(soft->fault_disarm(), 1);
    gpumem_pinned_info info = pinned_info_of(resource);
    assert_int_equal(info.huge_bytes, 0);
    assert_non_null(strstr(info.reserved_reason, "cuMemHostRegister"));
    DESTROY(buffer, resource);
}

TEST(slabs_not_a_multiple_of_the_huge_page_size_use_none) {
    reserve = 100;
    gpumem_resource *resource =
        NEW_PINNED(.maximum_bytes = 3 * MIB, .huge_pages = GPUMEM_HUGE_PAGES_RESERVED);
    gpumem_buffer *buffer = take(resource, MIB);
    assert_non_null(
        strstr(pinned_info_of(resource).reserved_reason, "not a whole number of huge pages"));
    assert_int_equal(mapped, 0);
    DESTROY(buffer, resource);
}

/* What is set aside is not what a control group of ordinary memory limits. */
TEST(a_full_cgroup_does_not_limit_reserved_huge_pages) {
    plant("/proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 1024 kB\n");
    gm_host_memory_set_root(planted_root);
    reserve = 2;
    gpumem_resource *resource = make(GPUMEM_PINNED_AUTO);
    gpumem_buffer *buffer = take(resource, 4 * MIB), *none;
    FAILS(OUT_OF_HOST_MEMORY, gpumem_buffer_allocate(resource, 4 * MIB, NULL, &none));
    DESTROY(buffer, resource);
    gm_host_memory_set_root("");
}

TEST(disabled_transparent_huge_pages_are_reported) {
    gpumem_resource *resource = make(GPUMEM_PINNED_AUTO);
    plant("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
    gpumem_pinned_info info = pinned_info_of(resource);
    assert_int_equal(info.transparent_huge_pages, 0);
    assert_non_null(strstr(info.transparent_reason, "never"));
    plant("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
    assert_int_equal(pinned_info_of(resource).transparent_huge_pages, 1);
    gm_huge_for_tests(take_from_reserve, "/nowhere");
    info = pinned_info_of(resource);
    assert_int_equal(info.transparent_huge_pages, 0);
    assert_non_null(strstr(info.transparent_reason, "does not report"));
    OK(gpumem_resource_destroy(resource));
}

TEST(invalid_options_are_refused_with_a_reason) {
    gpumem_resource *none;
    gpumem_pinned_info info = {.size = sizeof info};
    const gpumem_pinned_options wrong[] = {
        {.method = GPUMEM_PINNED_ALLOCATED, .huge_pages = GPUMEM_HUGE_PAGES_RESERVED},
        {.method = GPUMEM_PINNED_POOL, .huge_pages = GPUMEM_HUGE_PAGES_RESERVED},
        {.flags = GPUMEM_PINNED_WRITE_COMBINED, .huge_pages = GPUMEM_HUGE_PAGES_RESERVED},
        {.huge_pages = (gpumem_huge_pages)2}};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        gpumem_pinned_options options = wrong[i];
        options.size = sizeof options;
        FAILS(INVALID_ARGUMENT, gpumem_pinned_resource_create(device, &options, &none));
        SAYS("huge_pages");
    }
    gpumem_resource *pool = NEW_PINNED(.method = GPUMEM_PINNED_POOL);
    FAILS(NOT_SUPPORTED, gpumem_pinned_get_info(pool, &info));
    OK(gpumem_resource_destroy(pool));
    pool = NEW_POOL();
    FAILS(NOT_SUPPORTED, gpumem_pinned_get_info(pool, &info));
    OK(gpumem_resource_destroy(pool));
    pool = NEW_VIRTUAL();
    FAILS(INVALID_ARGUMENT, gpumem_pinned_get_info(pool, &info));
    OK(gpumem_resource_destroy(pool));
}

/* The system's own reserve, where there is one. */
TEST(the_systems_reserved_huge_pages_are_used) {
    gm_huge_for_tests(NULL, "");
    gpumem_resource *resource = make(GPUMEM_PINNED_AUTO);
    gpumem_buffer *buffer = take(resource, 4 * MIB);
    gpumem_pinned_info info = pinned_info_of(resource);
    DESTROY(buffer, resource);
    assert_int_equal(info.huge_bytes == 0, info.reserved_reason[0] != 0);
    if (!info.huge_bytes) {
        print_message("skip: %s\n", info.reserved_reason);
        skip();
    }
    assert_int_equal(info.huge_bytes, 4 * MIB);
}
