/* Pinning memory that the program has already, and pinning ahead of need. */
#include "library_test.h"
#include "temporary.h"

#include <sys/mman.h>

ALL_TESTS(open_device, close_device);

static gpumem_buffer *pin(void *address, size_t bytes, int read_only) {
    return MADE(gpumem_buffer *, gpumem_buffer_register, device, address, bytes,
                GPUMEM_REGISTER_OPTIONS(.read_only = read_only));
}

/* Whether the driver knows the address. */
static int is_known(const void *address) {
    CUmemorytype type = (CUmemorytype)0;
    return cu->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                     (CUdeviceptr)(uintptr_t)address) == CUDA_SUCCESS;
}

TEST(registered_memory_is_pinned_until_its_buffer_is_freed) {
    unsigned char *bytes = malloc(3 * MIB + 100);
    gpumem_buffer *buffer = pin(bytes + 13, 3 * MIB, 0);
    assert_ptr_equal(gpumem_buffer_host_pointer(buffer), bytes + 13);
    assert_true(is_known(bytes + MIB));
    memset(bytes + 13, 5, 3 * MIB);
    gpumem_resource *memory = NEW_VIRTUAL();
    gpumem_buffer *there = NEW_BUFFER(memory, 3 * MIB);
    OK(gpumem_buffer_copy(there, 0, buffer, 0, 3 * MIB, NULL));
    OK(gpumem_buffer_fill(buffer, 0, MIB, 9, NULL));
    OK(copy_now(buffer, MIB, there, 0, MIB, NULL));
    assert_int_equal(bytes[13], 9);
    assert_int_equal(bytes[13 + MIB], 5);
    DESTROY(there, buffer);
    OK(gpumem_stream_synchronize(device, NULL));
    OK(gpumem_device_trim(device, 1));
    assert_false(is_known(bytes + MIB));
    OK(gpumem_resource_destroy(memory));
    free(bytes);
}

TEST(a_read_only_file_mapping_can_be_registered) {
    char path[TEMPORARY_ROOM];
    int fd = temporary_file(path, "register");
    assert_int_equal(ftruncate(fd, 64 * (off_t)KIB), 0);
    assert_int_equal(pwrite(fd, "end", 3, 64 * (off_t)KIB - 3), 3);
    void *mapped = mmap(NULL, 64 * KIB, PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(mapped, MAP_FAILED);
    gpumem_buffer *buffer = pin(mapped, 64 * KIB, 1);
    char seen[4] = "";
    OK(read_now(buffer, 64 * KIB - 3, seen, 3, NULL));
    assert_string_equal(seen, "end");
    FAILS(NOT_PERMITTED, gpumem_buffer_fill(buffer, 0, 1, 0, NULL));
    OK(gpumem_buffer_free(buffer, NULL));
    munmap(mapped, 64 * KIB);
    close(fd);
    unlink(path);
}

TEST(invalid_and_overlapping_ranges_cannot_be_registered) {
    gpumem_buffer *buffer, *again;
    unsigned char *bytes = malloc(MIB);
    buffer = pin(bytes, MIB, 0);
    char part[80];
    snprintf(part, sizeof part, "%zu at 0x%zx are registered already", MIB, (size_t)bytes);
    FAILS_SAYING(BUSY, part, gpumem_buffer_register(device, bytes + 100, 100, NULL, &again));
    SAYS("gpumem_buffer_from_pointer");
    FAILS_SAYING(BUSY, part, gpumem_buffer_register(device, bytes - 1, 2, NULL, &again));
    OK(write_now(buffer, 0, "x", 1, NULL)); /* still pinned */
    OK(gpumem_buffer_free(buffer, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_register(device, NULL, 100, NULL, &again));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_register(device, bytes, 0, NULL, &again));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_register(device, bytes, SIZE_MAX, NULL, &again));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_register(device, bytes, 100, NULL, NULL));
    free(bytes);
}

TEST(slabs_are_pinned_in_the_background) {
    gpumem_resource *pinned = NEW_PINNED(.slab_bytes = 2 * MIB);
    OK(gpumem_pinned_warm_up(pinned, 7 * MIB));
    while (pinned_info_of(pinned).pinned_bytes < 8 * MIB)
        usleep(1000);
    uint64_t calls = soft->call_count("cuMemHostRegister");
    gpumem_buffer *buffer = NEW_BUFFER(pinned, 2 * MIB);
    assert_int_equal(soft->call_count("cuMemHostRegister"), calls);
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_pinned_warm_up(pinned, 0));
    OK(gpumem_resource_destroy(pinned));
}

TEST(warming_up_stops_at_the_maximum) {
    gpumem_resource *pinned = NEW_PINNED(.slab_bytes = 2 * MIB, .maximum_bytes = 4 * MIB);
    OK(gpumem_pinned_warm_up(pinned, 100 * MIB));
    while (pinned_info_of(pinned).pinned_bytes < 4 * MIB)
        usleep(1000);
    OK(gpumem_resource_destroy(pinned));
}

TEST(a_resource_may_be_destroyed_while_warming_up) {
    for (int i = 0; i < 20; i++) {
        gpumem_resource *pinned = NEW_PINNED(.slab_bytes = 2 * MIB);
        OK(gpumem_pinned_warm_up(pinned, 64 * MIB));
        OK(gpumem_pinned_warm_up(pinned, 64 * MIB));
        OK(gpumem_resource_destroy(pinned));
    }
    assert_int_equal(device_stats().pinned_bytes, 0);
}

TEST(warming_up_a_resource_without_slabs_is_refused) {
    gpumem_resource *pool = NEW_PINNED(.method = GPUMEM_PINNED_POOL);
    FAILS(NOT_SUPPORTED, gpumem_pinned_warm_up(pool, MIB));
    OK(gpumem_resource_destroy(pool));
    gpumem_resource *pinned = NEW_PINNED(.keep_nothing = 1);
    FAILS(INVALID_ARGUMENT, gpumem_pinned_warm_up(pinned, MIB));
    OK(gpumem_resource_destroy(pinned));
    pinned = NEW_VIRTUAL();
    FAILS(INVALID_ARGUMENT, gpumem_pinned_warm_up(pinned, MIB));
    OK(gpumem_resource_destroy(pinned));
    FAILS(INVALID_ARGUMENT, gpumem_pinned_warm_up(NULL, MIB));
}
