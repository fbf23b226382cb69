/*
 * What libsoftgpu exports: a wrapper for each row of functions.def, and the implementation that it
 * calls.
 */
#define SG_CALLS_MAY_BE_ABSENT
#include "softgpu/core/calls.h"
#include "softgpu/core/rows.h"
#include "softgpu/core/state.h"
#include "softgpu/entry/entry.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#define CU_FN(symbol, name, version, kind, params, args) EXPORT CUresult CUDAAPI symbol params;
#include <gpumem/functions.def>

_Static_assert(sizeof(gpumem_driver_api) == GPUMEM_FN_COUNT * sizeof(sg_any_fn),
               "a row of the table is one pointer");

/* A member is NULL if no chapter defines the function: an unresolved weak reference. */
static gpumem_driver_api implementations = {
#define CU_FN(symbol, name, version, kind, params, args) .symbol = sg_##symbol,
#include <gpumem/functions.def>
};

static const gpumem_driver_api wrappers = {
#define CU_FN(symbol, name, version, kind, params, args) .symbol = symbol,
#include <gpumem/functions.def>
};

/*
 * The first two arguments as numbers; 0 if there is none, because it then reads (uintptr_t) + 0.
 * Four functions have a structure there, which their PASSED macro leaves out.
 */
#define FIRST(...)                             FIRST_OF(__VA_ARGS__, 0)
#define FIRST_OF(first, ...)                   ((uintptr_t)first + 0)
#define SECOND(...)                            SECOND_OF(__VA_ARGS__, 0, 0)
#define SECOND_OF(first, second, ...)          ((uintptr_t)second + 0)
#define PASSED(...)                            PASSED_OF(__VA_ARGS__, )
#define PASSED_OF(ignored, chosen, ...)        chosen
#define PASSED_cuEGLStreamProducerPresentFrame ~, 1
#define PASSED_cuIpcOpenEventHandle            ~, 1
#define PASSED_cuIpcOpenMemHandle              ~, 1
#define PASSED_cuIpcOpenMemHandle_v2           ~, 1
#define ARGUMENTS(symbol, args)                                                                    \
    { FIRST args, PASSED(PASSED_##symbol, SECOND args) }

/*
 * All arguments, for the trace: their values as numbers, and how to write them, by type. A
 * structure is shown without its members. A function with a TOLD_<symbol> takes no arguments.
 */
/* clang-format off */
#define KIND(x) \
    _Generic((x), \
        CUmemLocation: SG_VALUE_STRUCT, CUipcMemHandle: SG_VALUE_STRUCT, \
        CUipcEventHandle: SG_VALUE_STRUCT, CUeglFrame: SG_VALUE_STRUCT, float: SG_VALUE_FLOAT, \
        char: SG_VALUE_SIGNED, int: SG_VALUE_SIGNED, long: SG_VALUE_SIGNED, \
        unsigned char: SG_VALUE_UNSIGNED, unsigned short: SG_VALUE_UNSIGNED, \
        unsigned int: SG_VALUE_UNSIGNED, unsigned long: SG_VALUE_UNSIGNED, \
        const char *: SG_VALUE_TEXT, CUgraph *: SG_VALUE_GRAPH, void **: SG_VALUE_MADE, CUdeviceptr *: SG_VALUE_MADE, \
        CUcontext *: SG_VALUE_MADE, CUmodule *: SG_VALUE_MADE, CUfunction *: SG_VALUE_MADE, \
        CUlibrary *: SG_VALUE_MADE, CUkernel *: SG_VALUE_MADE, CUarray *: SG_VALUE_MADE, \
        CUmipmappedArray *: SG_VALUE_MADE, CUtexref *: SG_VALUE_MADE, \
        CUsurfref *: SG_VALUE_MADE, CUevent *: SG_VALUE_MADE, CUstream *: SG_VALUE_MADE, \
        CUexternalMemory *: SG_VALUE_MADE, CUexternalSemaphore *: SG_VALUE_MADE, \
        CUgraphNode *: SG_VALUE_MADE, CUgraphExec *: SG_VALUE_MADE, \
        CUmemoryPool *: SG_VALUE_MADE, CUuserObject *: SG_VALUE_MADE, \
        CUgreenCtx *: SG_VALUE_MADE, \
        default: SG_VALUE_ADDRESS)
#define NUMBER(x) \
    _Generic((x), CUmemLocation: 0, CUipcMemHandle: 0, CUipcEventHandle: 0, CUeglFrame: 0, default: (x))
#define REAL(x)            _Generic((x), float: (x), default: 0.0f)
#define VALUE(x)           {KIND(x), (uintptr_t)NUMBER(x), REAL(x)},
#define NO_VALUES(...)     {SG_VALUE_ADDRESS, 0, 0.0f},
#define COUNT(...) \
    COUNTED(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define COUNTED(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, count, ...) count
#define V1(x)              VALUE(x)
#define V2(x, ...)         VALUE(x) V1(__VA_ARGS__)
#define V3(x, ...)         VALUE(x) V2(__VA_ARGS__)
#define V4(x, ...)         VALUE(x) V3(__VA_ARGS__)
#define V5(x, ...)         VALUE(x) V4(__VA_ARGS__)
#define V6(x, ...)         VALUE(x) V5(__VA_ARGS__)
#define V7(x, ...)         VALUE(x) V6(__VA_ARGS__)
#define V8(x, ...)         VALUE(x) V7(__VA_ARGS__)
#define V9(x, ...)         VALUE(x) V8(__VA_ARGS__)
#define V10(x, ...)        VALUE(x) V9(__VA_ARGS__)
#define V11(x, ...)        VALUE(x) V10(__VA_ARGS__)
#define V12(x, ...)        VALUE(x) V11(__VA_ARGS__)
#define V13(x, ...)        VALUE(x) V12(__VA_ARGS__)
#define V14(x, ...)        VALUE(x) V13(__VA_ARGS__)
#define V15(x, ...)        VALUE(x) V14(__VA_ARGS__)
#define V16(x, ...)        VALUE(x) V15(__VA_ARGS__)
#define JOINED(a, b)       a##b
#define JOIN(a, b)         JOINED(a, b)
#define VALUES(...)        JOIN(V, COUNT(__VA_ARGS__))(__VA_ARGS__)
/* clang-format on */

#define TOLD_cuCtxResetPersistingL2Cache ~, NO_VALUES
#define TOLD_cuCtxSynchronize            ~, NO_VALUES
#define TOLD_cuGLInit                    ~, NO_VALUES
#define TOLD_cuProfilerStart             ~, NO_VALUES
#define TOLD_cuProfilerStop              ~, NO_VALUES

/* A stack cannot be walked from here where the library is loaded by its filter: glibc's table for
 * unwinding does not have it then. */
#define CALLED_cuGetExportTable ~, sg_thread()->caller = __builtin_return_address(0)

/* Names that no parameter has: rows have a `result` of their own. */
#define CU_FN(symbol, name, version, kind, params, args)                                           \
    CUresult CUDAAPI symbol params {                                                               \
        struct sg_arguments arguments_ = ARGUMENTS(symbol, args);                                  \
        struct sg_call entry_;                                                                     \
        CUresult answer_;                                                                          \
        PASSED(CALLED_##symbol, (void)0);                                                          \
        if (sg_enter(&entry_, GPUMEM_FN_##symbol, arguments_, &answer_))                           \
            answer_ = implementations.symbol args;                                                 \
        if (__builtin_expect(entry_.traced, 0)) {                                                  \
            const struct sg_value values_[] = {PASSED(TOLD_##symbol, VALUES) args};                \
            entry_.values = values_;                                                               \
            entry_.value_count =                                                                   \
                sizeof values_ / sizeof values_[0] * (sizeof #args > sizeof "()");                 \
            return sg_leave(&entry_, answer_);                                                     \
        }                                                                                          \
        return sg_leave(&entry_, answer_);                                                         \
    }
#include <gpumem/functions.def>

static sg_any_fn slot(const gpumem_driver_api *table, gpumem_driver_fn fn) {
    sg_any_fn found;
    memcpy(&found, (const char *)table + (size_t)fn * sizeof found, sizeof found);
    return found;
}

sg_any_fn sg_exported(gpumem_driver_fn fn) {
    return slot(&wrappers, fn);
}

bool sg_implemented(gpumem_driver_fn fn) {
    return slot(&implementations, fn) != NULL;
}

/* ---- Twins --------------------------------------------------------------------------------- */

/* A twin is its plain row with another meaning of NULL, so it shares the implementation. */
static void fill_twin(unsigned row) {
    char plain[128];
    size_t length = strlen(sg_rows[row].symbol) - strlen("_ptsz");
    if (length >= sizeof plain)
        return;
    memcpy(plain, sg_rows[row].symbol, length);
    plain[length] = '\0';
    gpumem_driver_fn found = sg_row_find(plain);
    if (found == GPUMEM_FN_COUNT)
        return;
    memcpy((char *)&implementations + row * sizeof(sg_any_fn),
           (const char *)&implementations + (size_t)found * sizeof(sg_any_fn), sizeof(sg_any_fn));
}

/* After sg_rows_fill, and before any other constructor, because one may call the driver. */
__attribute__((constructor(102))) static void fill_twins(void) {
    for (unsigned i = 0; i < GPUMEM_FN_COUNT; i++)
        if (sg_rows[i].kind != GPUMEM_FN_PLAIN)
            fill_twin(i);
}
