#include "base/options.h"

#include <gpumem/driver.h>
#include <gpumem/gpumem.h>
#include <string.h>

/* No struct will ever be this large; guards against reading far beyond one whose size was never
 * set. */
#define MOST_BYTES ((size_t)64 << 10)

#define GM_STRUCT(name, bytes)                                                                     \
    _Static_assert(sizeof(name) >= (bytes), #name " is smaller than when it was first released");
#include "base/struct_sizes.def"
#undef GM_STRUCT

static int all_zero(const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (bytes[i])
            return 0;
    return 1;
}

static size_t size_of(const void *versioned) {
    size_t size;
    memcpy(&size, versioned, sizeof size);
    return size;
}

static gpumem_status check_options(const struct gm_versioned *type, const void *given,
                                   size_t size) {
    if (size < type->first)
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                       "%s: size is %zu; no version of it has less than %zu", type->name, size,
                       type->first);
    if (size > MOST_BYTES)
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT, "%s: size is %zu; set it to sizeof(%s)",
                       type->name, size, type->name);
    if (size > type->known &&
        !all_zero((const unsigned char *)given + type->known, size - type->known))
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                       "%s: sets members that this version of the library does not know",
                       type->name);
    return GPUMEM_OK;
}

gpumem_status gm_options_read(const struct gm_versioned *type, const void *given, void *options) {
    memset(options, 0, type->known);
    memcpy(options, &type->known, sizeof type->known);
    if (!given)
        return GPUMEM_OK;
    size_t size = size_of(given);
    if (size == 0) {
        if (all_zero(given, type->first))
            return GPUMEM_OK;
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT, "%s: size is 0; set it to sizeof(%s)",
                       type->name, type->name);
    }
    gpumem_status status = check_options(type, given, size);
    if (status != GPUMEM_OK)
        return status;
    memcpy(options, given, size < type->known ? size : type->known);
    memcpy(options, &type->known, sizeof type->known);
    return GPUMEM_OK;
}

gpumem_status gm_result_check(const struct gm_versioned *type, const void *result) {
    if (!result)
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT, "%s is NULL", type->name);
    size_t size = size_of(result);
    if (size < type->first)
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                       "%s: size is %zu; set it to sizeof(%s) before the call", type->name, size,
                       type->name);
    return GPUMEM_OK;
}

gpumem_status gm_result_write(const struct gm_versioned *type, void *result, const void *filled) {
    gpumem_status status = gm_result_check(type, result);
    if (status != GPUMEM_OK)
        return status;
    size_t size = size_of(result), own = sizeof size;
    size_t bytes = size < type->known ? size : type->known;
    memcpy((unsigned char *)result + own, (const unsigned char *)filled + own, bytes - own);
    return GPUMEM_OK;
}
