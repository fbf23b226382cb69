/* Sets: elements of 1, 2 and 4 bytes, rows and planes, synchronous and not. */
#include "harness.h"

#define SIZE  ((size_t)5 << 20) /* over several pages of device memory */
#define PITCH ((size_t)512)

struct scene {
    CUdeviceptr bytes;
    unsigned char *out;
    CUstream stream;
};

static struct scene make(void) {
    struct scene scene = {.bytes = new_memory(SIZE)};
    OK_CU(cu.cuMemsetD8_v2(scene.bytes, 0xcc, SIZE));
    scene.stream = new_blocking_stream();
    scene.out = new_bytes(SIZE);
    return scene;
}

/* `size` bytes from `begin` repeat the element's bytes; what is around them is untouched. */
static void check_row(struct scene *scene, size_t begin, size_t size, uint32_t value,
                      unsigned element) {
    unsigned char pattern[4];
    memcpy(pattern, &value, sizeof pattern);
    OK_CU(cu.cuMemcpyDtoH_v2(scene->out, scene->bytes, SIZE));
    for (size_t i = 0; i < SIZE; i++) {
        bool inside = i >= begin && i < begin + size;
        if (scene->out[i] != (inside ? pattern[(i - begin) % element] : 0xcc))
            fail_msg("byte %zu is %#x", i, scene->out[i]);
    }
    OK_CU(cu.cuMemsetD8_v2(scene->bytes, 0xcc, SIZE));
}

TEST(a_memset_works_for_each_element_size) {
    struct scene scene = make();
    const size_t begin = ((size_t)2 << 20) - 1000, count = 700000;
    OK_CU(cu.cuMemsetD8_v2(scene.bytes + begin + 1, 0x12, count));
    check_row(&scene, begin + 1, count, 0x12, 1);
    OK_CU(cu.cuMemsetD16_v2(scene.bytes + begin + 2, 0x1234, count));
    check_row(&scene, begin + 2, count * 2, 0x1234, 2);
    OK_CU(cu.cuMemsetD32_v2(scene.bytes + begin + 4, 0x12345678, count));
    check_row(&scene, begin + 4, count * 4, 0x12345678, 4);
    OK_CU(cu.cuMemsetD32_v2(scene.bytes, 0x77777777, SIZE / 4));
    check_row(&scene, 0, SIZE, 0x77777777, 4);
}

TEST(an_asynchronous_memset_works_for_each_element_size) {
    struct scene scene = make();
    const size_t begin = 512, count = 300001;
    OK_CU(cu.cuMemsetD8Async(scene.bytes + begin, 0x12, count, scene.stream));
    OK_CU(cu.cuStreamSynchronize(scene.stream));
    check_row(&scene, begin, count, 0x12, 1);
    OK_CU(cu.cuMemsetD16Async(scene.bytes + begin, 0x1234, count, scene.stream));
    OK_CU(cu.cuStreamSynchronize(scene.stream));
    check_row(&scene, begin, count * 2, 0x1234, 2);
    OK_CU(cu.cuMemsetD32Async(scene.bytes + begin, 0x12345678, count, scene.stream));
    OK_CU(cu.cuStreamSynchronize(scene.stream));
    check_row(&scene, begin, count * 4, 0x12345678, 4);
}

/* 11 elements of 9 rows. */
static void check_plane(struct scene *scene, uint32_t value, unsigned element) {
    unsigned char pattern[4];
    memcpy(pattern, &value, sizeof pattern);
    OK_CU(cu.cuMemcpyDtoH_v2(scene->out, scene->bytes, SIZE));
    for (size_t i = 0; i < 16 * PITCH; i++) {
        bool inside = i / PITCH < 9 && i % PITCH < 11u * element;
        assert_int_equal(scene->out[i], inside ? pattern[(i % PITCH) % element] : 0xcc);
    }
    OK_CU(cu.cuMemsetD8_v2(scene->bytes, 0xcc, SIZE));
}

TEST(a_2d_memset_works_for_each_element_size) {
    struct scene scene = make();
    OK_CU(cu.cuMemsetD2D8_v2(scene.bytes, PITCH, 0x12, 11, 9));
    check_plane(&scene, 0x12, 1);
    OK_CU(cu.cuMemsetD2D16_v2(scene.bytes, PITCH, 0x1234, 11, 9));
    check_plane(&scene, 0x1234, 2);
    OK_CU(cu.cuMemsetD2D32_v2(scene.bytes, PITCH, 0x12345678, 11, 9));
    check_plane(&scene, 0x12345678, 4);
}

TEST(an_asynchronous_2d_memset_works_for_each_element_size) {
    struct scene scene = make();
    OK_CU(cu.cuMemsetD2D8Async(scene.bytes, PITCH, 0x12, 11, 9, scene.stream));
    OK_CU(cu.cuStreamSynchronize(scene.stream));
    check_plane(&scene, 0x12, 1);
    OK_CU(cu.cuMemsetD2D16Async(scene.bytes, PITCH, 0x1234, 11, 9, scene.stream));
    OK_CU(cu.cuStreamSynchronize(scene.stream));
    check_plane(&scene, 0x1234, 2);
    OK_CU(cu.cuMemsetD2D32Async(scene.bytes, PITCH, 0x12345678, 11, 9, scene.stream));
    OK_CU(cu.cuStreamSynchronize(scene.stream));
    check_plane(&scene, 0x12345678, 4);
}

/* Asynchronous to the host for device memory; done at return for pinned memory. */
TEST(a_memset_of_pinned_memory_is_synchronous) {
    void *memory = new_pinned(4096, CU_MEMHOSTALLOC_DEVICEMAP);
    memset(memory, 0, 4096);
    OK_CU(cu.cuMemsetD16_v2((CUdeviceptr)(uintptr_t)memory, 0xabcd, 2048));
    assert_int_equal(((unsigned char *)memory)[0], 0xcd);
    assert_int_equal(((unsigned char *)memory)[4095], 0xab);
}

TEST(an_asynchronous_memset_runs_in_stream_order) {
    struct scene scene = make();
    struct gate gate = hold(scene.stream);
    OK_CU(cu.cuMemsetD8Async(scene.bytes, 1, SIZE, scene.stream));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(scene.stream));
    gate_drain(&gate, scene.stream);
    check_row(&scene, 0, SIZE, 1, 1);
}

TEST(invalid_arguments_are_refused) {
    struct scene scene = make();
    int plain = 0;
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD8_v2(scene.bytes, 1, SIZE + 1));
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD16_v2(scene.bytes + 1, 1, 4));
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD32_v2(scene.bytes + 2, 1, 4));
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD8_v2(0, 1, 4));
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD8_v2((CUdeviceptr)(uintptr_t)&plain, 1, 4));
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD2D8_v2(scene.bytes, 8, 1, 9, 2));
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD2D16_v2(scene.bytes, 9, 1, 4, 2));
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD2D32_v2(scene.bytes, PITCH, 1, 4, SIZE / PITCH + 1));
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD8Async(scene.bytes, 1, SIZE + 1, scene.stream));
    OK_CU(cu.cuMemsetD8_v2(0, 1, 0));
    OK_CU(cu.cuMemsetD2D8_v2(scene.bytes, 0, 1, 16, 1));
    OK_CU(cu.cuMemsetD8_v2(scene.bytes, 0xcc, 16));
    check_row(&scene, 0, 0, 0, 1);
}
