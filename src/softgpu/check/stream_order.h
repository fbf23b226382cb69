/*
 * Which operations of streams come before which, as the API says: by their stream, by events and
 * other tokens, by the rules of the default stream, and because the host has waited. What has only
 * happened to be complete does not count.
 */
#ifndef SG_CHECK_STREAM_ORDER_H
#define SG_CHECK_STREAM_ORDER_H

#include "softgpu/check/race.h"
#include "softgpu/stream/stream.h"

/* Once, with the lock; from then on all is kept. */
void sg_stream_order_begin(void);
/* Fills in all but the name, of an operation that has been queued; `after` is the caller's to free.
 * With the lock. False: no memory. */
bool sg_stream_order_of(const struct sg_op *op, struct sg_race_operation *operation);

#endif
