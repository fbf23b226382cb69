/* Memory, copies, streams, pools, sharing. Inputs name chapters by number: this list stays. */
#include "world.h"

static const struct calls *const chapters[] = {&context_calls, &memory_calls, &vmm_calls,
                                               &pool_calls,    &copy_calls,   &stream_calls,
                                               &stream_calls,  &share_calls};
const struct target target = {chapters, sizeof chapters / sizeof chapters[0], DESCRIPTORS + 1,
                              NULL};
