/*
 * Objects that last until their test ends: the harness destroys them then, the last first, however
 * the test ended. A test that is about destroying makes its object itself. Children end with what
 * they have.
 */
#ifndef CONFORMANCE_DRIVER_OBJECTS_H
#define CONFORMANCE_DRIVER_OBJECTS_H

#include "gate.h"
#include <gpumem/driver.h>

#include <stddef.h>

CUstream new_stream(void);          /* does not block */
CUstream new_blocking_stream(void); /* keeps in order with the legacy default stream */
CUevent new_event(void);            /* takes no times */
CUevent new_timed_event(void);
CUevent new_event_with(unsigned flags);
CUdeviceptr new_memory(size_t size);
void *new_pinned(size_t size, unsigned flags);
void *new_bytes(size_t size);           /* pageable, zero */
CUcontext new_context(CUdevice device); /* is current */
CUmodule new_module(const void *image);
CUgraph new_graph(void);
CUgraphExec instantiate(CUgraph graph);
CUgraphExec instantiate_with(CUgraph graph, unsigned long long flags);
CUmemoryPool new_pool(const CUmemPoolProps *props);
CUarray new_array(const CUDA_ARRAY_DESCRIPTOR *descriptor);
CUarray new_array_3d(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);
struct gate new_gate(void);
struct gate hold(CUstream stream); /* a new gate that holds it */
/* Releases it, and waits for the stream's work. */
void gate_drain(struct gate *gate, CUstream stream);

/* For other objects: destroy(object) when the test ends. */
void at_end(void (*destroy)(void *object), void *object);
/* It is destroyed already. */
void forget(const void *object);
/* Before the test ends, of those from above. */
void destroy_graph(CUgraph graph);
void destroy_exec(CUgraphExec exec);
void destroy_objects(void);

#endif
