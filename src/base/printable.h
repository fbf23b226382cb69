/* Text that goes to a terminal or a log although it came from outside: names, variables. */
#ifndef GM_BASE_PRINTABLE_H
#define GM_BASE_PRINTABLE_H

#include <stddef.h>

/* Copies `text`, as much of it as `size` bytes hold with their end, with what is no printable UTF-8
 * shown as \x1b and so on. Returns the length of the copy. Allocates nothing. */
size_t gm_printable(const char *text, char *to, size_t size);

/* The length of the UTF-8 character at `text` (RFC 3629), which ends with 0; 0 when none begins
 * there. */
size_t gm_utf8_decode(const char *text, unsigned *value);

#endif
