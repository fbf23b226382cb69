/* The values of the conditional handles in one launch of a graph, which its kernels set. */
#ifndef SG_LAUNCH_DEVICE_CONDITIONS_H
#define SG_LAUNCH_DEVICE_CONDITIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sg_conditions;

/* With one reference, all values 0; NULL: out of memory. References are counted with the lock. */
struct sg_conditions *sg_conditions_new(size_t count);
struct sg_conditions *sg_conditions_ref(struct sg_conditions *conditions); /* may be NULL */
void sg_conditions_unref(struct sg_conditions *conditions);                /* may be NULL */

/* Handles are numbered from 1. From any thread, without the lock. False: there is no such
 * handle. */
bool sg_conditions_set(struct sg_conditions *conditions, uint64_t handle, unsigned value);
unsigned sg_conditions_value(const struct sg_conditions *conditions, uint64_t handle);

#endif
