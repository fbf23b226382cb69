/* Makes text from outside (names, variables) safe for a terminal or a log. */
#ifndef GM_BASE_PRINTABLE_H
#define GM_BASE_PRINTABLE_H

#include <stddef.h>

/* Copies `text`, as much of it as `size` bytes hold with their end, with anything but printable
 * UTF-8 shown as \x1b and so on. Returns the length of the copy. Allocates nothing. */
size_t gm_printable(const char *text, char *to, size_t size);

/* The length of the UTF-8 character at `text` (RFC 3629), which is 0-terminated; 0 if none begins
 * there. */
size_t gm_utf8_decode(const char *text, unsigned *value);

#endif
