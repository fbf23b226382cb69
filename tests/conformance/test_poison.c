/* SOFTGPU_POISON: fresh and freed memory holds a pattern, so that what was never written shows. */
#include "harness.h"

#define PAGE ((size_t)2 << 20)

CHILD_THAT_ENDS(look) {
    static const size_t sizes[] = {1, 700, 1 << 20, 3 * PAGE};
    init_driver();
    for (unsigned i = 0; i < COUNT(sizes); i++) {
        CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, sizes[i]);
        unsigned char fresh = byte_at(p);
        assert_int_not_equal(fresh, 0);
        assert_int_equal(byte_at(p + sizes[i] - 1), fresh);
        OK_CU(cu.cuMemsetD8_v2(p, 0x11, sizes[i]));
        OK_CU(cu.cuMemFree_v2(p));
        OK_CU(cu.cuMemAlloc_v2(&p, sizes[i]));
        assert_int_equal(byte_at(p), fresh);
        OK_CU(cu.cuMemFree_v2(p));
    }
    unsigned char *pinned;
    OK_CU(cu.cuMemHostAlloc((void **)&pinned, 100, 0));
    assert_int_not_equal(pinned[99], 0);
    OK_CU(cu.cuMemFreeHost(pinned));
}

TEST_WHERE(poisoned_memory_does_not_read_as_zero, NEEDS_SOFTGPU("SOFTGPU_POISON")) {
    setenv("SOFTGPU_POISON", "1", 1);
    int status = run_child("look", NULL);
    unsetenv("SOFTGPU_POISON");
    assert_int_equal(status, 0);
}
