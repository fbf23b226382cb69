#pragma once
/*
 * cudaProfiler.h is in another package than cuda.h. cudaProfilerTypedefs.h needs of it one
 * enumeration, whose two values are those of the driver API's documentation.
 */
typedef enum CUoutput_mode_enum { CU_OUT_KEY_VALUE_PAIR = 0, CU_OUT_CSV = 1 } CUoutput_mode;
