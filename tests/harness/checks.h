/*
 * The one vocabulary of checks of calls: what was called, what it answered and what was wanted are
 * printed.
 *
 *     OK(call)              a gpumem_status, which is GPUMEM_OK
 *     FAILS(status, call)   a gpumem_status: GPUMEM_ERROR_<status>
 *     SAYS(text)            the library's last message has this in it
 *     FAILS_SAYING(status, text, call)  both
 *     OK_CU(call)           a CUresult, which is CUDA_SUCCESS
 *     FAILS_CU(error, call) a CUresult: CUDA_ERROR_<error>
 *
 * The words are the same everywhere. tests/conformance has its own OK_CU and FAILS_CU, which look
 * for the results' names on any driver (harness.h), and ANSWERS_CU(result, call) for a result in a
 * variable.
 */
#ifndef TESTS_CHECKS_H
#define TESTS_CHECKS_H

#include "test.h"

#include <gpumem/driver.h>
#include <gpumem/gpumem.h>
#include <string.h>

static inline void check_status(gpumem_status got, gpumem_status wanted, const char *call,
                                const char *file, int line) {
    if (got == wanted)
        return;
    print_error("%s\n  answered %s, wanted %s; the last error says: %s\n", call,
                gpumem_status_name(got), gpumem_status_name(wanted), gpumem_last_error()->message);
    _fail(file, line);
}

static inline void check_cu(CUresult got, CUresult wanted, const char *call, const char *file,
                            int line) {
    if (got == wanted)
        return;
    print_error("%s\n  answered %d, wanted %d\n", call, (int)got, (int)wanted);
    _fail(file, line);
}

#define OK(call) check_status((gpumem_status)(call), GPUMEM_OK, #call, __FILE__, __LINE__)
#define FAILS(status, call)                                                                        \
    check_status((gpumem_status)(call), GPUMEM_ERROR_##status, #call, __FILE__, __LINE__)
#ifndef OK_CU
#define OK_CU(call) check_cu((CUresult)(call), CUDA_SUCCESS, #call, __FILE__, __LINE__)
#define FAILS_CU(error, call)                                                                      \
    check_cu((CUresult)(call), CUDA_ERROR_##error, #call, __FILE__, __LINE__)
#endif

/* Checks that the last message names what it should. */
#define SAYS(text)                                                                                 \
    do {                                                                                           \
        if (!strstr(gpumem_last_error()->message, text))                                           \
            fail_msg("'%s' is not in: %s", text, gpumem_last_error()->message);                    \
    } while (0)

#define FAILS_SAYING(status, text, call)                                                           \
    do {                                                                                           \
        FAILS(status, call);                                                                       \
        SAYS(text);                                                                                \
    } while (0)

/* ---- For functions that report what they were refused ---------------------------------------- */

/* Returns a gpumem_status other than GPUMEM_OK, as an int. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        gpumem_status tried_ = (call);                                                             \
        if (tried_ != GPUMEM_OK)                                                                   \
            return (int)tried_;                                                                    \
    } while (0)

/* Calls only where all is well so far. */
#define AND_THEN(status, call)                                                                     \
    do {                                                                                           \
        if ((status) == GPUMEM_OK)                                                                 \
            (status) = (call);                                                                     \
    } while (0)

#endif
