/* Graph memory, between graph_memory.c, graph_memory_pool.c and graph_memory_launch.c. */
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

/* Pages that blocks lie in: one block, or several of one launch that follow one another. */
struct sg_graph_run {
    struct sg_graph_chunk *chunk;
    size_t first, pages;
    unsigned refs;
    struct sg_graph_run *next; /* in a lane's list while a launch is prepared */
};

/* The address of an allocation node, for all its launches. */
struct sg_graph_block {
    struct sg_tree_node node; /* key: the address */
    size_t bytes, size;       /* asked for; of its pages */
    unsigned refs;            /* nodes of graphs and execs, and `left` */
    int device;
    unsigned devices; /* a bit for each that may read and write */

    /* What the host knows. */
    bool left;             /* allocated by a launch that did not free it */
    struct sg_range range; /* in the address map while left */
    bool will_be_left;     /* after the launch that is being prepared */
    uint64_t launch;       /* that it was last looked at for */

    /* What the device has come to. */
    struct sg_graph_run *run; /* its memory; NULL when unused */
    unsigned uses;            /* launches under way, and `left` until it is freed in order */
    uint64_t generation;      /* of the last allocation that was queued */
    uint64_t mapped;          /* whose memory is mapped; 0 for none */
};

/* Of the range of what a launch left. */
extern const struct sg_range_ops sg_graph_range_ops;

struct sg_graph_block *sg_graph_block_at(CUdeviceptr address);
void sg_graph_block_unref(struct sg_graph_block *block);

/* Memory for a block that has none, from the device's pool. */
CUresult sg_graph_block_fill(struct sg_graph_block *block);
/* One use less; the last one gives its memory back to the pool. */
void sg_graph_block_unuse(struct sg_graph_block *block);
/* Maps its memory at its address, as allocation `generation`; ends that allocation. */
void sg_graph_block_map(struct sg_graph_block *block, uint64_t generation);
void sg_graph_block_unmap(struct sg_graph_block *block, uint64_t generation);
/* In the address map, or not any more. */
void sg_graph_block_show(struct sg_graph_block *block);
void sg_graph_block_hide(struct sg_graph_block *block);

/* Bytes that the pool of a device holds. */
uint64_t sg_graph_memory_reserved(int device);

#endif
