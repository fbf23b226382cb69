/*
 * Small texts that outlive the process, one a name, in the user's cache folder:
 * $XDG_CACHE_HOME/gpumem, or ~/.cache/gpumem. Nothing depends on them: whatever is in the way, a
 * text is not found, or is not kept, and there is no error.
 *
 * A text is believed when its file is a regular one of this user's that nobody else may write, as
 * small as this says, and its checksum fits. Set-uid programs neither read nor write any.
 * Thread-safe, also between processes: a file is replaced as a whole.
 */
#ifndef GM_BASE_CACHE_FILE_H
#define GM_BASE_CACHE_FILE_H

#include <stddef.h>

#define GM_CACHE_MOST ((size_t)2048)

/* The text of `name`, a file name, ended by 0. 1, or 0 when there is none to believe or it does not
 * fit in `room`. */
int gm_cache_read(const char *name, char *text, size_t room);

/* Keeps a text of less than GM_CACHE_MOST bytes. 1, or 0 when it could not. Makes the folders. */
int gm_cache_write(const char *name, const char *text);

#endif
