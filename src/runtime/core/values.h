/* The arguments of an exported function as the trace shows them, by their types. */
#ifndef RT_CORE_VALUES_H
#define RT_CORE_VALUES_H

#include "runtime/core/runtime.h"

/* clang-format off */
#define RT_KIND(x) \
    _Generic((x), \
        dim3: RT_STRUCT_VALUE, cudaExtent: RT_STRUCT_VALUE, cudaPitchedPtr: RT_STRUCT_VALUE, \
        cudaMemLocation: RT_STRUCT_VALUE, cudaIpcMemHandle_t: RT_STRUCT_VALUE, \
        cudaIpcEventHandle_t: RT_STRUCT_VALUE, cudaChannelFormatDesc: RT_STRUCT_VALUE, \
        float: RT_REAL_VALUE, char: RT_SIGNED_VALUE, int: RT_SIGNED_VALUE, long: RT_SIGNED_VALUE, \
        unsigned: RT_UNSIGNED_VALUE, unsigned long: RT_UNSIGNED_VALUE, \
        unsigned long long: RT_UNSIGNED_VALUE, default: RT_ADDRESS_VALUE)
#define RT_NUMBER(x) \
    _Generic((x), dim3: 0, cudaExtent: 0, cudaPitchedPtr: 0, cudaMemLocation: 0, \
        cudaIpcMemHandle_t: 0, cudaIpcEventHandle_t: 0, cudaChannelFormatDesc: 0, default: (x))
#define RT_REAL(x)              _Generic((x), float: (x), default: 0.0f)
#define RT_ONE(x)               {RT_KIND(x), (uint64_t)(uintptr_t)RT_NUMBER(x), (double)RT_REAL(x)},
#define RT_NONE(x)
/* RT_ONE, or for the empty argument, which is what () has, RT_NONE. */
#define RT_V1(x)                RT_CHOSEN(RT_EMPTY_##x, RT_ONE, )(x)
#define RT_EMPTY_               ~, RT_NONE
#define RT_CHOSEN(...)          RT_CHOSEN_OF(__VA_ARGS__, )
#define RT_CHOSEN_OF(a, b, ...) b
#define RT_V2(x, ...)           RT_ONE(x) RT_V1(__VA_ARGS__)
#define RT_V3(x, ...)           RT_ONE(x) RT_V2(__VA_ARGS__)
#define RT_V4(x, ...)           RT_ONE(x) RT_V3(__VA_ARGS__)
#define RT_V5(x, ...)           RT_ONE(x) RT_V4(__VA_ARGS__)
#define RT_V6(x, ...)           RT_ONE(x) RT_V5(__VA_ARGS__)
#define RT_V7(x, ...)           RT_ONE(x) RT_V6(__VA_ARGS__)
#define RT_V8(x, ...)           RT_ONE(x) RT_V7(__VA_ARGS__)
#define RT_V9(x, ...)           RT_ONE(x) RT_V8(__VA_ARGS__)
#define RT_TENTH(a, b, c, d, e, f, g, h, i, chosen, ...) chosen
#define RT_VALUES(...) \
    RT_TENTH(__VA_ARGS__, RT_V9, RT_V8, RT_V7, RT_V6, RT_V5, RT_V4, RT_V3, RT_V2, RT_V1, ) \
    (__VA_ARGS__)
/* clang-format on */

#endif
