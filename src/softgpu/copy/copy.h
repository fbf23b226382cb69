/* Copies and sets: boxes of bytes between addresses, checked at the call, moved by operations. */
#ifndef SG_COPY_COPY_H
#define SG_COPY_COPY_H

#include "softgpu/address/range.h"
#include "softgpu/array/array.h"
#include "softgpu/context/where.h"
#include "softgpu/stream/stream.h"

/* The kind of address that a parameter is declared to be. */
enum sg_role {
    SG_ROLE_HOST,   /* void *: host memory, or a unified address */
    SG_ROLE_DEVICE, /* CUdeviceptr of a typed copy: known to the driver */
    SG_ROLE_ANY,    /* CUdeviceptr of a copy that determines the kind itself */
    SG_ROLE_ARRAY   /* an array: checked when the place was determined */
};

/* As the device of a side: memory of a host pool that no device may access, copied by the CPU. */
#define SG_COPY_BY_CPU (-2)

/* One side of a copy: rows of bytes, `pitch` apart, in layers, `layer` apart. */
struct sg_side {
    /* For arrays in pieces the address is a linear offset into them (array/tiles.h). The check
     * fills in the rest. */
    struct sg_place at;
    size_t pitch, layer;
    enum sg_role role;
    /* In copies between contexts, the one named for this side; else NULL. */
    struct sg_context *named;
    const struct sg_tile_view *view; /* of arrays in pieces */
};

struct sg_box {
    struct sg_side to, from;
    size_t width, height, depth; /* bytes, rows, layers */
    const CUDA_MEMCPY3D *copy;   /* what was requested, for capture; NULL for one row */
};

/* A box of one row. */
struct sg_box sg_box_linear(CUdeviceptr to, enum sg_role to_role, CUdeviceptr from,
                            enum sg_role from_role, size_t size);
/* Looks the addresses up and checks that both sides can hold the box, as far as these show. */
CUresult sg_box_check(struct sg_box *box);

/* How long a call takes, and when it reads pageable memory. */
enum sg_sync_mode {
    SG_SYNC, /* cuMemcpy: returns when the host may continue */
    SG_ASYNC /* cuMemcpyAsync */
};
/*
 * Checks and queues the copy of a box. An empty copy succeeds after a check of the stream alone.
 * `handle` is NULL for synchronous copies. May block, helping, with the lock released.
 */
CUresult sg_copy(struct sg_box box, CUstream handle, enum sg_sync_mode mode);
/* SUCCESS unless the stream captures: copies between contexts cannot be captured, so the capture
 * ends. For an invalid stream, its error. */
CUresult sg_copy_refuse_capture(CUstream handle);
/* For copies that must be queued all or none: checks one for a stream of `context` and makes its
 * operation. With `now`, the source must be read before the call returns: it is read here if the
 * CPU can; otherwise *wait is set, and the caller must wait for the operation. Use sg_copy_discard
 * for an operation that will not be submitted. */
CUresult sg_copy_prepare(const struct sg_context *context, struct sg_box *box, bool now, bool *wait,
                         struct sg_op **op);
void sg_copy_discard(struct sg_op *op);
/* Queues a prepared copy; frees it on failure. */
CUresult sg_copy_submit(struct sg_stream *stream, struct sg_op *op);

/* A side of a copy as box descriptors specify it: (x, y, z) in rows of `pitch` bytes and layers of
 * `rows` rows; 0 for rows or layers without a gap. Adds the offset to the address in `side`;
 * INVALID_VALUE when the box does not fit its rows and layers. */
CUresult sg_side_in_rows(struct sg_side *side, const struct sg_box *box, const size_t offset[3],
                         size_t pitch, size_t rows);
/* A side of a copy in an array: (x, y, z) in bytes, rows and slices. INVALID_VALUE when there is no
 * such array, or the box exceeds it, or begins or ends inside an element. */
CUresult sg_side_in_array(struct sg_side *side, const struct sg_box *box, const size_t offset[3],
                          CUarray array);

/* ---- Work of graphs -------------------------------------------------------------------------- */

/* Told, without the lock, of bytes that copies and sets store, and then of a row that has moved, an
 * address of 0 being in an array. NULL: nobody. */
struct sg_copy_watch {
    void (*stored)(CUdeviceptr to, size_t size);
    void (*moved)(CUdeviceptr to, CUdeviceptr from, size_t size);
};
extern const struct sg_copy_watch *sg_copy_watch;

/* Whether a copy or set may become a node: the checks of the functions that queue it, except those
 * of the stream. An empty one may not. `promised` says whether a graph has yet to allocate the
 * memory, whose address then cannot be looked up. */
typedef bool sg_promised(CUdeviceptr address);
CUresult sg_copy_check_3d(CUcontext context, const CUDA_MEMCPY3D *copy, sg_promised *promised);
CUresult sg_set_check(const CUDA_MEMSET_NODE_PARAMS_v2 *set, sg_promised *promised);
/* The same, without checking what is at the address. */
CUresult sg_set_check_shape(const CUDA_MEMSET_NODE_PARAMS_v2 *set);
/* The operation of a node, for work of `context`. Where there is no memory (any more, or yet), the
 * operation faults when it runs. INVALID_VALUE for invalid parameters; OUT_OF_MEMORY. */
CUresult sg_copy_make_3d(struct sg_context *context, const CUDA_MEMCPY3D *copy, struct sg_op **op);
CUresult sg_set_make(struct sg_context *context, const CUDA_MEMSET_NODE_PARAMS_v2 *set,
                     struct sg_op **op);
/* A node's context; NULL if the handle does not name a live one. */
struct sg_context *sg_copy_node_context(CUcontext handle);
/* Whether work of `context` may copy those parts of the box that belong to a pool. */
bool sg_box_pools_open(const struct sg_context *context, const struct sg_box *box);
/* Finds where the sides of a box are, without checking them. */
void sg_box_look(struct sg_box *box);
struct sg_op *sg_copy_op(const struct sg_box *box);

/* The host bytes of `address` for an operation of `device`, where the memory is on `owner`. */
unsigned char *sg_copy_bytes(int device, int owner, CUdeviceptr address, size_t want,
                             unsigned rights, size_t *span);
/* The same for a store, which sg_object_spread must follow: the address may map an object. */
unsigned char *sg_store_bytes(int device, int owner, CUdeviceptr address, size_t want,
                              size_t *span);

#endif
