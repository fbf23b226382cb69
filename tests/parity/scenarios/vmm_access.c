/* Virtual memory: who may read and write what, and what work on it says. */
#include "../parity.h"

typedef struct three {
    CUdeviceptr a; /* 4 steps: two mappings of one step, a hole, a mapping */
    CUmemGenericAllocationHandle h;
} three;

static three make_three(void) {
    three t;
    par_context();
    t.a = par_reserve(4 * PAR_2M);
    t.h = par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE);
    SETUP(cuMemMap, (t.a, PAR_2M, 0, t.h, 0));
    SETUP(cuMemMap, (t.a + PAR_2M, PAR_2M, 0, par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE), 0));
    SETUP(cuMemMap, (t.a + 3 * PAR_2M, PAR_2M, 0, par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE), 0));
    NAME_R(t.a, 4 * PAR_2M);
    return t;
}

static void show_access(const char *cls, CUdeviceptr p) {
    unsigned long long flags;
    CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CALLO(cuMemGetAccess, cls, (&flags, &location, p), OUT_U(flags));
}

SCENARIO(set_ranges, "vmm-access/set-ranges") {
    three t = make_three();
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    show_access("never-set", t.a);
    CALL(cuMemSetAccess, "whole-mapping", (t.a, PAR_2M, &access, 1));
    show_access("read-write", t.a);
    show_access("neighbour-never-set", t.a + PAR_2M);
    show_access("hole", t.a + 2 * PAR_2M);
    CALL(cuMemSetAccess, "two-mappings", (t.a, 2 * PAR_2M, &access, 1));
    CALL(cuMemSetAccess, "mapping-and-hole", (t.a + PAR_2M, 2 * PAR_2M, &access, 1));
    CALL(cuMemSetAccess, "hole", (t.a + 2 * PAR_2M, PAR_2M, &access, 1));
    CALL(cuMemSetAccess, "hole-between", (t.a, 4 * PAR_2M, &access, 1));
    CALL(cuMemSetAccess, "address-unaligned", (t.a + 4096, PAR_2M, &access, 1));
    CALL(cuMemSetAccess, "size-unaligned", (t.a, 4096, &access, 1));
    CALL(cuMemSetAccess, "zero-size", (t.a, 0, &access, 1));
    CALL(cuMemSetAccess, "past-reservation", (t.a + 3 * PAR_2M, 2 * PAR_2M, &access, 1));
    CALL(cuMemSetAccess, "null", (0, PAR_2M, &access, 1));
    CALL(cuMemSetAccess, "not-reserved", (0x10000000, PAR_2M, &access, 1));
    CALL(cuMemSetAccess, "null-desc", (t.a, PAR_2M, NULL, 1));
    CALL(cuMemSetAccess, "zero-count", (t.a, PAR_2M, &access, 0));
    CALL(cuMemSetAccess, "allocation", (par_alloc(PAR_2M), PAR_2M, &access, 1));
}

SCENARIO(part_of_mapping, "vmm-access/part-of-mapping", par_context) {
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CUdeviceptr a = par_reserve(4 * PAR_2M);
    SETUP(cuMemMap, (a, 4 * PAR_2M, 0, par_create(4 * PAR_2M, CU_MEM_HANDLE_TYPE_NONE), 0));
    CALL(cuMemSetAccess, "first-part-of-mapping", (a, PAR_2M, &access, 1));
    show_access("inside-part", a);
    show_access("outside-part", a + PAR_2M);
    CALL(cuMemSetAccess, "middle-of-mapping", (a + PAR_2M, 2 * PAR_2M, &access, 1));
    show_access("last-step", a + 3 * PAR_2M);
    CALL(cuMemsetD8_v2, "part-with-access", (a, 1, PAR_2M));
    CALL(cuMemSetAccess, "whole-mapping", (a, 4 * PAR_2M, &access, 1));
    show_access("whole", a + 3 * PAR_2M);
}

SCENARIO(set_descs, "vmm-access/set-descs") {
    three t = make_three();
    CUmemAccessDesc d[2];
#define DESC(cls, loc, dev, prot)                                                                  \
    do {                                                                                           \
        d[0] = (CUmemAccessDesc){{(CUmemLocationType)(loc), (dev)}, (CUmemAccess_flags)(prot)};    \
        CALL(cuMemSetAccess, cls, (t.a, PAR_2M, d, 1));                                            \
        show_access("after", t.a);                                                                 \
    } while (0)
    DESC("read-only", 1, 0, 1);
    DESC("read-write", 1, 0, 3);
    DESC("none", 1, 0, 0);
    DESC("none-again", 1, 0, 0);
    DESC("write-only", 1, 0, 2);
    DESC("bad-flags", 1, 0, 4);
    DESC("bad-flags", 1, 0, 7);
    DESC("bad-device", 1, 99, 3);
    DESC("bad-device", 1, -1, 3);
    DESC("location-zero", 0, 0, 3);
    DESC("location-host", 2, 0, 3);
    DESC("location-host-numa", 3, 0, 3);
    DESC("location-host-numa-current", 4, 0, 3);
    DESC("location-bad", 9, 0, 3);
    d[0] = d[1] = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CALL(cuMemSetAccess, "same-device-twice", (t.a, PAR_2M, d, 2));
    d[1].flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    CALL(cuMemSetAccess, "same-device-contradiction", (t.a, PAR_2M, d, 2));
    show_access("after-contradiction", t.a);
    d[1].location.id = 99;
    CALL(cuMemSetAccess, "second-bad", (t.a, PAR_2M, d, 2));
}

SCENARIO(get_bad, "vmm-access/get-bad") {
    three t = make_three();
    unsigned long long flags;
    CUmemLocation where = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemLocation bad = {CU_MEM_LOCATION_TYPE_DEVICE, 99};
    CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};
    CUmemLocation none = {(CUmemLocationType)0, 0};
    CALL(cuMemGetAccess, "null-out", (NULL, &where, t.a));
    CALLO(cuMemGetAccess, "null-location", (&flags, NULL, t.a), OUT_U(flags));
    CALLO(cuMemGetAccess, "bad-device", (&flags, &bad, t.a), OUT_U(flags));
    CALLO(cuMemGetAccess, "host", (&flags, &host, t.a), OUT_U(flags));
    CALLO(cuMemGetAccess, "location-zero", (&flags, &none, t.a), OUT_U(flags));
    CALLO(cuMemGetAccess, "interior", (&flags, &where, t.a + 5), OUT_U(flags));
    CALLO(cuMemGetAccess, "null", (&flags, &where, 0), OUT_U(flags));
    CALLO(cuMemGetAccess, "random", (&flags, &where, 0x10000000), OUT_U(flags));
    CALLO(cuMemGetAccess, "allocation", (&flags, &where, par_alloc(PAR_2M)), OUT_U(flags));
    CALLO(cuMemGetAccess, "pinned", (&flags, &where, (CUdeviceptr)(uintptr_t)par_pinned(4096)),
          OUT_U(flags));
    CALLO(cuMemGetAccess, "reserved", (&flags, &where, par_reserve(PAR_2M)), OUT_U(flags));
}

SCENARIO(work_without_access, "vmm-access/work-without") {
    three t = make_three();
    char host[64] = {0};
    CALL(cuMemsetD8_v2, "no-access", (t.a, 1, 64));
    CALL(cuMemcpyHtoD_v2, "no-access", (t.a, host, 64));
    CALL(cuMemcpyDtoH_v2, "no-access", (host, t.a, 64));
    CALL(cuMemsetD8_v2, "hole", (t.a + 2 * PAR_2M, 1, 64));
    CALL(cuMemcpyDtoH_v2, "hole", (host, t.a + 2 * PAR_2M, 64));
    CALL(cuCtxSynchronize, "after", ());
}

static three make_read_only(void) {
    three t = make_three();
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READ);
    SETUP(cuMemSetAccess, (t.a, PAR_2M, &access, 1));
    return t;
}

SCENARIO(read_only_read, "vmm-access/read-only-read") {
    three t = make_read_only();
    char host[64] = {0};
    CALL(cuMemcpyDtoH_v2, "read-only", (host, t.a, 64));
    CALL(cuMemcpyDtoD_v2, "from-read-only", (par_alloc(64), t.a, 64));
    CALL(cuCtxSynchronize, "after", ());
}

SCENARIO(read_only_set, "vmm-access/read-only-set") {
    three t = make_read_only();
    CALL(cuMemsetD8_v2, "read-only", (t.a, 1, 64));
    CALL(cuCtxSynchronize, "after", ());
    CALL(cuCtxSynchronize, "again", ());
}

SCENARIO(read_only_copy, "vmm-access/read-only-copy") {
    three t = make_read_only();
    char host[64] = {0};
    CALL(cuMemcpyHtoD_v2, "read-only", (t.a, host, 64));
    CALL(cuCtxSynchronize, "after", ());
    CALL(cuMemcpyDtoD_v2, "to-read-only", (t.a, par_alloc(64), 64));
    CALL(cuCtxSynchronize, "again", ());
}

SCENARIO(across_mappings, "vmm-access/across-mappings") {
    three t = make_three();
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    char *host = calloc(1, PAR_2M);
    SETUP(cuMemSetAccess, (t.a, 2 * PAR_2M, &access, 1));
    SETUP(cuMemSetAccess, (t.a + 3 * PAR_2M, PAR_2M, &access, 1));
    CALL(cuMemsetD8_v2, "over-two-mappings", (t.a + PAR_2M / 2, 7, PAR_2M));
    CALL(cuMemcpyDtoH_v2, "over-two-mappings", (host, t.a + PAR_2M / 2, PAR_2M));
    par_see("content", "%d %d", host[0], host[PAR_2M - 1]);
    CALL(cuMemcpyHtoD_v2, "over-two-mappings", (t.a + PAR_2M / 2, host, PAR_2M));
    CALL(cuMemcpyDtoD_v2, "over-two-mappings", (t.a + PAR_2M / 2, t.a + 3 * PAR_2M, PAR_2M));
    CALL(cuMemcpyDtoHAsync_v2, "over-two-mappings", (host, t.a + PAR_2M / 2, PAR_2M, NULL));
    CALL(cuCtxSynchronize, "after", ());
}

SCENARIO(into_hole, "vmm-access/into-hole") {
    three t = make_three();
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    SETUP(cuMemSetAccess, (t.a, 2 * PAR_2M, &access, 1));
    CALL(cuMemsetD8_v2, "into-hole", (t.a + PAR_2M, 7, 2 * PAR_2M));
    CALL(cuCtxSynchronize, "after", ());
}

SCENARIO(into_hole_copy, "vmm-access/into-hole-copy") {
    three t = make_three();
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    char *host = calloc(2, PAR_2M);
    SETUP(cuMemSetAccess, (t.a, 2 * PAR_2M, &access, 1));
    CALL(cuMemcpyHtoD_v2, "into-hole", (t.a + PAR_2M, host, 2 * PAR_2M));
    CALL(cuCtxSynchronize, "after", ());
}

SCENARIO(two_addresses, "vmm-access/two-addresses", par_context) {
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    unsigned word = 0;
    CUdeviceptr a = par_reserve(PAR_2M);
    CUdeviceptr b = par_reserve(PAR_2M);
    CUmemGenericAllocationHandle h = par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE);
    CALL(cuMemMap, "first", (a, PAR_2M, 0, h, 0));
    CALL(cuMemMap, "second", (b, PAR_2M, 0, h, 0));
    CALL(cuMemSetAccess, "first", (a, PAR_2M, &access, 1));
    show_access("second-mapping-of-handle", b);
    CALL(cuMemSetAccess, "second", (b, PAR_2M, &access, 1));
    CALL(cuMemsetD32_v2, "first", (a, 0x11223344, 16));
    CALL(cuMemcpyDtoH_v2, "second", (&word, b, 4));
    par_see("content", "0x%08x", word);
    CALL(cuMemUnmap, "first", (a, PAR_2M));
    CALL(cuMemcpyDtoH_v2, "second-after-unmap", (&word, b, 4));
}

SCENARIO(access_after_remap, "vmm-access/after-remap", par_context) {
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    unsigned word = 0;
    CUdeviceptr a = par_reserve(PAR_2M);
    CUmemGenericAllocationHandle h = par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE);
    SETUP(cuMemMap, (a, PAR_2M, 0, h, 0));
    SETUP(cuMemSetAccess, (a, PAR_2M, &access, 1));
    SETUP(cuMemsetD32_v2, (a, 0x55667788, 16));
    SETUP(cuCtxSynchronize, ());
    SETUP(cuMemUnmap, (a, PAR_2M));
    show_access("unmapped", a);
    SETUP(cuMemMap, (a, PAR_2M, 0, h, 0));
    show_access("mapped-again", a);
    SETUP(cuMemSetAccess, (a, PAR_2M, &access, 1));
    CALL(cuMemcpyDtoH_v2, "mapped-again", (&word, a, 4));
    par_see("content", "0x%08x", word);
}

/* Host memory mapped for the GPU and the CPU. */
SCENARIO(host_numa, "vmm-access/host-numa", par_context) {
    CUmemAllocationProp prop = par_device_prop();
    CUmemGenericAllocationHandle h;
    CUmemAccessDesc device = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CUmemAccessDesc host = {{CU_MEM_LOCATION_TYPE_HOST, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemAccessDesc numa = {{CU_MEM_LOCATION_TYPE_HOST_NUMA, 0},
                            CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    unsigned long long flags;
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    CUdeviceptr a = par_reserve(PAR_2M);
    CALLO(cuMemCreate, "host-numa", (&h, PAR_2M, &prop, 0), OUT_H(h));
    CALL(cuMemMap, "host-numa", (a, PAR_2M, 0, h, 0));
    CALL(cuMemSetAccess, "host-numa-device", (a, PAR_2M, &device, 1));
    CALL(cuMemSetAccess, "host-numa-host", (a, PAR_2M, &host, 1));
    CALL(cuMemSetAccess, "host-numa-numa", (a, PAR_2M, &numa, 1));
    CALLO(cuMemGetAccess, "host-numa-host", (&flags, &host.location, a), OUT_U(flags));
    CALLO(cuMemGetAccess, "host-numa-numa", (&flags, &numa.location, a), OUT_U(flags));
    CALLO(cuMemGetAccess, "host-numa-device", (&flags, &device.location, a), OUT_U(flags));
    CALL(cuMemsetD8_v2, "host-numa", (a, 0x33, PAR_2M));
    CALL(cuCtxSynchronize, "ok", ());
}

SCENARIO(host_numa_cpu_reads, "vmm-access/host-numa-cpu-reads", par_context) {
    CUmemAllocationProp prop = par_device_prop();
    CUmemAccessDesc both[2] = {
        par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
        {{CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    CUdeviceptr a = par_reserve(PAR_2M);
    CUmemGenericAllocationHandle h = par_create_as(PAR_2M, &prop);
    SETUP(cuMemMap, (a, PAR_2M, 0, h, 0));
    CALL(cuMemSetAccess, "host-numa-both", (a, PAR_2M, both, 2));
    CALL(cuMemsetD8_v2, "host-numa", (a, 0x33, PAR_2M));
    CALL(cuCtxSynchronize, "ok", ());
    par_see("cpu-reads", "0x%x", *(volatile unsigned char *)(uintptr_t)(a + 100));
}

SCENARIO(cpu_reads_device, "vmm-access/cpu-reads-device", par_context) {
    CUdeviceptr a = par_mapped(PAR_2M);
    CALL(cuMemsetD8_v2, "ok", (a, 1, 64));
    par_see("cpu-reads", "%d", *(volatile char *)(uintptr_t)a);
}

SCENARIO(cpu_reads_allocation, "vmm-access/cpu-reads-allocation", par_context) {
    CUdeviceptr a = par_alloc(PAR_2M);
    CALL(cuMemsetD8_v2, "ok", (a, 1, 64));
    par_see("cpu-reads", "%d", *(volatile char *)(uintptr_t)a);
}
