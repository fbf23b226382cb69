/* Shared by tests of libvkgdr: selects softgpu and the Vulkan test driver, makes a context current,
 * and checks the error's text; used together with cmocka's headers. */
#ifndef TESTS_VKGDR_TEST_H
#define TESTS_VKGDR_TEST_H

#include "vulkan_test.h"

#include <vkgdr.h>

/* The first device. A CUdevice is its number. */
#define DEVICE 0

/* The caller frees the text. */
static inline void check_error(const char *wanted, const char *file, int line) {
    char *text = vkgdr_last_error();
    bool same = wanted ? text && strcmp(text, wanted) == 0 : !text;
    if (!same)
        print_error("the error is '%s', wanted '%s'\n", text ? text : "(none)",
                    wanted ? wanted : "(none)");
    free(text);
    if (!same)
        _fail(file, line);
}
#define ERROR_IS(wanted) check_error((wanted), __FILE__, __LINE__)
#define NO_ERROR()       check_error(NULL, __FILE__, __LINE__)

static inline CUcontext own_context(void) {
    return gpumem_device_context(device);
}

/* For cmocka's setup of a group. */
static inline int start_vkgdr(void **state) {
    assert_int_equal(setenv("GPUMEM_DRIVER", "softgpu", 1), 0);
    return open_device(state) != 0 ? -1 : find_icd(state);
}

/* For cmocka's setup of a test: makes the device's context current. */
static inline int start_with_context(void **state) {
    start_with_icd(state);
    return cu->cuCtxPushCurrent_v2(own_context()) == CUDA_SUCCESS ? 0 : -1;
}

/* For its teardown: nothing must be left in either driver. */
static inline int end_with_context(void **state) {
    CUcontext popped = NULL;
    cu->cuCtxPopCurrent_v2(&popped);
    assert_ptr_equal(popped, own_context());
    assert_nothing_left();
    char *leaks = soft->leak_report();
    bool external = strstr(leaks, "external") != NULL;
    if (external)
        print_error("left: %s\n", leaks);
    soft->free_text(leaks);
    return external ? -1 : 0;
}

static inline vkgdr_t open_gpu(uint32_t flags) {
    vkgdr_t g = vkgdr_open(DEVICE, flags);
    if (!g) {
        char *text = vkgdr_last_error();
        fail_msg("vkgdr_open: %s", text);
        free(text);
    }
    return g;
}

static inline vkgdr_memory_t allocate(vkgdr_t g, size_t size) {
    vkgdr_memory_t memory = vkgdr_memory_alloc(g, size, 0);
    if (!memory) {
        char *text = vkgdr_last_error();
        fail_msg("vkgdr_memory_alloc of %zu bytes: %s", size, text);
        free(text);
    }
    return memory;
}

static inline unsigned char *host_of(vkgdr_memory_t memory) {
    return vkgdr_memory_get_host_ptr(memory);
}

static inline void fill(unsigned char *bytes, size_t size, unsigned seed) {
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)((i * 167 + i / 251 + seed) & 0xff);
}

static inline void check_bytes(const unsigned char *bytes, size_t size, unsigned seed) {
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != (unsigned char)((i * 167 + i / 251 + seed) & 0xff))
            fail_msg("byte %zu of %zu is %d", i, size, bytes[i]);
}

/* Writes through the device's address. */
static inline void write_device(vkgdr_memory_t memory, size_t size, unsigned seed) {
    unsigned char *bytes = malloc(size);
    assert_non_null(bytes);
    fill(bytes, size, seed);
    OK_CU(cu->cuMemcpyHtoD_v2(vkgdr_memory_get_device_ptr(memory), bytes, size));
    free(bytes);
}

static inline void check_device(vkgdr_memory_t memory, size_t size, unsigned seed) {
    unsigned char *bytes = malloc(size);
    assert_non_null(bytes);
    OK_CU(cu->cuMemcpyDtoH_v2(bytes, vkgdr_memory_get_device_ptr(memory), size));
    check_bytes(bytes, size, seed);
    free(bytes);
}

#endif
