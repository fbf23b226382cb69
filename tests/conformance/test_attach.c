/* Attaching managed memory to one stream. */
#include "harness.h"

#define SIZE ((size_t)8192)

#define NEEDS_MANAGED() NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)

static CUdeviceptr managed(void) {
    return MADE_CU(CUdeviceptr, cuMemAllocManaged, SIZE, CU_MEM_ATTACH_GLOBAL);
}

static bool dump_says(const char *what) {
    char *dump = soft->state_dump();
    assert_non_null(dump);
    bool found = strstr(dump, what) != NULL;
    soft->free_text(dump);
    return found;
}

TEST_WHERE(an_attachment_runs_in_stream_order, NEEDS_MANAGED()) {
    CUdeviceptr m = managed();
    CUstream s = new_stream();
    struct gate gate = hold(s);
    OK_CU(cu.cuStreamAttachMemAsync(s, m, 0, CU_MEM_ATTACH_SINGLE));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(s));
    gate_drain(&gate, s);
    OK_CU(cu.cuStreamAttachMemAsync(s, m, SIZE, CU_MEM_ATTACH_HOST));
    OK_CU(cu.cuStreamAttachMemAsync(NULL, m, 0, CU_MEM_ATTACH_GLOBAL));
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuMemFree_v2(m));
}

/* Where all may use it at once, no program sees who it is attached to; the state dump does. */
TEST_WHERE(the_attachment_is_recorded, NEEDS_MANAGED()) {
    NEEDS_SOFTGPU("the attachment is looked at");
    CUdeviceptr m = managed();
    struct gate gate;
    CUstream s = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    gate_make(&gate);
    gate_hold(&gate, s);
    OK_CU(cu.cuStreamAttachMemAsync(s, m, 0, CU_MEM_ATTACH_SINGLE));
    assert_false(dump_says("attached to one stream"));
    gate_drain(&gate, s);
    assert_true(dump_says("attached to one stream"));
    OK_CU(cu.cuStreamAttachMemAsync(s, m, 0, CU_MEM_ATTACH_HOST));
    OK_CU(cu.cuStreamSynchronize(s));
    assert_true(dump_says("attached with flags 2"));
    OK_CU(cu.cuStreamAttachMemAsync(s, m, 0, CU_MEM_ATTACH_SINGLE));
    OK_CU(cu.cuStreamSynchronize(s));
    assert_true(dump_says("attached to one stream"));
    gate_free(&gate);
    OK_CU(cu.cuStreamDestroy_v2(s));
    assert_false(dump_says("attached"));
    OK_CU(cu.cuMemFree_v2(m));
}

TEST_WHERE(invalid_attachments_are_refused, NEEDS_MANAGED()) {
    CUdeviceptr m = managed(), d = new_memory(SIZE);
    CUstream s = new_stream();
    FAILS_CU(INVALID_VALUE, cu.cuStreamAttachMemAsync(s, m, 100, CU_MEM_ATTACH_SINGLE));
    FAILS_CU(INVALID_VALUE, cu.cuStreamAttachMemAsync(s, d, 0, CU_MEM_ATTACH_SINGLE));
    FAILS_CU(INVALID_VALUE, cu.cuStreamAttachMemAsync(s, 0, 0, CU_MEM_ATTACH_SINGLE));
    if (!twins)
        FAILS_CU(INVALID_VALUE, cu.cuStreamAttachMemAsync(NULL, m, 0, CU_MEM_ATTACH_SINGLE));
    OK_CU(cu.cuStreamSynchronize(s));
    OK_CU(cu.cuMemFree_v2(m));
}
