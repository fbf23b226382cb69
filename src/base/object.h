/*
 * The objects that the library hands out, and the detection of their use after destruction. Each
 * begins with an unsigned, the generation of base/fork.h in which it was made.
 */
#ifndef GM_BASE_OBJECT_H
#define GM_BASE_OBJECT_H

#include "base/error.h"

/* In place of a generation: the object was destroyed. */
#define GM_DESTROYED 0u

/* OK; FORKED if the object was made by a parent; INVALID_ARGUMENT if it was destroyed, or never was
 * one. The message names `call` and the argument `name`. */
gpumem_status gm_object_check(unsigned generation, const char *name, const char *call);

/*
 * Marks a malloced object as destroyed, and frees it only after some more have been destroyed:
 * until then the mark can be read and a late use detected. Free what the object points to first.
 * Thread-safe, cannot fail.
 */
void gm_bury(void *object);

#endif
