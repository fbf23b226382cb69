/*
 * gpumem for C++20 and later: owning handles, named options, failures as exceptions or as values.
 * Only this header and the C library are needed. docs/cpp.md shows it in use.
 *
 * A member or function `x` does what `gpumem_x` of the C interface does. The C header has the
 * contract: units, errors, thread-safety, blocking, driver calls; these headers document only the
 * differences. C functions that cannot fail and take no handle (gpumem_status_name, gpumem_set_log,
 * ...) are used directly, and so are the C enumerators and result structs.
 */
#ifndef GPUMEM_GPUMEM_HPP
#define GPUMEM_GPUMEM_HPP

#include <gpumem/cpp/buffer.hpp>
#include <gpumem/cpp/capture.hpp>
#include <gpumem/cpp/connect.hpp>
#include <gpumem/cpp/device.hpp>
#include <gpumem/cpp/dlpack.hpp>
#include <gpumem/cpp/error.hpp>
#include <gpumem/cpp/foreign.hpp>
#include <gpumem/cpp/graph_memory.hpp>
#include <gpumem/cpp/handle.hpp>
#include <gpumem/cpp/layout.hpp>
#include <gpumem/cpp/load.hpp>
#include <gpumem/cpp/managed.hpp>
#include <gpumem/cpp/mapped.hpp>
#include <gpumem/cpp/mapped_store.hpp>
#include <gpumem/cpp/options.hpp>
#include <gpumem/cpp/pool.hpp>
#include <gpumem/cpp/resource.hpp>
#include <gpumem/cpp/ring.hpp>
#include <gpumem/cpp/share.hpp>
#include <gpumem/cpp/snapshot.hpp>
#include <gpumem/cpp/stream.hpp>
#include <gpumem/cpp/vmm.hpp>
#include <gpumem/cpp/wrappers.hpp>
#include <gpumem/gpumem.h>

#endif
