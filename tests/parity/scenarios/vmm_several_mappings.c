/*
 * Ranges of several mappings: what is left of them after a refusal, and in which order a driver
 * goes through them; and handles that are found by the address of other memory than a device's.
 */
#include "../parity.h"

#include <fcntl.h>

static CUdeviceptr a; /* 8 pages of addresses */

static CUmemGenericAllocationHandle create_at(CUmemLocationType type, int id) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {type, id}};
    CUmemGenericAllocationHandle h = 0;
    SETUP(cuMemCreate, (&h, PAR_2M, &prop, 0));
    return h;
}

/* A page of the device at a, one of node 0 behind it, one of the device behind a hole. */
static void three(CUmemLocationType second, int id) {
    par_context();
    a = par_reserve(8 * PAR_2M);
    SETUP(cuMemMap, (a, PAR_2M, 0, create_at(CU_MEM_LOCATION_TYPE_DEVICE, 0), 0));
    SETUP(cuMemMap, (a + PAR_2M, PAR_2M, 0, create_at(second, id), 0));
    SETUP(cuMemMap, (a + 3 * PAR_2M, PAR_2M, 0, create_at(CU_MEM_LOCATION_TYPE_DEVICE, 0), 0));
}

static void rights(const char *cls, CUmemLocationType type, int id) {
    CUmemLocation location = {type, id};
    unsigned long long flags;
    for (int page = 0; page < 4; page++)
        if (page != 2)
            CALLO(cuMemGetAccess, cls, (&flags, &location, a + (CUdeviceptr)page * PAR_2M),
                  OUT_U(flags));
}

/* ---- Unmapping ------------------------------------------------------------------------------- */

/* The last mapping is cut: are those before it gone? */
SCENARIO(unmap_cut, "near-virtual/unmap-cut") {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    three(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUmemGenericAllocationHandle two = par_create_as(2 * PAR_2M, &prop);
    SETUP(cuMemMap, (a + 4 * PAR_2M, 2 * PAR_2M, 0, two, 0));
    CALL(cuMemUnmap, "cuts-the-last", (a, 5 * PAR_2M));
    rights("after-cut", CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CALL(cuMemUnmap, "cuts-the-first", (a + 5 * PAR_2M, 3 * PAR_2M));
    CALL(cuMemUnmap, "device-and-hole", (a, 8 * PAR_2M));
}

SCENARIO(unmap_host, "near-virtual/unmap-host") {
    three(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0);
    CALL(cuMemUnmap, "device-and-host", (a, 4 * PAR_2M));
    CALL(cuMemMap, "again", (a, PAR_2M, 0, create_at(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0), 0));
}

/* ---- Access ---------------------------------------------------------------------------------- */

/* The CPU may reach the second alone: is its right set, or put back, or is the first asked first?
 */
SCENARIO(access_mixed, "near-virtual/access-mixed") {
    three(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0);
    CUmemAccessDesc host = {{CU_MEM_LOCATION_TYPE_HOST, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemAccessDesc device = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READ);
    CUmemAccessDesc both[2] = {device, host};
    CALL(cuMemSetAccess, "host-of-device-and-host", (a, 2 * PAR_2M, &host, 1));
    rights("after-refusal", CU_MEM_LOCATION_TYPE_HOST, 0);
    CALL(cuMemSetAccess, "both-of-device-and-host", (a, 2 * PAR_2M, both, 2));
    rights("after-refusal-of-both", CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CALL(cuMemSetAccess, "device-of-device-and-host", (a, 2 * PAR_2M, &device, 1));
    rights("after-device", CU_MEM_LOCATION_TYPE_DEVICE, 0);
}

/* A part of the last mapping: are the rights of the first set? */
SCENARIO(access_cut, "near-virtual/access-cut") {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc device = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    three(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUmemGenericAllocationHandle two = par_create_as(2 * PAR_2M, &prop);
    SETUP(cuMemMap, (a + 4 * PAR_2M, 2 * PAR_2M, 0, two, 0));
    CALL(cuMemSetAccess, "cuts-the-last", (a + 3 * PAR_2M, 2 * PAR_2M, &device, 1));
    rights("after-cut", CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CALL(cuMemSetAccess, "hole-at-the-end", (a, 3 * PAR_2M, &device, 1));
    rights("after-hole", CU_MEM_LOCATION_TYPE_DEVICE, 0);
}

/* ---- By address ------------------------------------------------------------------------------ */

static void properties(const char *cls, CUmemGenericAllocationHandle h) {
    CUmemAllocationProp prop;
    CALLO(cuMemGetAllocationPropertiesFromHandle, cls, (&prop, h), OUT_I(prop.type),
          OUT_I(prop.requestedHandleTypes), OUT_I(prop.location.type), OUT_I(prop.location.id));
}

SCENARIO(retain_host, "near-virtual/retain-host", par_context) {
    CUmemGenericAllocationHandle h = 0;
    a = par_reserve(PAR_2M);
    SETUP(cuMemMap, (a, PAR_2M, 0, create_at(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0), 0));
    CALL(cuMemRetainAllocationHandle, "host-numa", (&h, (void *)(uintptr_t)a));
    properties("host-numa", h);
}

SCENARIO(retain_imported, "near-virtual/retain-imported", par_context) {
    CUmemGenericAllocationHandle made, imported, h = 0;
    int fd;
    a = par_reserve(PAR_2M);
    made = par_create(PAR_2M, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    SETUP(cuMemExportToShareableHandle, (&fd, made, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    SETUP(cuMemImportFromShareableHandle,
          (&imported, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    SETUP(cuMemMap, (a, PAR_2M, 0, imported, 0));
    CALL(cuMemRetainAllocationHandle, "imported", (&h, (void *)(uintptr_t)a));
    properties("imported", h);
    CALLO(cuMemExportToShareableHandle, "retained-import",
          (&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), OUT_D(fd));
}

/* Whose is a descriptor that is not memory, after its import was refused? */
SCENARIO(import_refused, "near-virtual/import-refused", par_context) {
    CUmemGenericAllocationHandle h;
    int ends[2];
    if (pipe(ends) != 0)
        return;
    CALLO(cuMemImportFromShareableHandle, "pipe-fd",
          (&h, (void *)(uintptr_t)ends[0], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), OUT_H(h));
    par_see("descriptor", "%s", fcntl(ends[0], F_GETFD) >= 0 ? "open" : "closed");
}
