#ifndef SG_ENGINE_QUAD_H
#define SG_ENGINE_QUAD_H

#include "softgpu/engine/inside.h"

/* Addresses as for loads and stores. list: places of the low and of the high words; for atomic
 * operations those of the result, of b and of c. choice: EXCH or CAS. */
sg_run sg_run_quad_load, sg_run_quad_store, sg_run_quad_atomic;

#endif
