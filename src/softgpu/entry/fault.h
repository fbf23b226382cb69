/* One armed fault, as softgpu.h describes it. */
#ifndef SG_ENTRY_FAULT_H
#define SG_ENTRY_FAULT_H

#include "softgpu/entry/entry.h"

#include <gpumem/softgpu.h>
#include <stddef.h>
#include <stdint.h>

/* `function` is an exported name or "*". False when it is unknown or the mode is invalid. n 0 means
 * every call. */
bool sg_fault_arm(const char *function, uint64_t n, int error, softgpu_fault_mode mode);
/* `function` as for sg_fault_parse. */
bool sg_fault_arm_name(const char *function, uint64_t n, int error, softgpu_fault_mode mode);
/* How many calls of the fault's functions there were since it was armed, until it was disarmed. */
uint64_t sg_fault_reached(void);
/* From "function:n:error:mode". `function` is an API name, which means all its versions and twins;
 * an exported name; "=" and an exported name, where a version has the plain name; "*"; or a
 * function of the runtime's. n may be "*", and `error` one of the driver's or of the runtime's.
 * False, with the part it does not understand in `why`. */
bool sg_fault_parse(const char *text, char *why, size_t size);
/* Whether sg_fault_parse would arm it. */
bool sg_fault_understood(const char *text, char *why, size_t size);
/* Whether the fault armed by sg_fault_parse is still armed and no call has reached it; then `text`
 * says so. */
bool sg_fault_missed(char *text, size_t size);
/* Returns how often the fault fired. */
uint64_t sg_fault_disarm(void);

/* Counts a call. False when *result answers it; otherwise call->fault_after may be set. */
bool sg_fault_enter(struct sg_call *call, bool counted, CUresult *result);

/* The same for a call of the runtime's. *after: the error that replaces success when it returns, or
 * 0. */
bool sg_fault_enter_runtime(const char *function, int *answer, int *after);

/* A call is about to return this error, which was not its own: if a device that returns it has
 * stopped, so does queued work. */
void sg_fault_shows(CUresult error);

/* Called around fork, so that a child never finds the fault's own lock held. */
void sg_fault_fork_prepare(void);
void sg_fault_fork_done(void);

#endif
