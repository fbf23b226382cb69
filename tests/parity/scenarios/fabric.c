/* Fabric handles: what a machine without the daemon of a fabric says to each call. */
#include "../parity.h"

SCENARIO(create, "fabric/create", par_context) {
    CUmemGenericAllocationHandle h;
    size_t n;
    CUmemAllocationProp prop = par_device_prop();
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    CALLO(cuMemGetAllocationGranularity, "fabric", (&n, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
          OUT_U(n));
    CALLO(cuMemCreate, "fabric", (&h, PAR_2M, &prop, 0), OUT_C(h));
    prop.requestedHandleTypes =
        (CUmemAllocationHandleType)(CU_MEM_HANDLE_TYPE_FABRIC |
                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CALLO(cuMemCreate, "fabric-and-fd", (&h, PAR_2M, &prop, 0), OUT_C(h));
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    prop.location.id = 0;
    CALLO(cuMemCreate, "fabric-host-numa", (&h, PAR_2M, &prop, 0), OUT_C(h));
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST;
    CALLO(cuMemCreate, "fabric-host", (&h, PAR_2M, &prop, 0), OUT_C(h));
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = 99;
    CALLO(cuMemCreate, "fabric-bad-device", (&h, PAR_2M, &prop, 0), OUT_C(h));
    prop = par_device_prop();
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    CALLO(cuMemCreate, "fabric-bad-flags", (&h, PAR_2M, &prop, 1), OUT_C(h));
    prop.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    CALLO(cuMemCreate, "fabric-bad-type", (&h, PAR_2M, &prop, 0), OUT_C(h));
}

SCENARIO(import, "fabric/import", par_context) {
    CUmemGenericAllocationHandle h;
    CUmemFabricHandle handle = {0};
    CALLO(cuMemImportFromShareableHandle, "zeros", (&h, &handle, CU_MEM_HANDLE_TYPE_FABRIC),
          OUT_C(h));
    memset(&handle, 0x5c, sizeof(handle));
    CALLO(cuMemImportFromShareableHandle, "garbage", (&h, &handle, CU_MEM_HANDLE_TYPE_FABRIC),
          OUT_C(h));
    CALL(cuMemImportFromShareableHandle, "null-out", (NULL, &handle, CU_MEM_HANDLE_TYPE_FABRIC));
    CALLO(cuMemImportFromShareableHandle, "null-handle", (&h, NULL, CU_MEM_HANDLE_TYPE_FABRIC),
          OUT_C(h));
}

SCENARIO(pool, "fabric/pool", par_context) {
    CUmemoryPool p = NULL, imported;
    CUmemFabricHandle handle;
    CUdeviceptr a;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = CU_MEM_HANDLE_TYPE_FABRIC,
                            .location.type = CU_MEM_LOCATION_TYPE_DEVICE};
    CALLO(cuMemPoolCreate, "fabric", (&p, &props), OUT_C(p));
    if (par_last() == CUDA_SUCCESS) {
        CALLO(cuMemPoolExportToShareableHandle, "fabric",
              (&handle, p, CU_MEM_HANDLE_TYPE_FABRIC, 0), OUT_C(handle));
        CALLO(cuMemAllocFromPoolAsync, "fabric", (&a, 4096, p, NULL), OUT_C(a));
    }
    memset(&handle, 0x5c, sizeof(handle));
    CALLO(cuMemPoolImportFromShareableHandle, "garbage-fabric",
          (&imported, &handle, CU_MEM_HANDLE_TYPE_FABRIC, 0), OUT_C(imported));
}
