#include "base/options.h"

#include <string.h>

/* No struct will ever be this large; guards against reading far beyond one whose size was never
 * set. */
#define MOST_BYTES ((size_t)64 << 10)

static int all_zero(const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (bytes[i])
            return 0;
    return 1;
}

gpumem_status gm_options_read(const char *what, const void *given, void *options, size_t known) {
    memset(options, 0, known);
    memcpy(options, &known, sizeof known);
    if (!given)
        return GPUMEM_OK;
    size_t size;
    memcpy(&size, given, sizeof size);
    const unsigned char *bytes = given;
    if (size == 0) {
        if (all_zero(bytes, known))
            return GPUMEM_OK;
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT, "%s: size is 0; set it to sizeof(%s)", what,
                       what);
    }
    if (size < known)
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT, "%s: size is %zu, which is less than %zu",
                       what, size, known);
    if (size > MOST_BYTES)
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT, "%s: size is %zu; set it to sizeof(%s)", what,
                       size, what);
    if (!all_zero(bytes + known, size - known))
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                       "%s: sets members that this version of the library does not know", what);
    memcpy(options, given, known);
    memcpy(options, &known, sizeof known);
    return GPUMEM_OK;
}

gpumem_status gm_result_write(const char *what, void *result, const void *filled, size_t known) {
    size_t size;
    if (!result)
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT, "%s is NULL", what);
    memcpy(&size, result, sizeof size);
    if (size < known)
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                       "%s: size is %zu; set it to sizeof(%s) before the call", what, size, what);
    memcpy((unsigned char *)result + sizeof size, (const unsigned char *)filled + sizeof size,
           known - sizeof size);
    return GPUMEM_OK;
}
