/* Shared by the files of context/. */
#ifndef SG_CONTEXT_LIFETIME_H
#define SG_CONTEXT_LIFETIME_H

#include "softgpu/context/context.h"
#include "softgpu/device/device.h"

/* A context object with a handle, not yet alive, with one reference; NULL when out of memory. */
struct sg_context *sg_context_new(struct sg_device *device, bool primary);
/* Gives it default settings, a new id and a default stream, and makes it alive. On failure nothing
 * has changed. */
CUresult sg_context_begin(struct sg_context *context, unsigned flags, unsigned api_version);
/* Ends what belongs to it, after setting `alive` to false. Waits for its work. */
void sg_context_end(struct sg_context *context);

/* What a context reports of the flags it was made with: the flag for core dumps on demand is
 * replaced by the one it implies. */
unsigned sg_context_flags_kept(unsigned flags);
/* Context flags: true when every bit is known and at most one scheduling flag is set. */
bool sg_context_flags_valid(unsigned flags);

/* ---- stack.c: the calling thread's stack ----------------------------------------------------- */

/* Takes a reference. OUT_OF_MEMORY when the stack is full. */
CUresult sg_stack_push(struct sg_context *context);
/* The popped context, whose reference is now the caller's; NULL when the stack is empty. */
struct sg_context *sg_stack_pop(void);

/* ---- peer.c ---------------------------------------------------------------------------------- */

/* Forgets what this context may access and which contexts may access it. */
void sg_peers_context_end(struct sg_context *context);

#endif
