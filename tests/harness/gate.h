/*
 * A gate holds a stream: work queued after gate_hold does not begin before gate_release, so that
 * states between submission and completion can be examined without sleeping. The same on every
 * driver.
 *
 * A folder's harness chooses the driver once by gate_use. All other calls except gate_release need
 * a current context. A driver call that fails fails the test.
 */
#ifndef TESTS_GATE_H
#define TESTS_GATE_H

#include <gpumem/driver.h>

#include <stdbool.h>
#include <stdint.h>

struct gate {
    uint32_t *flag;  /* pinned; 1 when released */
    CUstream stream; /* one of its own, for harnesses that use it; else NULL */
};

void gate_use(const gpumem_driver_api *driver);

void gate_make(struct gate *gate);
/* Also closes it: a gate may be held again after its release. */
void gate_hold(struct gate *gate, CUstream stream);
void gate_release(struct gate *gate);
void gate_free(struct gate *gate); /* releases it first; the stream must be done with it */

/* All that were made and not freed; may be called from a signal handler. Returns whether one was
 * closed. */
bool gate_release_all(void);

#endif
