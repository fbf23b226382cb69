/* What copies and sets do to areas, and copies of what nothing has written to the host. */
#ifndef SG_CHECK_COPIES_H
#define SG_CHECK_COPIES_H

#include <stdbool.h>

/* `init`: copies to the host are looked at. */
void sg_copies_begin(bool init);

#endif
