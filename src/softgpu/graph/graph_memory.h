/* Graph memory: shared by graph_memory.c, graph_memory_pool.c and graph_memory_launch.c. */
#ifndef SG_GRAPH_GRAPH_MEMORY_H
#define SG_GRAPH_GRAPH_MEMORY_H

#include "softgpu/address/range.h"
#include "softgpu/graph/exec.h"

#define SG_GRAPH_STEP ((size_t)32 << 20) /* pools grow by multiples of this, as on H200 */

/* Physical memory of a device's pool for graphs, cut into runs of pages. */
struct sg_graph_chunk {
    struct sg_graph_chunk *next;
    struct sg_phys *phys;
    size_t pages, taken;
    bool *in_use; /* by page */
};

/* Pages that contain blocks: one block, or several successive ones of one launch. */
struct sg_graph_run {
    struct sg_graph_chunk *chunk;
    size_t first, pages;
    unsigned refs;
    struct sg_graph_run *next; /* in a lane's list while a launch is prepared */
};

/* The address of an allocation node, the same in all its launches. */
struct sg_graph_block {
    struct sg_tree_node node; /* key: the address */
    size_t bytes, size;       /* requested; total of its pages */
    unsigned refs;            /* held by nodes of graphs and execs, and by `left` */
    int device;
    unsigned devices; /* bit mask of devices with read and write access */

    /* The host's view. */
    bool left;             /* allocated by a launch that did not free it */
    struct sg_range range; /* in the address map while `left` */
    bool will_be_left;     /* after the launch being prepared */
    uint64_t launch;       /* the launch for which it was last examined */

    /* The device's view. */
    struct sg_graph_run *run; /* its memory; NULL when unused */
    unsigned uses;            /* launches in progress, and `left` until it is freed in order */
    uint64_t generation;      /* of the last queued allocation */
    uint64_t mapped;          /* generation whose memory is mapped; 0 for none */
};

/* The block in use around an address, for bounds of kernels: what is mapped decides. */
bool sg_graph_block_extent(CUdeviceptr address, uint64_t *low, uint64_t *length);

/* For the ranges that launches left allocated. */
extern const struct sg_range_ops sg_graph_range_ops;

struct sg_graph_block *sg_graph_block_at(CUdeviceptr address);
void sg_graph_block_unref(struct sg_graph_block *block);

/* Gives a block without memory some from the device's pool. */
CUresult sg_graph_block_fill(struct sg_graph_block *block);
/* Drops one use; the last one returns its memory to the pool. */
void sg_graph_block_unuse(struct sg_graph_block *block);
/* Map its memory at its address as allocation `generation`, and end that allocation. */
void sg_graph_block_map(struct sg_graph_block *block, uint64_t generation);
void sg_graph_block_unmap(struct sg_graph_block *block, uint64_t generation);
/* Add it to the address map, and remove it. */
void sg_graph_block_show(struct sg_graph_block *block);
void sg_graph_block_hide(struct sg_graph_block *block);

/* Bytes held by the pool of a device. */
uint64_t sg_graph_memory_reserved(int device);

#endif
