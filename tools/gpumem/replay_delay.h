/* Streams that are behind the host, as a GPU's are: each free passes only some operations later. */
#ifndef CLI_REPLAY_DELAY_H
#define CLI_REPLAY_DELAY_H

#include <gpumem/gpumem.h>
#include <stddef.h>
#include <stdint.h>

struct replay_delay;

/* For `streams` streams, each `behind` operations behind. Returns NULL with gpumem_last_error set.
 * The device's context is current until the end. */
struct replay_delay *replay_delay_begin(gpumem_device *device, uint64_t behind, size_t streams);
/* Before each operation, in order; `number` is that of `stream`. */
gpumem_status replay_delay_operation(struct replay_delay *delay, CUstream stream, size_t number);
/* Lets all streams pass. */
void replay_delay_release(struct replay_delay *delay);
void replay_delay_end(struct replay_delay *delay);

#endif
