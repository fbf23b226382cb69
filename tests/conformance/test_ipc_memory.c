/* Legacy inter-process memory handles. */
#include "harness.h"

#define SIZE ((size_t)4 << 20)
#define PEER CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS

static void to_text(const CUipcMemHandle *handle, char text[2 * sizeof *handle + 1]) {
    for (size_t i = 0; i < sizeof *handle; i++)
        snprintf(text + 2 * i, 3, "%02x", ((const unsigned char *)handle)[i]);
}

static CUipcMemHandle from_text(const char *text) {
    CUipcMemHandle handle;
    for (size_t i = 0; i < sizeof handle; i++) {
        unsigned byte = 0;
        sscanf(text + 2 * i, "%2x", &byte);
        ((unsigned char *)&handle)[i] = (unsigned char)byte;
    }
    return handle;
}

CHILD(opener) {
    CUdeviceptr p, again, base;
    size_t size = 0;
    if (argc != 3)
        return 9;
    size_t wanted = strcmp(argv[2], "small") == 0 ? 100 : SIZE;
    CUipcMemHandle handle = from_text(argv[1]);
    init_driver();
    bool by_first_version = wanted == 100;
    if (by_first_version) {
        OK_CU(cu.cuIpcOpenMemHandle(&p, handle, PEER));
    } else {
        OK_CU(cu.cuIpcOpenMemHandle_v2(&p, handle, PEER));
        OK_CU(cu.cuIpcOpenMemHandle_v2(&again, handle, PEER));
        assert_int_equal(p, again);
    }
    FAILS_CU(ALREADY_MAPPED, cu.cuIpcOpenMemHandle(&again, handle, PEER));
    OK_CU(cu.cuMemGetAddressRange_v2(&base, &size, p + 4));
    assert_int_equal(base, p);
    assert_true(size >= wanted); /* hardware may share the whole block of a small allocation */
    if (soft)
        assert_int_equal(size, wanted);
    unsigned seen = word_at(p);
    set_words(p + wanted - 4, 0x5a5a1234, 1);
    FAILS_CU(INVALID_VALUE, cu.cuMemFree_v2(p));
    FAILS_CU(INVALID_VALUE, cu.cuIpcGetMemHandle(&handle, p));
    FAILS_CU(INVALID_VALUE, cu.cuIpcCloseMemHandle(p + 64));
    OK_CU(cu.cuIpcCloseMemHandle(p));
    if (!by_first_version) {
        assert_int_equal(word_at(p), seen);
        OK_CU(cu.cuIpcCloseMemHandle(p));
    }
    FAILS_CU(INVALID_VALUE, cu.cuIpcCloseMemHandle(p));
    if (cu.cuMemGetAddressRange_v2(&base, &size, p) == CUDA_SUCCESS)
        return 2; /* closed, and still known */
    return seen == 0x0a0b0c0d ? 0 : 1;
}

static void shared_with_a_child(CUdeviceptr p, size_t size, const char *kind) {
    CUipcMemHandle handle;
    char text[2 * sizeof handle + 1];
    set_words(p, 0x0a0b0c0d, 1);
    OK_CU(cu.cuIpcGetMemHandle(&handle, p));
    to_text(&handle, text);
    assert_int_equal(run_child("opener", text, kind, NULL), 0);
    assert_int_equal(word_at(p + size - 4), 0x5a5a1234);
}

TEST(another_process_reads_and_writes_shared_memory) {
    CUdeviceptr large = new_memory(SIZE);
    new_memory(100); /* the small one does not begin its page */
    CUdeviceptr small = new_memory(100);
    shared_with_a_child(large, SIZE, "large");
    shared_with_a_child(small, 100, "small");
}

TEST(an_ipc_handle_names_one_allocation) {
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 4096);
    CUipcMemHandle first = MADE_CU(CUipcMemHandle, cuIpcGetMemHandle, p);
    CUipcMemHandle again = MADE_CU(CUipcMemHandle, cuIpcGetMemHandle, p + 512);
    assert_memory_equal(&first, &again, sizeof first);
    OK_CU(cu.cuMemFree_v2(p));
    FAILS_CU(INVALID_VALUE, cu.cuIpcGetMemHandle(&again, p));
    void *pinned = new_pinned(4096, 0);
    FAILS_CU(INVALID_VALUE, cu.cuIpcGetMemHandle(&first, (CUdeviceptr)(uintptr_t)pinned));
    OK_CU(cu.cuMemAlloc_v2(&p, 4096));
    OK_CU(cu.cuMemFree_v2(p));
}

TEST(invalid_ipc_handles_are_refused) {
    CUdeviceptr p, opened = 5;
    CUipcMemHandle handle, garbage;
    OK_CU(cu.cuMemAlloc_v2(&p, 4096));
    OK_CU(cu.cuIpcGetMemHandle(&handle, p));
    FAILS_CU(INVALID_CONTEXT, cu.cuIpcOpenMemHandle_v2(&opened, handle, PEER));
    FAILS_CU(INVALID_VALUE, cu.cuIpcOpenMemHandle_v2(&opened, handle, 0));
    FAILS_CU(INVALID_VALUE, cu.cuIpcOpenMemHandle_v2(NULL, handle, PEER));
    memset(&garbage, 0xa7, sizeof garbage);
    FAILS_CU(INVALID_VALUE, cu.cuIpcOpenMemHandle_v2(&opened, garbage, PEER));
    memset(&garbage, 0, sizeof garbage);
    FAILS_CU(INVALID_VALUE, cu.cuIpcOpenMemHandle_v2(&opened, garbage, PEER));
    if (soft) { /* an offset and a size whose sum goes once around */
        garbage = handle;
        memset((char *)&garbage + 32, 1, 1);
        memset((char *)&garbage + 48, 0xff, 8);
        FAILS_CU(INVALID_VALUE, cu.cuIpcOpenMemHandle_v2(&opened, garbage, PEER));
    }
    FAILS_CU(INVALID_VALUE, cu.cuIpcCloseMemHandle(p));
    FAILS_CU(INVALID_VALUE, cu.cuIpcCloseMemHandle(0));
    assert_int_equal(opened, 5);
    OK_CU(cu.cuMemFree_v2(p));
}

/* Opens what may be gone: 0 when it is refused, 1 when it is not. */
CHILD(trying) {
    CUdeviceptr p = 0;
    if (argc != 2)
        return 9;
    CUipcMemHandle handle = from_text(argv[1]);
    init_driver();
    CUresult result = cu.cuIpcOpenMemHandle_v2(&p, handle, PEER);
    if (result == CUDA_SUCCESS)
        OK_CU(cu.cuIpcCloseMemHandle(p));
    else
        assert_int_equal(result, CUDA_ERROR_INVALID_VALUE);
    return result == CUDA_SUCCESS ? 1 : 0;
}

/* When something else lies there since, H200 does not refuse the handle; softgpu tells the two
 * apart. */
TEST(an_ipc_handle_ends_with_its_allocation) {
    CUipcMemHandle handle, other;
    char text[2 * sizeof handle + 1], other_text[2 * sizeof other + 1];
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, SIZE);
    OK_CU(cu.cuIpcGetMemHandle(&handle, p));
    OK_CU(cu.cuMemFree_v2(p));
    to_text(&handle, text);
    assert_int_equal(run_child("trying", text, NULL), 0);
    if (!soft)
        return;
    CUdeviceptr next = new_memory(SIZE);
    assert_int_equal(run_child("trying", text, NULL), 0);
    OK_CU(cu.cuIpcGetMemHandle(&other, next));
    assert_memory_not_equal(&handle, &other, sizeof handle);
    to_text(&other, other_text);
    assert_int_equal(run_child("trying", text, NULL), 0);
    assert_int_equal(run_child("trying", other_text, NULL), 1);
}

/* What a process exported stays good for others when it forks, and nothing of it is the fork's. */
TEST(an_ipc_handle_stays_valid_after_a_fork) {
    CUipcMemHandle handle;
    char text[2 * sizeof handle + 1];
    CUdeviceptr p = new_memory(SIZE);
    OK_CU(cu.cuIpcGetMemHandle(&handle, p));
    pid_t child = fork();
    if (child == 0)
        _exit(cu.cuIpcGetMemHandle(&handle, p) == CUDA_SUCCESS ||
              cu.cuIpcOpenMemHandle_v2(&p, handle, PEER) == CUDA_SUCCESS);
    assert_true(child > 0);
    assert_int_equal(wait_child(child), 0);
    to_text(&handle, text);
    assert_int_equal(run_child("trying", text, NULL), 1);
}
