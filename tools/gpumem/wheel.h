/* The members of a wheel, which is a zip archive. */
#ifndef CLI_WHEEL_H
#define CLI_WHEEL_H

#include "device_code.h"

/* Whether it begins or ends like a zip archive. */
bool wheel_is(const struct source *source);

/*
 * Calls `each` with every member that is an ELF file, unpacked, in the archive's order; `name` is
 * its path in the archive. False when the archive cannot be read, or a member cannot be unpacked,
 * with the reason in `why`; members before that one have been passed.
 */
bool wheel_each(const struct source *source,
                void (*each)(void *user, const char *name, const struct source *member), void *user,
                char *why, size_t size);

#endif
