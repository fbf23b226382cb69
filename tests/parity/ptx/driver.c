/* Opens the driver of this process. */
#include "ptx.h"

#include <stdlib.h>

const gpumem_driver_api *cu;

const char *ptx_result_name(CUresult result) {
    const char *name = NULL;
    if (cu == NULL || cu->cuGetErrorName(result, &name) != CUDA_SUCCESS || name == NULL)
        return "an unknown error";
    return name;
}

void ptx_must(CUresult result, const char *call) {
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "ptx: %s: %s\n", call, ptx_result_name(result));
    fflush(NULL);
    _Exit(3);
}

void ptx_open(const char *choice) {
    gpumem_driver *driver;
    CUcontext context;
    CUdevice device;
    if (gpumem_driver_open(choice, &driver) != GPUMEM_OK) {
        fprintf(stderr, "ptx: %s\n", gpumem_last_error()->message);
        exit(2);
    }
    cu = gpumem_driver_table(driver);
    MUST(cu->cuInit(0));
    MUST(cu->cuDeviceGet(&device, 0));
    MUST(cu->cuDevicePrimaryCtxRetain(&context, device));
    MUST(cu->cuCtxSetCurrent(context));
}
