/* Multicast: the granularity only. The other functions hold memory of every GPU of a machine and
 * are never called on hardware; tests/conformance/test_multicast.c has them for softgpu. */
#include "../parity.h"

static CUmulticastObjectProp object(unsigned devices, size_t size) {
    CUmulticastObjectProp prop;
    memset(&prop, 0, sizeof(prop));
    prop.numDevices = devices;
    prop.size = size;
    return prop;
}

/* One device can be no team, so a machine of one answers for no number of them. */
SCENARIO(granularity, "multicast/granularity", par_init) {
    size_t n;
    CUmulticastObjectProp prop;
    for (unsigned devices = 0; devices <= 3; devices++) {
        for (int option = 0; option <= 2; option++) {
            prop = object(devices, PAR_2M);
            par_note("devices=%u option=%d", devices, option);
            CALLO(cuMulticastGetGranularity, "ok",
                  (&n, &prop, (CUmulticastGranularity_flags)option), OUT_U(n));
        }
    }
#define GRANULARITY(cls, change)                                                                   \
    do {                                                                                           \
        prop = object(2, PAR_2M);                                                                  \
        change;                                                                                    \
        CALLO(cuMulticastGetGranularity, cls, (&n, &prop, CU_MULTICAST_GRANULARITY_MINIMUM),       \
              OUT_U(n));                                                                           \
    } while (0)
    GRANULARITY("zero-size", prop.size = 0);
    GRANULARITY("odd-size", prop.size = 100);
    GRANULARITY("large-size", prop.size = (size_t)1 << 40);
    GRANULARITY("type-fd", prop.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    GRANULARITY("type-fabric", prop.handleTypes = CU_MEM_HANDLE_TYPE_FABRIC);
    GRANULARITY("type-win32", prop.handleTypes = CU_MEM_HANDLE_TYPE_WIN32);
    GRANULARITY("type-bad", prop.handleTypes = 0x100);
    GRANULARITY("flags", prop.flags = 1);
    GRANULARITY("many-devices", prop.numDevices = 100);
    CALL(cuMulticastGetGranularity, "null-out", (NULL, &prop, CU_MULTICAST_GRANULARITY_MINIMUM));
    CALLO(cuMulticastGetGranularity, "null-prop", (&n, NULL, CU_MULTICAST_GRANULARITY_MINIMUM),
          OUT_U(n));
    CALLO(cuMulticastGetGranularity, "bad-option", (&n, &prop, (CUmulticastGranularity_flags)-1),
          OUT_U(n));
}
