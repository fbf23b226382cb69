/* What a launch requests, by any API. Everything here requires the lock. */
#ifndef SG_LAUNCH_LAUNCH_H
#define SG_LAUNCH_LAUNCH_H

#include "softgpu/module/module.h"
#include "softgpu/stream/stream.h"

#define SG_PARAMETER_ROOM 32764u /* bytes of parameters, from compute capability 7.0 */

/* Blocks of a cluster; zeros if none is requested. */
struct sg_cluster {
    bool given; /* by an attribute of the launch */
    unsigned size[3];
};

/* When a kernel may begin before what precedes it in its stream or lane has ended. */
enum sg_early {
    SG_EARLY_NOT,
    SG_EARLY_TRIGGERED, /* once each block of the previous kernel has released it, or has ended */
    SG_EARLY_BEGUN,     /* once all blocks of that kernel have begun */
};

struct sg_conditions;

struct sg_launch {
    unsigned grid[3], block[3];
    unsigned shared;
    CUstream stream;
    void **params, **extra;
    CUlaunchAttribute *attributes; /* of a captured launch one is written to */
    unsigned attribute_count;
    bool cooperative; /* requested by the function called; an attribute may request it too */
    enum sg_early early;
    bool has_priority; /* instead of the stream's */
    int priority;
    struct sg_conditions *conditions; /* of the graph whose launch this is, or NULL */
    bool never_captured;              /* cuLaunchGridAsync does not become a node of a capture */
};

/* cuInit's work for this chapter. */
CUresult sg_launches_init(void);
/* Whether CUDA_LAUNCH_BLOCKING makes launches wait for their kernels. Constant after cuInit. */
bool sg_launches_block(void);

/* Checks the arguments as an H200 does. A launch in a capturing stream becomes a node. Any other is
 * run (launch_run.h), or with kernels turned off refused with NOT_SUPPORTED and one line in the log
 * that says what the image was. */
CUresult sg_launch(CUfunction handle, const struct sg_launch *launch);

/* The checks of arguments alone: parameters, shape, attributes. */
CUresult sg_launch_check(const struct sg_function *function, const struct sg_launch *launch);
/* All blocks of a cooperative launch must be resident at the same time:
 * COOPERATIVE_LAUNCH_TOO_LARGE. */
CUresult sg_launch_check_cooperative(const struct sg_function *function,
                                     const struct sg_launch *launch);
/* The cluster that attributes or function ask for, and the grid: INVALID_CLUSTER_SIZE. */
CUresult sg_launch_check_cluster(const struct sg_function *function,
                                 const struct sg_launch *launch);
/* With kernels turned off: logs it once for each function, and returns NOT_SUPPORTED. */
CUresult sg_launch_refuse(struct sg_function *function);

/* Whether grid, block and dynamic shared memory are within the limits of device and function. The
 * resulting number of threads is a separate check, answered differently for a launch and a node. */
bool sg_launch_fits(const struct sg_function *function, const unsigned grid[3],
                    const unsigned block[3], unsigned shared);
/* Whether a block has the shape that the function requires (.reqntid). */
bool sg_launch_as_required(const struct sg_function *function, const unsigned block[3]);

/* launch_attributes.c: the cluster that the attributes of a launch request. */
CUresult sg_cluster_read(const CUlaunchAttribute *attributes, unsigned count,
                         struct sg_cluster *cluster);
/* Whether function and device allow the cluster for a grid; else INVALID_CLUSTER_SIZE. If none was
 * given, fills in the one that the function requires. */
CUresult sg_cluster_check(const struct sg_function *function, const unsigned grid[3],
                          struct sg_cluster *cluster);
/* Checks the values of the attributes, except clusters; COOPERATIVE sets *cooperative. */
CUresult sg_attributes_check(const CUlaunchAttribute *attributes, unsigned count,
                             bool *cooperative);

/* The priority that the attributes request, clamped to the valid range; false: they request
 * none. */
bool sg_attributes_priority(const CUlaunchAttribute *attributes, unsigned count, int *priority);

struct sg_chapter;
extern const struct sg_chapter sg_launch_chapter;

#endif
