/*
 * The order of operations that the API makes: by their stream, by events and other tokens, by the
 * rules of the default stream, and by waits of the host. It does not count that an operation
 * happened to be complete.
 */
#ifndef SG_CHECK_STREAM_ORDER_H
#define SG_CHECK_STREAM_ORDER_H

#include "softgpu/check/race.h"
#include "softgpu/stream/stream.h"

/* Once, with the lock; from then on everything is recorded. */
void sg_stream_order_begin(void);
/* Fills in everything but the name, for an operation that has been queued; the caller frees
 * `after`. With the lock. False: out of memory. */
bool sg_stream_order_of(const struct sg_op *op, struct sg_race_operation *operation);

#endif
