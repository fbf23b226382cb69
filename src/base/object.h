/*
 * The objects that the library hands out, and what is said when one is used after its end. Each
 * begins with an unsigned, the generation of base/fork.h in which it was made.
 */
#ifndef GM_BASE_OBJECT_H
#define GM_BASE_OBJECT_H

#include "base/error.h"

/* In place of a generation: the object has come to its end. */
#define GM_DESTROYED 0u

/* OK; FORKED when the object was made by a parent; INVALID_ARGUMENT when it was destroyed, or never
 * was one. `call` and the argument's `name` go into the message. */
gpumem_status gm_object_check(unsigned generation, const char *name, const char *call);

/*
 * Marks a malloced object as destroyed, and frees it when some more have been: until then the mark
 * can be read, and a use that comes too late be told. What the object points to is freed before.
 * Thread-safe, cannot fail.
 */
void gm_bury(void *object);

#endif
