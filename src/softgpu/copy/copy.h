/* Copies and sets: boxes of bytes between addresses, checked at the call, moved as operations. */
#ifndef SG_COPY_COPY_H
#define SG_COPY_COPY_H

#include "softgpu/address/range.h"
#include "softgpu/array/array.h"
#include "softgpu/context/where.h"
#include "softgpu/stream/stream.h"

/* What kind of address a parameter is declared to be. */
enum sg_role {
    SG_ROLE_HOST,   /* void *: host memory, or a unified address */
    SG_ROLE_DEVICE, /* CUdeviceptr of a typed copy: known to the driver */
    SG_ROLE_ANY,    /* CUdeviceptr of a copy that finds out by itself */
    SG_ROLE_ARRAY   /* an array: checked when the place was found */
};

/* For the device of a side: memory of a host pool that no device may touch, copied by the CPU. */
#define SG_COPY_BY_CPU (-2)

/* One side of a copy: rows of bytes, `pitch` apart, in layers, `layer` apart. */
struct sg_side {
    /* Of arrays in pieces the address is a linear offset in them (array/tiles.h). The check finds
     * out the rest of it. */
    struct sg_place at;
    size_t pitch, layer;
    enum sg_role role;
    /* In copies between contexts the one that was named for this side; else NULL. */
    const struct sg_context *named;
    const struct sg_tile_view *view; /* of arrays in pieces */
};

struct sg_box {
    struct sg_side to, from;
    size_t width, height, depth; /* bytes, rows, layers */
    const CUDA_MEMCPY3D *copy;   /* what was asked for, for capture; NULL for one row */
};

/* A box of one row. */
struct sg_box sg_box_linear(CUdeviceptr to, enum sg_role to_role, CUdeviceptr from,
                            enum sg_role from_role, size_t size);
/* Whether both sides can hold the box, as far as the addresses tell; looks them up. */
CUresult sg_box_check(struct sg_box *box);

/* How long a call stays, and when it reads pageable memory. */
enum sg_sync_mode {
    SG_SYNC, /* cuMemcpy: returns when the host may go on */
    SG_ASYNC /* cuMemcpyAsync */
};
/*
 * Checks and queues the copy of a box. An empty one succeeds, and only the stream is looked at.
 * `handle` is NULL for synchronous copies. May block, helping, with the lock released.
 */
CUresult sg_copy(struct sg_box box, CUstream handle, enum sg_sync_mode mode);
/* SUCCESS unless the stream captures, which copies between contexts do not stand: then the capture
 * ends. For a stream that is none, its error. */
CUresult sg_copy_refuse_capture(CUstream handle);
/* For copies that must be queued together or not at all: checks one, for a stream of `context`, and
 * makes its operation. With `now` the source is to be read before the call returns: that is done
 * here where the CPU can, and else *wait is set, for a caller that waits for the operation.
 * sg_copy_discard for one that will not be submitted. */
CUresult sg_copy_prepare(const struct sg_context *context, struct sg_box *box, bool now, bool *wait,
                         struct sg_op **op);
void sg_copy_discard(struct sg_op *op);
/* Queues a prepared copy, or frees it. */
CUresult sg_copy_submit(struct sg_stream *stream, struct sg_op *op);

/* The side of a copy as the descriptors of boxes give it: (x, y, z) in rows of `pitch` bytes and
 * layers of `rows` rows; 0 for rows or layers without a gap. Adds the offset to the address that
 * `side` holds; INVALID_VALUE when the box does not fit its rows and layers. */
CUresult sg_side_in_rows(struct sg_side *side, const struct sg_box *box, const size_t offset[3],
                         size_t pitch, size_t rows);
/* The side of a copy in an array: (x, y, z) in bytes, rows and slices. INVALID_VALUE when there is
 * no such array, the box leaves it, or begins or ends inside an element. */
CUresult sg_side_in_array(struct sg_side *side, const struct sg_box *box, const size_t offset[3],
                          CUarray array);

/* ---- Work of graphs -------------------------------------------------------------------------- */

/* Whether a copy or set may become a node: what the functions that queue it check, apart from the
 * stream. An empty one may not. Where a graph is yet to allocate the memory, `promised` says so,
 * and the address cannot be looked at. */
typedef bool sg_promised(CUdeviceptr address);
CUresult sg_copy_check_3d(CUcontext context, const CUDA_MEMCPY3D *copy, sg_promised *promised);
CUresult sg_set_check(const CUDA_MEMSET_NODE_PARAMS_v2 *set, sg_promised *promised);
/* The same without a look at what lies at the address. */
CUresult sg_set_check_shape(const CUDA_MEMSET_NODE_PARAMS_v2 *set);
/* The operation of a node, for work of `context`. Where memory is not (any more, or not yet), the
 * operation faults when it runs. INVALID_VALUE for what is wrong by itself; OUT_OF_MEMORY. */
CUresult sg_copy_make_3d(struct sg_context *context, const CUDA_MEMCPY3D *copy, struct sg_op **op);
CUresult sg_set_make(struct sg_context *context, const CUDA_MEMSET_NODE_PARAMS_v2 *set,
                     struct sg_op **op);
/* A node's context; NULL when it names none that lives. */
const struct sg_context *sg_copy_node_context(CUcontext handle);
/* May work of `context` copy what of the box is a pool's? */
bool sg_box_pools_open(const struct sg_context *context, const struct sg_box *box);
/* A box that is not checked, only looked at: where its sides are. */
void sg_box_look(struct sg_box *box);
struct sg_op *sg_copy_op(const struct sg_box *box);

/* The host bytes behind `address` for an operation of `device`, where the memory is on `owner`. */
unsigned char *sg_copy_bytes(int device, int owner, CUdeviceptr address, size_t want,
                             unsigned rights, size_t *span);
/* The same for a store, which sg_object_spread must follow: an object may be mapped at the address.
 */
unsigned char *sg_store_bytes(int device, int owner, CUdeviceptr address, size_t want,
                              size_t *span);

#endif
