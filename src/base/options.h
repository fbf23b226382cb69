/*
 * Versioned structs: options that callers pass in, and results that are filled in for them. A
 * caller's struct may be that of an older header, as small as when it was first released
 * (struct_sizes.def), or that of a newer one. A struct without a row in that table does not compile
 * here.
 */
#ifndef GM_BASE_OPTIONS_H
#define GM_BASE_OPTIONS_H

#include "base/error.h"

enum gm_first_size {
#define GM_STRUCT(name, bytes) GM_FIRST_SIZE_##name = (bytes),
#include "base/struct_sizes.def"
#undef GM_STRUCT
};

/* What is known of a struct. */
struct gm_versioned {
    const char *name;
    size_t first; /* its size when it was first released: the least that a caller can have */
    size_t known; /* its size now */
};

#define GM_VERSIONED(type) (&(const struct gm_versioned){#type, GM_FIRST_SIZE_##type, sizeof(type)})

/* The pointer, which must be one to a `type`. */
#define GM_POINTER_TO(type, pointer) (1 ? (pointer) : (type *)0)

/*
 * Copies what the caller gave into *options; members beyond the caller's size are zero. `given` may
 * be NULL. Of a struct whose size is 0 only the bytes of its first release are looked at, since no
 * more is sure to be there.
 */
#define GM_OPTIONS_READ(type, given, options)                                                      \
    gm_options_read(GM_VERSIONED(type), GM_POINTER_TO(const type, given),                          \
                    GM_POINTER_TO(type, options))

/* Whether a result can be written there: the message says what is wrong. */
#define GM_RESULT_CHECK(type, result)                                                              \
    gm_result_check(GM_VERSIONED(type), GM_POINTER_TO(const type, result))

/* Copies a result to the caller, as much as the caller's struct holds, without changing its
 * size. */
#define GM_RESULT_WRITE(type, result, filled)                                                      \
    gm_result_write(GM_VERSIONED(type), GM_POINTER_TO(type, result),                               \
                    GM_POINTER_TO(const type, filled))

gpumem_status gm_options_read(const struct gm_versioned *type, const void *given, void *options);
gpumem_status gm_result_check(const struct gm_versioned *type, const void *result);
gpumem_status gm_result_write(const struct gm_versioned *type, void *result, const void *filled);

#endif
