/* Memory that another driver exported, mapped by Vulkan: with the test driver, which takes any file
 * in memory. */
#include "base/descriptor.h"
#include "vulkan/device.h"
#include "vulkan_test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

ALL_TESTS(find_icd, NULL);

#define SIZE (2 * MIB)

static struct gm_vulkan *vulkan;

static int open_vulkan(void **state) {
    start_with_icd(state);
    OK(gm_vulkan_open(softgpu_uuid, &vulkan, NULL, 0));
    return 0;
}

static int close_vulkan(void **state) {
    gm_vulkan_close(vulkan);
    assert_nothing_left();
    return 0;
}

EACH_TEST(open_vulkan, close_vulkan);

/* A file in memory as softgpu exports it, and the bytes as a device sees them. */
static int make_file(size_t size, unsigned char **bytes) {
    int fd = gm_fd_memory("test");
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(*bytes, MAP_FAILED);
    return fd;
}

TEST(exporter_and_importer_see_the_same_bytes) {
    unsigned char *bytes;
    struct gm_vulkan_memory *memory;
    void *host;
    int fd = make_file(SIZE, &bytes);
    bytes[SIZE - 1] = 7;
    OK(gm_vulkan_import(vulkan, fd, SIZE, 0, &memory));
    assert_int_equal(close(fd), 0); /* the caller's own, and needed no longer */
    OK(gm_vulkan_map(memory, NULL, &host));
    assert_ptr_equal(gm_vulkan_memory_host(memory), host);
    assert_int_equal(((unsigned char *)host)[SIZE - 1], 7);
    memset(host, 0x5a, SIZE);
    for (size_t i = 0; i < SIZE; i++)
        if (bytes[i] != 0x5a)
            fail_msg("byte %zu is %d", i, bytes[i]);
    OK(gm_vulkan_unmap(memory));
    assert_null(gm_vulkan_memory_host(memory));
    OK(gm_vulkan_free(memory));
    munmap(bytes, SIZE);
}

static unsigned char *reserve(size_t size) {
    unsigned char *at = mmap(NULL, size + VULKAN_ICD_PLACE_MULTIPLE, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    uintptr_t over = (uintptr_t)at % VULKAN_ICD_PLACE_MULTIPLE;
    return over ? at + (VULKAN_ICD_PLACE_MULTIPLE - over) : at;
}

/* A range without access is there: nobody else's mapping fits in. */
static void assert_reserved(void *at, size_t size) {
    void *got = mmap(at, size, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    assert_ptr_equal(got, MAP_FAILED);
    assert_int_equal(errno, EEXIST);
}

/* Chunks side by side, and one of them in two places: a ring without a seam. */
TEST(imports_are_mapped_side_by_side_and_mirrored) {
    unsigned char *bytes[2], *range = reserve(3 * SIZE);
    struct gm_vulkan_memory *memory[3];
    void *host;
    assert_true(gm_vulkan_get_facts(vulkan)->placed);
    for (size_t i = 0; i < 2; i++) {
        int fd = make_file(SIZE, &bytes[i]);
        OK(gm_vulkan_import(vulkan, fd, SIZE, 0, &memory[i]));
        if (i == 0)
            OK(gm_vulkan_import(vulkan, fd, SIZE, 0, &memory[2]));
        assert_int_equal(close(fd), 0);
    }
    for (size_t i = 0; i < 3; i++) {
        OK(gm_vulkan_map(memory[i], range + i * SIZE, &host));
        assert_ptr_equal(host, range + i * SIZE);
    }
    memset(range + SIZE - 8, 1, 16);
    memset(range + 2 * SIZE - 8, 2, 16);
    assert_int_equal(bytes[0][SIZE - 1], 1);
    assert_int_equal(bytes[1][0], 1);
    assert_int_equal(bytes[1][SIZE - 1], 2);
    assert_int_equal(bytes[0][0], 2); /* the wrap */
    for (size_t i = 0; i < 3; i++) {
        if (i == 1)
            OK(gm_vulkan_unmap(memory[i]));
        OK(gm_vulkan_free(memory[i]));
        assert_reserved(range + i * SIZE, SIZE);
    }
    for (size_t i = 0; i < 2; i++)
        munmap(bytes[i], SIZE);
}

TEST(invalid_imports_maps_and_flushes_are_refused) {
    unsigned char *bytes, *range = reserve(SIZE);
    struct gm_vulkan_memory *memory = NULL;
    void *host = NULL;
    int fd = make_file(SIZE, &bytes), copy = -1;
    FAILS(INVALID_ARGUMENT, gm_vulkan_import(vulkan, fd, 0, 0, &memory));
    FAILS(INVALID_ARGUMENT, gm_vulkan_import(vulkan, -1, SIZE, 0, &memory));
    FAILS(INVALID_ARGUMENT, gm_vulkan_import(vulkan, fd, SIZE, 4, &memory));
    FAILS(OUT_OF_MEMORY, gm_vulkan_import(vulkan, fd, UINT64_MAX, 0, &memory));
    FAILS(NOT_SUPPORTED, gm_vulkan_import(vulkan, fd, SIZE + 1, 0, &memory));
    SAYS("vkAllocateMemory answered VK_ERROR_INVALID_EXTERNAL_HANDLE");
    assert_int_equal(gpumem_last_error()->vulkan_code, -1000072003);
    assert_string_equal(gpumem_last_error()->call, "vkAllocateMemory");
    assert_null(memory);

    OK(gm_vulkan_import(vulkan, fd, SIZE, 0, &memory));
    FAILS(INVALID_ARGUMENT, gm_vulkan_unmap(memory));
    FAILS(INVALID_ARGUMENT, gm_vulkan_flush(memory, 0, 1));
    FAILS_SAYING(INVALID_ARGUMENT, "65536", gm_vulkan_map(memory, range + 4096, &host));
    FAILS(NOT_SUPPORTED, gm_vulkan_export(memory, &copy));
    assert_null(host);
    OK(gm_vulkan_map(memory, range, &host));
    FAILS(BUSY, gm_vulkan_map(memory, NULL, &host));
    FAILS(INVALID_ARGUMENT, gm_vulkan_flush(memory, 1, SIZE));
    FAILS(INVALID_ARGUMENT, gm_vulkan_invalidate(memory, UINT64_MAX, 2));
    OK(gm_vulkan_flush(memory, SIZE, 0));
    OK(gm_vulkan_free(memory));
    OK(gm_vulkan_free(NULL));
    close(fd);
    munmap(bytes, SIZE);
}

/* What is no file in memory is not taken, and stays the caller's. */
TEST(a_descriptor_that_is_not_memory_is_refused) {
    struct gm_vulkan_memory *memory = NULL;
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    size_t before = open_descriptors();
    FAILS(NOT_SUPPORTED, gm_vulkan_import(vulkan, pipes[0], SIZE, 0, &memory));
    assert_int_equal(open_descriptors(), before);
    assert_int_equal(close(pipes[0]), 0);
    assert_int_equal(close(pipes[1]), 0);
}
