/*
 * Executable graphs. Everything here wants the lock.
 *
 * An exec is a copy of a graph in topological order, cut into lanes. A lane is a hidden stream that
 * the exec owns: nodes that follow one another lie in one lane, and a dependency between lanes is a
 * token. A launch queues a marker in the stream (the gate that all roots wait for), the nodes'
 * operations in their lanes, and a marker in the stream that waits for the end of every lane. So
 * graphs are scheduled, helped, faulted and drained by stream/ like any other work.
 */
#ifndef SG_GRAPH_EXEC_H
#define SG_GRAPH_EXEC_H

#include "softgpu/graph/graph.h"
#include "softgpu/stream/stream.h"

struct sg_exec;

struct sg_exec *sg_exec_get(CUgraphExec handle);

/*
 * Makes the operation of a node that does one thing on the device: copy, set, host function, batch
 * of memory operations, semaphore signal or wait. The parameters must outlive the operation. Types
 * that are not one operation (child, conditional, memory, event, empty) are exec's own matter, and
 * kernels answer NOT_SUPPORTED.
 */
CUresult sg_work_make(struct sg_context *context, const CUgraphNodeParams *params,
                      struct sg_op **op);

#endif
