#ifndef SG_ENTRY_SETTINGS_H
#define SG_ENTRY_SETTINGS_H

#include <stddef.h>

/* Checks the environment as it is now. Writes a line for each value that is not understood, at most
 * `size` bytes including the terminator; returns their number. Changes nothing, except that the
 * file of SOFTGPU_TRACE exists afterwards. */
int sg_settings_check(char *text, size_t size);

#endif
