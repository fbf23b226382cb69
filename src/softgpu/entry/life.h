/* From cuInit to exit. */
#ifndef SG_ENTRY_LIFE_H
#define SG_ENTRY_LIFE_H

#include <stdbool.h>

#define SG_DRIVER_VERSION 13000 /* what functions.def describes */

/* cuInit has begun: locks and threads may exist. */
bool sg_life_begun(void);

#endif
