/*
 * User objects: their reference counts and destructors.
 *
 * On an H200 a destructor runs in the thread whose call released the last reference, before that
 * call returns. Here it runs at the end of the call, when nothing of the caller's is at risk: see
 * sg_user_objects_run. References released outside any call (a worker has finished the last launch
 * of a destroyed exec) are left to a dedicated thread, because an object belongs to no stream and
 * may end without a context.
 */
#include "softgpu/graph/user_object.h"

#include "base/thread.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/config.h"
#include "softgpu/graph/graph.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

struct sg_user_object {
    uint64_t handle;
    uint64_t owned; /* references of the application */
    uint64_t held;  /* references of graphs and execs */
    CUhostFn destroy;
    void *data;
    struct sg_user_object *next; /* list of those whose destructor has yet to run */
};

static struct sg_user_object *get(CUuserObject handle) {
    return sg_handle_get(SG_KIND_USER_OBJECT, SG_HANDLE_VALUE(handle));
}

/* ---- Destructors ---------------------------------------------------------------------------- */

struct queue {
    struct sg_user_object *first, **last;
};

static void put(struct queue *queue, struct sg_user_object *object) {
    object->next = NULL;
    if (!queue->first)
        queue->last = &queue->first;
    *queue->last = object;
    queue->last = &object->next;
}

unsigned sg_user_objects_ended;
static _Thread_local struct queue ended_here;
static struct queue ended_elsewhere;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static bool thread_runs;

/* The lock is released while the application's function runs. */
static void run_first(struct queue *queue) {
    struct sg_user_object *object = queue->first;
    if (!object)
        return;
    queue->first = object->next;
    sg_call_out(true, object->destroy, object->data);
    free(object);
}

void sg_user_objects_run(void) {
    while (ended_here.first) {
        sg_user_objects_ended--;
        run_first(&ended_here);
    }
}

static void *run_destructors(void *unused) {
    (void)unused;
    prctl(PR_SET_NAME, "softgpu-objects");
    sg_lock();
    for (;;) {
        while (!ended_elsewhere.first && !atomic_load(&sg_exiting))
            sg_wait(&ended, 0);
        if (atomic_load(&sg_exiting))
            break;
        run_first(&ended_elsewhere);
    }
    sg_unlock();
    /* What the destructors use may be gone: the thread ends with the process. */
    for (;;)
        pause();
    return NULL;
}

static bool start_thread(void) {
    if (!thread_runs)
        thread_runs = gm_thread_start(NULL, 0, run_destructors, NULL) == 0;
    return thread_runs;
}

/* If there is no thread, it remains in the queue for one that a later call may start. */
static void end_when_unused(struct sg_user_object *object) {
    if (object->owned || object->held)
        return;
    sg_handle_drop(SG_KIND_USER_OBJECT, object->handle);
    if (sg_thread()->in_call) {
        sg_user_objects_ended++;
        put(&ended_here, object);
        return;
    }
    put(&ended_elsewhere, object);
    if (start_thread())
        pthread_cond_signal(&ended);
    else
        sg_log(SG_LOG_ERROR, "no thread for the destructors of user objects");
}

/* ---- References of graphs ------------------------------------------------------------------- */

bool sg_held_objects_copy(struct sg_held_object **to, const struct sg_held_object *from) {
    struct sg_held_object *made = NULL, **end = &made;
    for (const struct sg_held_object *entry = from; entry; entry = entry->next) {
        struct sg_held_object *copy = malloc(sizeof *copy);
        if (!copy) {
            sg_held_objects_drop(&made);
            return false;
        }
        *copy = (struct sg_held_object){.object = entry->object, .count = entry->count};
        copy->object->held += copy->count;
        *end = copy;
        end = &copy->next;
    }
    *end = *to;
    *to = made;
    return true;
}

void sg_held_objects_drop(struct sg_held_object **objects) {
    while (*objects) {
        struct sg_held_object *entry = *objects;
        *objects = entry->next;
        entry->object->held -= entry->count;
        end_when_unused(entry->object);
        free(entry);
    }
}

static struct sg_held_object **find_held(struct sg_graph *graph, const struct sg_user_object *of) {
    struct sg_held_object **at = &graph->objects;
    while (*at && (*at)->object != of)
        at = &(*at)->next;
    return at;
}

static bool is_count(unsigned count) {
    return count > 0 && count <= INT_MAX;
}

CUresult sg_cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
                                    unsigned int flags) {
    struct sg_graph *holder = sg_graph_get(graph);
    struct sg_user_object *held = get(object);
    if (!holder || !held || !is_count(count) || flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE)
        return CUDA_ERROR_INVALID_VALUE;
    bool moves = flags & CU_GRAPH_USER_OBJECT_MOVE;
    struct sg_held_object **at = find_held(holder, held);
    if ((moves && held->owned < count) || (*at && (*at)->count > UINT_MAX - count))
        return CUDA_ERROR_INVALID_VALUE;
    if (!*at) {
        *at = calloc(1, sizeof **at);
        if (!*at)
            return CUDA_ERROR_OUT_OF_MEMORY;
        (*at)->object = held;
    }
    (*at)->count += count;
    held->held += count;
    if (moves)
        held->owned -= count;
    return CUDA_SUCCESS;
}

/* Releasing more than the graph holds releases all: an H200 accepts that without an error. */
CUresult sg_cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count) {
    struct sg_graph *holder = sg_graph_get(graph);
    struct sg_user_object *held = get(object);
    if (!holder || !held || !is_count(count))
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_held_object **at = find_held(holder, held), *entry = *at;
    if (!entry)
        return CUDA_SUCCESS;
    if (count > entry->count)
        count = entry->count;
    entry->count -= count;
    held->held -= count;
    if (entry->count == 0) {
        *at = entry->next;
        free(entry);
    }
    end_when_unused(held);
    return CUDA_SUCCESS;
}

/* ---- References of the application ---------------------------------------------------------- */

CUresult sg_cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy,
                               unsigned int initialRefcount, unsigned int flags) {
    if (!object_out || !destroy || initialRefcount == 0 ||
        flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_user_object *object = calloc(1, sizeof *object);
    uint64_t handle = object ? sg_handle_new(SG_KIND_USER_OBJECT, object) : 0;
    if (!handle) {
        free(object);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *object = (struct sg_user_object){
        .handle = handle, .owned = initialRefcount, .destroy = destroy, .data = ptr};
    *object_out = SG_HANDLE_POINTER(CUuserObject, handle);
    return CUDA_SUCCESS;
}

CUresult sg_cuUserObjectRetain(CUuserObject object, unsigned int count) {
    struct sg_user_object *found = get(object);
    if (!found || !is_count(count))
        return CUDA_ERROR_INVALID_VALUE;
    found->owned += count;
    return CUDA_SUCCESS;
}

CUresult sg_cuUserObjectRelease(CUuserObject object, unsigned int count) {
    struct sg_user_object *found = get(object);
    if (!found || !is_count(count) || found->owned < count)
        return CUDA_ERROR_INVALID_VALUE;
    found->owned -= count;
    end_when_unused(found);
    return CUDA_SUCCESS;
}

uint64_t sg_user_object_owned(const struct sg_user_object *object) {
    return object->owned;
}

uint64_t sg_user_object_held(const struct sg_user_object *object) {
    return object->held;
}
