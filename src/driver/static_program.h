/* Programs that no driver can be loaded into. */
#ifndef GM_DRIVER_STATIC_PROGRAM_H
#define GM_DRIVER_STATIC_PROGRAM_H

#include <stdbool.h>

/*
 * Whether the program has its own libc in it and was started without the dynamic loader (gcc
 * -static, -static-pie). dlopen then brings a second libc that was never initialised for this
 * thread: a driver's thread-local variables and locks are at addresses that do not exist.
 */
bool gm_program_is_static(void);

#endif
