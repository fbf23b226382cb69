/* From cuInit to exit. */
#ifndef SG_ENTRY_LIFE_H
#define SG_ENTRY_LIFE_H

#include <stdbool.h>

/* cuInit has begun: locks and threads may exist. */
bool sg_life_begun(void);

#endif
