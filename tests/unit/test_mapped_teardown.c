/* What ends before mapped memory does: its context, its device by a fault, Vulkan's device, and a
 * forked child; by each method. */
#include "forked_child.h"
#include "vulkan_test.h"

#include <sys/wait.h>

static struct subject {
    gpumem_resource *mapped, *plain;
    gpumem_buffer *buffer, *viewed;
    gpumem_buffer *view;
    gpumem_ring *ring;
} s;

static const gpumem_mapped_method methods[] = {GPUMEM_MAPPED_VULKAN_IMPORT,
                                               GPUMEM_MAPPED_VULKAN_EXPORT, GPUMEM_MAPPED_DMA_BUF,
                                               GPUMEM_MAPPED_DESCRIPTOR};

static bool grows(gpumem_mapped_method method) {
    return method != GPUMEM_MAPPED_VULKAN_EXPORT;
}

static void make(gpumem_mapped_method method) {
    s.mapped = NEW_MAPPED(.method = method, .method_strict = 1,
                          .capacity = grows(method) ? 8 * MIB : 0, .maximum_chunk_bytes = 2 * MIB);
    s.buffer = NEW_BUFFER(s.mapped, 4 * MIB);
    OK(gpumem_ring_create(s.mapped, GPUMEM_RING_OPTIONS(.chunk_bytes = 4096, .chunk_count = 2),
                          &s.ring));
    s.plain = NEW_VIRTUAL(.capacity = 8 * MIB, .maximum_chunk_bytes = 2 * MIB);
    s.viewed = NEW_BUFFER(s.plain, 2 * MIB);
    OK(gpumem_buffer_host_view(s.viewed, NULL, &s.view));
}

/* Whatever has ended: it is given back or counted, and Vulkan has nothing. */
static void end(void) {
    DESTROY(s.view, s.viewed);
    OK(gpumem_ring_destroy(s.ring));
    OK(gpumem_buffer_free(s.buffer, NULL));
    OK(gpumem_device_trim(device, 1));
    DESTROY(s.plain, s.mapped);
    assert_used_well();
}

static void the_cpu_still_reaches_it(void) {
    char bytes[5];
    OK(gpumem_mapped_write(s.buffer, 4 * MIB - 5, "last", 5));
    OK(gpumem_mapped_flush(s.buffer, 0, 4 * MIB));
    OK(gpumem_mapped_read(s.buffer, 4 * MIB - 5, bytes, 5));
    assert_string_equal(bytes, "last");
    memset(gpumem_buffer_host_pointer(s.view), 7, 2 * MIB);
    OK(gpumem_mapped_flush(s.view, 0, 2 * MIB));
}

static void all_works(gpumem_mapped_method method) {
    gpumem_ring_chunk chunk = {.size = sizeof chunk};
    char bytes[5];
    the_cpu_still_reaches_it();
    OK(read_now(s.buffer, 4 * MIB - 5, bytes, 5, NULL));
    assert_string_equal(bytes, "last");
    if (grows(method)) {
        OK(gpumem_buffer_grow(s.buffer, 8 * MIB, NULL));
        OK(gpumem_mapped_write(s.buffer, 8 * MIB - 5, "more", 5));
        OK(read_now(s.buffer, 8 * MIB - 5, bytes, 5, NULL));
        assert_string_equal(bytes, "more");
        OK(gpumem_buffer_shrink(s.buffer, 4 * MIB, NULL));
    }
    OK(gpumem_buffer_grow(s.viewed, 4 * MIB, NULL));
    ((char *)gpumem_buffer_host_pointer(s.view))[4 * MIB - 1] = 'v';
    OK(gpumem_mapped_flush(s.view, 4 * MIB - 1, 1));
    OK(read_now(s.viewed, 4 * MIB - 1, bytes, 1, NULL));
    assert_int_equal(bytes[0], 'v');
    OK(gpumem_ring_acquire(s.ring, 0, 0, &chunk));
    OK(gpumem_ring_abandon(s.ring, chunk.sequence));
}

/* ---- Contexts -------------------------------------------------------------------------------- */

static CUcontext current(void) {
    CUcontext context = NULL;
    OK_CU(cu->cuCtxGetCurrent(&context));
    return context;
}

TEST(mapped_memory_needs_no_current_context) {
    for (size_t i = 0; i < COUNT(methods); i++) {
        assert_null(current());
        make(methods[i]);
        all_works(methods[i]);
        end();
        assert_null(current());
        assert_int_equal(device_stats().quarantined, 0);
    }
}

TEST(mapped_memory_works_with_another_context_current) {
    CUcontext other = MADE_CU(CUcontext, cuCtxCreate_v2, 0, 0);
    for (size_t i = 0; i < COUNT(methods); i++) {
        make(methods[i]);
        all_works(methods[i]);
        assert_ptr_equal(current(), other);
        end();
    }
    make(GPUMEM_MAPPED_VULKAN_EXPORT);
    OK_CU(cu->cuCtxDestroy_v2(other)); /* it has nothing of ours */
    all_works(GPUMEM_MAPPED_VULKAN_EXPORT);
    end();
    assert_int_equal(device_stats().quarantined, 0);
}

static void reopen(void) {
    OK(gpumem_device_close(device));
    OK(gpumem_close(library));
    if (open_device(NULL) != 0)
        fail();
}

/* No method is tried then, and host memory is not taken in its place. */
static void nothing_is_made(gpumem_status wanted) {
    gpumem_resource *none = NULL;
    gpumem_buffer *no_view = NULL;
    assert_int_equal(gpumem_mapped_resource_create(device, NULL, &none), wanted);
    assert_int_equal(gpumem_buffer_host_view(s.viewed, NULL, &no_view), wanted);
    assert_true(!none && !no_view);
}

TEST(a_reset_context_leaves_the_host_mapping_usable) {
    for (size_t i = 0; i < COUNT(methods); i++) {
        make(methods[i]);
        OK_CU(cu->cuDevicePrimaryCtxReset_v2(0));
        the_cpu_still_reaches_it();
        nothing_is_made(GPUMEM_ERROR_DEVICE_FAULT);
        SAYS("CUDA_ERROR_CONTEXT_IS_DESTROYED");
        end();
        reopen();
        make(methods[i]); /* in the new context */
        all_works(methods[i]);
        end();
    }
}

/* ---- Faults ---------------------------------------------------------------------------------- */

/* VK_ERROR_DEVICE_LOST, for ever. */
static void lost(bool is) {
    icd->reset();
    icd->refuse(NULL, 1, is ? UINT32_MAX : 0, -4);
}

TEST(a_lost_vulkan_device_fails_new_allocations) {
    gpumem_buffer *none = NULL;
    gpumem_buffer *no_view = NULL;
    gpumem_resource *no_resource = NULL;
    setenv("VULKAN_ICD_COHERENT", "no", 1);
    for (size_t i = 0; i < 2; i++) {
        make(methods[i]);
        lost(true);
        FAILS(DEVICE_FAULT, gpumem_buffer_allocate(s.mapped, 4 * MIB, NULL, &none));
        assert_int_equal(gpumem_last_error()->vulkan_code, -4);
        SAYS("VK_ERROR_DEVICE_LOST");
        FAILS(DEVICE_FAULT, gpumem_mapped_write(s.buffer, 0, "x", 1));
        FAILS(DEVICE_FAULT, gpumem_mapped_publish(s.buffer, 0, "x", 1, 4, 1));
        FAILS(DEVICE_FAULT, gpumem_mapped_flush(s.buffer, 0, 1));
        FAILS(DEVICE_FAULT, gpumem_mapped_invalidate(s.buffer, 0, 1));
        FAILS(DEVICE_FAULT, gpumem_buffer_grow(s.viewed, 4 * MIB, NULL));
        assert_int_equal(gpumem_buffer_size(s.viewed), 2 * MIB);
        FAILS(DEVICE_FAULT, gpumem_mapped_flush(s.view, 0, 1));
        FAILS_SAYING(NOT_SUPPORTED, "VK_ERROR_DEVICE_LOST",
                     gpumem_buffer_host_view(
                         s.viewed,
                         GPUMEM_HOST_VIEW_OPTIONS(.method = methods[0], .method_strict = 1),
                         &no_view));
        FAILS_SAYING(NOT_SUPPORTED, "VK_ERROR_DEVICE_LOST",
                     gpumem_mapped_resource_create(
                         device, GPUMEM_MAPPED_OPTIONS(.method = methods[i], .method_strict = 1),
                         &no_resource));
        lost(false);
        all_works(methods[i]); /* nothing was left half done */
        end();
    }
    assert_int_equal(device_stats().quarantined, 0);
}

TEST(memory_is_freed_after_the_vulkan_device_is_lost) {
    make(GPUMEM_MAPPED_VULKAN_EXPORT);
    OK(gpumem_buffer_free(s.view, NULL)); /* by import: to unmap it Vulkan is asked */
    OK(gpumem_buffer_host_view(
        s.viewed, GPUMEM_HOST_VIEW_OPTIONS(.method = GPUMEM_MAPPED_DESCRIPTOR), &s.view));
    lost(true);
    end();
    assert_int_equal(device_stats().quarantined, 0);
}

/* ---- Forks ----------------------------------------------------------------------------------- */

static const int first_line = __LINE__;

static void use_in_child(void) {
    const gpumem_status forked = GPUMEM_ERROR_FORKED;
    gpumem_buffer *none = NULL;
    gpumem_resource *no_resource = NULL;
    gpumem_buffer *no_view = NULL;
    gpumem_ring *no_ring = NULL;
    gpumem_ring_chunk chunk = {.size = sizeof chunk};
    gpumem_mapped_info info = {.size = sizeof info};
    char byte = 0;
    HOLDS(gpumem_mapped_resource_create(device, NULL, &no_resource) == forked);
    HOLDS(gpumem_buffer_allocate(s.mapped, 100, NULL, &none) == forked);
    HOLDS(gpumem_buffer_grow(s.buffer, 6 * MIB, NULL) == forked);
    HOLDS(gpumem_buffer_shrink(s.buffer, 2 * MIB, NULL) == forked);
    HOLDS(gpumem_mapped_write(s.buffer, 0, "x", 1) == forked);
    HOLDS(gpumem_mapped_read(s.buffer, 0, &byte, 1) == forked);
    HOLDS(gpumem_mapped_publish(s.buffer, 0, "x", 1, 8, 1) == forked);
    HOLDS(gpumem_mapped_flush(s.buffer, 0, 1) == forked);
    HOLDS(gpumem_mapped_invalidate(s.buffer, 0, 1) == forked);
    HOLDS(gpumem_mapped_get_info(s.mapped, &info) == forked);
    HOLDS(gpumem_buffer_host_view(s.viewed, NULL, &no_view) == forked);
    HOLDS(gpumem_mapped_flush(s.view, 0, 1) == forked);
    HOLDS(gpumem_mapped_invalidate(s.view, 0, 1) == forked);
    HOLDS(gpumem_buffer_get_mapped_info(s.view, &info) == forked);
    HOLDS(gpumem_buffer_free(s.view, NULL) == forked);
    HOLDS(gpumem_ring_create(s.mapped, GPUMEM_RING_OPTIONS(.chunk_bytes = 8, .chunk_count = 2),
                             &no_ring) == forked);
    HOLDS(gpumem_ring_acquire(s.ring, 0, 0, &chunk) == forked);
    HOLDS(gpumem_ring_destroy(s.ring) == forked);
    HOLDS(gpumem_buffer_free(s.buffer, NULL) == forked);
    HOLDS(gpumem_resource_destroy(s.mapped) == forked);
    HOLDS(strstr(gpumem_last_error()->message, "fork"));
    HOLDS(!none && !no_resource && !no_view && !no_ring);
}

static int exit_of(pid_t child) {
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status))
        fail_msg("the child ends with signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

/* The child ends with all that programs do at their end. */
TEST(a_forked_child_has_no_mapped_memory_and_leaves_the_parents) {
    fflush(NULL);
    for (size_t i = 0; i < COUNT(methods); i++) {
        make(methods[i]);
        the_cpu_still_reaches_it();
        icd->reset();
        const struct vulkan_icd_live live = icd->live();
        pid_t child = fork();
        if (child == 0) {
            use_in_child();
            HOLDS(icd->calls(NULL) == 0);
            exit(0);
        }
        int line = exit_of(child);
        if (line != 0)
            fail_msg("method %d: the child fails in line %d", methods[i], first_line + line - 1);
        const struct vulkan_icd_live after = icd->live();
        assert_memory_equal(&after, &live, sizeof live);
        char bytes[5];
        OK(read_now(s.buffer, 4 * MIB - 5, bytes, 5, NULL));
        assert_string_equal(bytes, "last"); /* the child's end took nothing away */
        all_works(methods[i]);
        end();
        assert_int_equal(device_stats().quarantined, 0);
    }
}

static int begin(void **state) {
    setenv("SOFTGPU_PROFILE", "dmabuf", 1);
    return find_icd(state);
}

ALL_TESTS(begin, NULL);

/* Neither driver has anything. */
static int stop(void **state) {
    assert_nothing_left();
    return close_device(state);
}

static int start(void **state) {
    return start_with_icd(state) != 0 ? -1 : open_device(state);
}

EACH_TEST(start, stop);

/* A fault outlives all of CUDA in the process. VMM's calls need no context and may go on. */
TEST(after_a_device_fault_mapped_memory_is_freed) {
    struct subject all[COUNT(methods)];
    gpumem_buffer *more = NULL;
    for (size_t i = 0; i < COUNT(methods); i++) {
        make(methods[i]);
        all[i] = s;
    }
    use_context();
    assert_int_equal(soft->context_poison(CUDA_ERROR_ILLEGAL_ADDRESS), 0);
    leave_context();
    for (size_t i = 0; i < COUNT(methods); i++) {
        s = all[i];
        the_cpu_still_reaches_it();
        if (gpumem_buffer_allocate(s.mapped, 4 * MIB, NULL, &more) == GPUMEM_OK) {
            OK(gpumem_mapped_write(more, 0, "x", 1));
            OK(gpumem_buffer_free(more, NULL));
        }
        nothing_is_made(GPUMEM_ERROR_DEVICE_FAULT);
        end();
    }
}
