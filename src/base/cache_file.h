/*
 * Small texts that outlive the process, each under a name, in the user's cache folder:
 * $XDG_CACHE_HOME/gpumem, or ~/.cache/gpumem. Nothing depends on them: if anything goes wrong, a
 * text is not found or not kept, without an error.
 *
 * A text is trusted if its file is a regular file of this user that nobody else may write, is below
 * the size limit, and has the right checksum. Set-uid programs neither read nor write any.
 * Thread-safe, also between processes: a file is replaced as a whole.
 */
#ifndef GM_BASE_CACHE_FILE_H
#define GM_BASE_CACHE_FILE_H

#include <stddef.h>

#define GM_CACHE_MOST ((size_t)2048)

/* The text of `name`, a file name, ended by 0. 1, or 0 if there is no trusted one or it does not
 * fit in `room`. */
int gm_cache_read(const char *name, char *text, size_t room);

/* Keeps a text of less than GM_CACHE_MOST bytes. 1, or 0 on failure. Creates the folders. */
int gm_cache_write(const char *name, const char *text);

#endif
