/*
 * The implementations, one per row of functions.def: sg_<symbol>, entered and left with the lock
 * held, after the prologue has checked process, initialization and sticky error. A row without an
 * implementation is refused by the prologue. _ptds/_ptsz twins are never implemented: the prologue
 * calls the plain row with sg_thread()->per_thread_stream set.
 */
#ifndef SG_CORE_CALLS_H
#define SG_CORE_CALLS_H

#include <gpumem/cuda_api.h>

#ifdef SG_CALLS_MAY_BE_ABSENT
#define SG_CALL_ATTRIBUTE __attribute__((weak, visibility("hidden")))
#else
#define SG_CALL_ATTRIBUTE __attribute__((visibility("hidden")))
#endif

#define CU_FN(symbol, name, version, kind, params, args)                                           \
    SG_CALL_ATTRIBUTE CUresult sg_##symbol params;
#include <gpumem/functions.def>

#endif
