/* The tables of functions that NVIDIA's own libraries exchange under private names. */
#include "softgpu/core/calls.h"
#include "softgpu/core/config.h"
#include "softgpu/core/site.h"
#include "softgpu/core/state.h"

#include <stdatomic.h>
#include <string.h>

static bool is_the_runtime_itself(const char *file) {
    const char *slash = strrchr(file, '/');
    return strncmp(slash ? slash + 1 : file, "libcudart", strlen("libcudart")) == 0;
}

/* The runtime only says that a value is invalid, at whatever it is asked first: who looks for the
 * cause finds it here. */
static void explain(void) {
    char file[256] = "a library";
    (void)sg_site_file(sg_thread()->caller, file, sizeof file);
    bool itself = is_the_runtime_itself(file);
    sg_log_lasting(SG_LOG_WARNING,
                   "%s %s NVIDIA's CUDA runtime%s, which asks the driver for private tables "
                   "(cuGetExportTable) that softgpu does not have: its calls fail. %s",
                   file, itself ? "is" : "has", itself ? "" : " linked into it",
                   itself ? "gpumem run puts gpumem's in its place, unless it is given "
                            "--nvidia-runtime or --no-kernels"
                          : "Link it again with nvcc --cudart=shared, and gpumem run puts gpumem's "
                            "in its place; what comes linked, as cuBLAS, cannot be helped");
}

/* The table without which the runtime does not start: 11.0 to 13.5 ask for it, shared and static.
 * Other libraries look for other tables, as NVRTC does, and do without. */
static bool of_the_runtime(const CUuuid *id) {
    static const unsigned char runtime[16] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a,
                                              0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};
    return memcmp(id, runtime, sizeof runtime) == 0;
}

/* There are none here: every name is unknown, for which an H200 returns this. The prologue takes no
 * lock for it. */
CUresult sg_cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId) {
    static atomic_flag explained = ATOMIC_FLAG_INIT;
    if (!ppExportTable || !pExportTableId)
        return CUDA_ERROR_INVALID_VALUE;
    *ppExportTable = NULL;
    if (of_the_runtime(pExportTableId) && !atomic_flag_test_and_set(&explained))
        explain();
    return CUDA_ERROR_INVALID_VALUE;
}
