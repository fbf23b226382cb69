/*
 * Every kind of GPU memory, on NVIDIA's driver or a software one. docs/api-tour.md shows it in use.
 * The driver API itself is in gpumem/driver.h; softgpu's controls are in gpumem/softgpu.h.
 */
#ifndef GPUMEM_GPUMEM_H
#define GPUMEM_GPUMEM_H

#include <gpumem/buffer.h>
#include <gpumem/caching.h>
#include <gpumem/connect.h>
#include <gpumem/copy.h>
#include <gpumem/dlpack.h>
#include <gpumem/foreign.h>
#include <gpumem/graph_memory.h>
#include <gpumem/layout.h>
#include <gpumem/library.h>
#include <gpumem/load.h>
#include <gpumem/managed.h>
#include <gpumem/mapped.h>
#include <gpumem/mapped_store.h>
#include <gpumem/pinned.h>
#include <gpumem/pool.h>
#include <gpumem/pool_interop.h>
#include <gpumem/removed.h>
#include <gpumem/resource.h>
#include <gpumem/ring.h>
#include <gpumem/share.h>
#include <gpumem/snapshot.h>
#include <gpumem/stats.h>
#include <gpumem/status.h>
#include <gpumem/types.h>
#include <gpumem/view.h>
#include <gpumem/virtual.h>
#include <gpumem/vmm.h>
#include <gpumem/wrappers.h>

#endif
