/* From cuInit to exit. */
#ifndef SG_ENTRY_LIFE_H
#define SG_ENTRY_LIFE_H

#include <stdbool.h>

#define SG_DRIVER_VERSION 13000 /* what functions.def describes */

/* cuInit has begun: locks and threads may exist. */
bool sg_life_begun(void);

/* Tells a leak report, if it has lines, and frees it. `when` as in "at exit". With SOFTGPU_LEAKS.
 */
void sg_leaks_say(char *text, const char *when);

#endif
