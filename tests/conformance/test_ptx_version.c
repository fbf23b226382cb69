/* The newest PTX that is loaded follows from the driver's version: 9.0 with 13.0, 9.1 with 13.1.
 * softgpu takes its version from SOFTGPU_DRIVER_VERSION, and with SOFTGPU_PTX=driver, without which
 * it takes all that it knows, refuses like that driver (test_kernels.py). */
#include "harness.h"

static CUresult loaded(int version) {
    char text[200];
    CUmodule module;
    snprintf(text, sizeof text,
             ".version %d.%d\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n",
             version / 10, version % 10);
    CUresult result = cu.cuModuleLoadData(&module, text);
    if (result == CUDA_SUCCESS)
        OK_CU(cu.cuModuleUnload(module));
    return result;
}

TEST(the_driver_version_determines_the_newest_ptx) {
    int version;
    OK_CU(cu.cuDriverGetVersion(&version));
    if (version < 13000 || version >= 14000)
        SKIP("the driver has version %d: which PTX came with it is not known here", version);
    int newest = 90 + version % 1000 / 10;
    if (soft && !getenv("SOFTGPU_PTX") && newest < 95)
        newest = 95;
    OK_CU(loaded(60));
    OK_CU(loaded(88));
    for (int ptx = 90; ptx <= newest; ptx++)
        OK_CU(loaded(ptx));
    for (int ptx = newest + 1; ptx < 100; ptx++)
        FAILS_CU(UNSUPPORTED_PTX_VERSION, loaded(ptx));
}
