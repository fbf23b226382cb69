#ifndef SG_ENTRY_SETTINGS_H
#define SG_ENTRY_SETTINGS_H

#include <stddef.h>

/* Looks at the environment as it is now. Writes a line for each value that is not understood, at
 * most `size` bytes with their end; returns how many there are. Changes nothing, but that the file
 * of SOFTGPU_TRACE exists afterwards. */
int sg_settings_check(char *text, size_t size);

#endif
