#include "harness.h"

#include <pthread.h>

struct object {
    void (*destroy)(void *object);
    void *object;
};
static struct object *objects;
static size_t count, room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void at_end(void (*destroy)(void *object), void *object) {
    pthread_mutex_lock(&lock);
    if (count == room) {
        room = 2 * room + 64;
        objects = realloc(objects, room * sizeof *objects);
    }
    bool kept = objects != NULL;
    if (kept)
        objects[count++] = (struct object){destroy, object};
    pthread_mutex_unlock(&lock);
    assert_true(kept);
}

void forget(const void *object) {
    pthread_mutex_lock(&lock);
    for (size_t i = count; i-- > 0;)
        if (objects[i].object == object) {
            objects[i].destroy = NULL;
            break;
        }
    pthread_mutex_unlock(&lock);
}

/* One that cannot be destroyed fails the test, and is not tried again. */
void destroy_objects(void) {
    if (count > 0)
        OK_CU(cu.cuCtxSynchronize());
    while (count > 0) {
        struct object last = objects[--count];
        if (last.destroy)
            last.destroy(last.object);
    }
}

/* ---- Each kind ------------------------------------------------------------------------------ */

static void destroy_stream(void *stream) {
    OK_CU(cu.cuStreamDestroy_v2(stream));
}

static CUstream stream_with(unsigned flags) {
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, flags);
    at_end(destroy_stream, stream);
    return stream;
}

CUstream new_stream(void) {
    return stream_with(CU_STREAM_NON_BLOCKING);
}

CUstream new_blocking_stream(void) {
    return stream_with(CU_STREAM_DEFAULT);
}

static void destroy_event(void *event) {
    OK_CU(cu.cuEventDestroy_v2(event));
}

CUevent new_event_with(unsigned flags) {
    CUevent event = MADE_CU(CUevent, cuEventCreate, flags);
    at_end(destroy_event, event);
    return event;
}

CUevent new_event(void) {
    return new_event_with(CU_EVENT_DISABLE_TIMING);
}

CUevent new_timed_event(void) {
    return new_event_with(CU_EVENT_DEFAULT);
}

static void free_memory(void *memory) {
    OK_CU(cu.cuMemFree_v2((CUdeviceptr)(uintptr_t)memory));
}

CUdeviceptr new_memory(size_t size) {
    CUdeviceptr memory = MADE_CU(CUdeviceptr, cuMemAlloc_v2, size);
    at_end(free_memory, (void *)(uintptr_t)memory);
    return memory;
}

static void free_pinned(void *memory) {
    OK_CU(cu.cuMemFreeHost(memory));
}

void *new_pinned(size_t size, unsigned flags) {
    void *memory = MADE_CU(void *, cuMemHostAlloc, size, flags);
    at_end(free_pinned, memory);
    return memory;
}

/* Destroying the current context takes it from the thread's stack of them. */
static void destroy_context(void *context) {
    OK_CU(cu.cuCtxSetCurrent(context));
    OK_CU(cu.cuCtxDestroy_v2(context));
    OK_CU(cu.cuCtxSetCurrent(ctx));
}

void *new_bytes(size_t size) {
    void *bytes = calloc(1, size);
    assert_non_null(bytes);
    at_end(free, bytes);
    return bytes;
}

CUcontext new_context(CUdevice device) {
    CUcontext context = MADE_CU(CUcontext, cuCtxCreate_v2, 0, device);
    at_end(destroy_context, context);
    return context;
}

static void unload_module(void *module) {
    OK_CU(cu.cuModuleUnload(module));
}

CUmodule new_module(const void *image) {
    CUmodule module = MADE_CU(CUmodule, cuModuleLoadData, image);
    at_end(unload_module, module);
    return module;
}

void destroy_graph(CUgraph graph) {
    forget(graph);
    OK_CU(cu.cuGraphDestroy(graph));
}

static void destroy_graph_at_end(void *graph) {
    OK_CU(cu.cuGraphDestroy(graph));
}

CUgraph new_graph(void) {
    CUgraph graph = MADE_CU(CUgraph, cuGraphCreate, 0);
    at_end(destroy_graph_at_end, graph);
    return graph;
}

void destroy_exec(CUgraphExec exec) {
    forget(exec);
    OK_CU(cu.cuGraphExecDestroy(exec));
}

static void destroy_exec_at_end(void *exec) {
    OK_CU(cu.cuGraphExecDestroy(exec));
}

CUgraphExec instantiate_with(CUgraph graph, unsigned long long flags) {
    CUgraphExec exec = MADE_CU(CUgraphExec, cuGraphInstantiateWithFlags, graph, flags);
    at_end(destroy_exec_at_end, exec);
    return exec;
}

CUgraphExec instantiate(CUgraph graph) {
    return instantiate_with(graph, 0);
}

static void destroy_pool(void *pool) {
    OK_CU(cu.cuMemPoolDestroy(pool));
}

CUmemoryPool new_pool(const CUmemPoolProps *props) {
    CUmemoryPool pool = MADE_CU(CUmemoryPool, cuMemPoolCreate, props);
    at_end(destroy_pool, pool);
    return pool;
}

static void destroy_array(void *array) {
    OK_CU(cu.cuArrayDestroy(array));
}

CUarray new_array(const CUDA_ARRAY_DESCRIPTOR *descriptor) {
    CUarray array = MADE_CU(CUarray, cuArrayCreate_v2, descriptor);
    at_end(destroy_array, array);
    return array;
}

CUarray new_array_3d(const CUDA_ARRAY3D_DESCRIPTOR *descriptor) {
    CUarray array = MADE_CU(CUarray, cuArray3DCreate_v2, descriptor);
    at_end(destroy_array, array);
    return array;
}

/* ---- Gates ---------------------------------------------------------------------------------- */

static void free_gate(void *flag) {
    gate_free(&(struct gate){.flag = flag});
}

struct gate new_gate(void) {
    struct gate gate;
    gate_make(&gate);
    at_end(free_gate, gate.flag);
    return gate;
}

struct gate hold(CUstream stream) {
    struct gate gate = new_gate();
    gate_hold(&gate, stream);
    return gate;
}

void gate_drain(struct gate *gate, CUstream stream) {
    gate_release(gate);
    OK_CU(cu.cuStreamSynchronize(stream));
}
