#pragma once
/*
 * The VDPAU types that cudaVDPAU.h uses: ids are 32-bit integers. VdpGetProcAddress is a function
 * type there, used through a pointer only; as void it makes that pointer the void * of our table.
 */
#include <stdint.h>
typedef uint32_t VdpDevice;
typedef uint32_t VdpVideoSurface;
typedef uint32_t VdpOutputSurface;
typedef uint32_t VdpFuncId;
typedef int VdpStatus;
typedef void VdpGetProcAddress;
