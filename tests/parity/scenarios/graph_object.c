/* User objects of graphs, and pictures of graphs. */
#include "../parity.h"
#include "temporary.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <time.h>

#define SYNC CU_USER_OBJECT_NO_DESTRUCTOR_SYNC

/* ---- Destructors that are waited for -------------------------------------------------------- */

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t called = PTHREAD_COND_INITIALIZER;
static int calls;
static bool other_thread;
static pthread_t main_thread;

static void destroy(void *data) {
    pthread_mutex_lock(&guard);
    calls += *(const int *)data;
    other_thread = !pthread_equal(main_thread, pthread_self());
    pthread_cond_broadcast(&called);
    pthread_mutex_unlock(&guard);
}

/* Waits until the destructors have added up to `wanted`, for five seconds at most. */
static void see_calls(const char *what, int wanted) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 5;
    pthread_mutex_lock(&guard);
    while (calls < wanted && pthread_cond_timedwait(&called, &guard, &until) == 0) {
    }
    par_see("destructor", "%s calls %d other-thread %d", what, calls, (int)other_thread);
    pthread_mutex_unlock(&guard);
}

static CUuserObject object_of(const int *weight, unsigned count, const char *name) {
    CUuserObject object = NULL;
    SETUP(cuUserObjectCreate, (&object, (void *)(uintptr_t)weight, destroy, count, SYNC));
    par_name((uint64_t)(uintptr_t)object, 0, name);
    return object;
}

static const int one = 1, ten = 10, hundred = 100;

static void begin(void) {
    par_context();
    main_thread = pthread_self();
}

static CUgraph new_graph(const char *name) {
    CUgraph g = PAR_MADE(CUgraph, cuGraphCreate, 0);
    par_name((uint64_t)(uintptr_t)g, 0, name);
    return g;
}

SCENARIO(objects, "graph-object/objects", begin) {
    static const unsigned flags[] = {0, 1, 2, 3, ~0u};
    static const unsigned counts[] = {0, 1, 2, INT_MAX, (unsigned)INT_MAX + 1, UINT_MAX};
    CUuserObject object;
    for (size_t i = 0; i < COUNT(flags); i++) {
        par_note("flags=%u", flags[i]);
        CALLO(cuUserObjectCreate, "flags", (&object, (void *)(uintptr_t)&one, destroy, 1, flags[i]),
              OUT_C(object));
    }
    for (size_t i = 0; i < COUNT(counts); i++) {
        par_note("count=%u", counts[i]);
        CALLO(cuUserObjectCreate, "count",
              (&object, (void *)(uintptr_t)&one, destroy, counts[i], SYNC), OUT_C(object));
    }
    CALLO(cuUserObjectCreate, "null-data", (&object, NULL, destroy, 1, SYNC), OUT_C(object));
    CALLO(cuUserObjectCreate, "null-function", (&object, NULL, NULL, 1, SYNC), OUT_C(object));
    CALL(cuUserObjectCreate, "null-out", (NULL, NULL, destroy, 1, SYNC));
    CALL(cuUserObjectRetain, "null", (NULL, 1));
    CALL(cuUserObjectRelease, "null", (NULL, 1));
    object = object_of(&one, 1, "object");
    CALL(cuUserObjectRetain, "zero", (object, 0));
    CALL(cuUserObjectRetain, "one", (object, 1));
    CALL(cuUserObjectRetain, "too-many", (object, (unsigned)INT_MAX + 1));
    CALL(cuUserObjectRetain, "many", (object, 1000));
    CALL(cuUserObjectRelease, "zero", (object, 0));
    CALL(cuUserObjectRelease, "too-many", (object, (unsigned)INT_MAX + 1));
    CALL(cuUserObjectRelease, "many", (object, 1001));
    see_calls("still-one", 0);
    CALL(cuUserObjectRelease, "last", (object, 1));
    see_calls("last", 1);
}

SCENARIO(without_context, "graph-object/no-context", par_init) {
    CUuserObject object;
    CUgraph g;
    main_thread = pthread_self();
    CALLO(cuUserObjectCreate, "no-context", (&object, (void *)(uintptr_t)&one, destroy, 1, SYNC),
          OUT_C(object));
    g = new_graph("g");
    CALL(cuGraphRetainUserObject, "no-context", (g, object, 1, 0));
    CALL(cuGraphReleaseUserObject, "no-context", (g, object, 1));
    CALL(cuUserObjectRetain, "no-context", (object, 1));
    CALL(cuUserObjectRelease, "no-context", (object, 2));
    see_calls("no-context", 1);
}

SCENARIO(graph_references, "graph-object/graph-references", begin) {
    CUuserObject a, b;
    CUgraph g, copy, outer;
    CUgraphNode node;
    g = new_graph("g");
    a = object_of(&one, 1, "a");
    b = object_of(&ten, 3, "b");
    CALL(cuGraphRetainUserObject, "zero", (g, a, 0, 0));
    CALL(cuGraphRetainUserObject, "too-many", (g, a, (unsigned)INT_MAX + 1, 0));
    CALL(cuGraphRetainUserObject, "bad-flags", (g, a, 1, 2));
    CALL(cuGraphRetainUserObject, "bad-flags", (g, a, 1, 3));
    CALL(cuGraphRetainUserObject, "null-graph", (NULL, a, 1, 0));
    CALL(cuGraphRetainUserObject, "null-object", (g, NULL, 1, 0));
    CALL(cuGraphReleaseUserObject, "not-retained", (g, a, 1));
    CALL(cuGraphRetainUserObject, "ok", (g, a, 2, 0));
    CALL(cuGraphReleaseUserObject, "zero", (g, a, 0));
    CALL(cuGraphReleaseUserObject, "null-graph", (NULL, a, 1));
    CALL(cuGraphReleaseUserObject, "null-object", (g, NULL, 1));
    CALL(cuGraphReleaseUserObject, "more-than-retained", (g, a, 3));
    CALL(cuGraphReleaseUserObject, "one", (g, a, 1));
    CALL(cuGraphReleaseUserObject, "not-of-graph", (g, b, 1));
    CALL(cuGraphRetainUserObject, "move", (g, b, 2, CU_GRAPH_USER_OBJECT_MOVE));
    CALL(cuUserObjectRelease, "own-last", (b, 1));
    CALL(cuUserObjectRelease, "own-last", (a, 1));
    see_calls("graph-holds", 0);
    CALLO(cuGraphClone, "with-objects", (&copy, g), OUT_C(copy));
    outer = new_graph("outer");
    CALLO(cuGraphAddChildGraphNode, "with-objects", (&node, outer, NULL, 0, g), OUT_C(node));
    CALL(cuGraphDestroy, "holds", (g));
    see_calls("clone-holds", 0);
    CALL(cuGraphReleaseUserObject, "of-clone", (copy, a, 1));
    CALL(cuGraphReleaseUserObject, "of-clone-again", (copy, a, 1));
    CALL(cuGraphDestroy, "clone", (copy));
    see_calls("child-holds", 0);
    CALL(cuGraphDestroyNode, "child", (node));
    see_calls("all", 11);
}

SCENARIO(exec_references, "graph-object/exec-references", begin) {
    CUuserObject a;
    CUgraph g;
    g = new_graph("g");
    a = object_of(&hundred, 1, "a");
    CALL(cuGraphRetainUserObject, "move", (g, a, 1, CU_GRAPH_USER_OBJECT_MOVE));
    CUgraphExec exec = par_instantiate(g);
    CALL(cuGraphDestroy, "instantiated", (g));
    see_calls("exec-holds", 0);
    CALL(cuGraphExecDestroy, "last", (exec));
    see_calls("all", 100);
}

SCENARIO(move_too_many, "graph-object/move-too-many", begin) {
    CUuserObject a;
    CUgraph g;
    g = new_graph("g");
    a = object_of(&one, 1, "a");
    CALL(cuGraphRetainUserObject, "move-more-than-owned", (g, a, 2, CU_GRAPH_USER_OBJECT_MOVE));
}

SCENARIO(release_too_many, "graph-object/release-too-many", begin) {
    CUuserObject a;
    a = object_of(&one, 1, "a");
    CALL(cuUserObjectRelease, "more-than-owned", (a, 2));
}

SCENARIO(stale_object, "graph-object/stale", begin) {
    CUuserObject a;
    a = object_of(&one, 1, "a");
    SETUP(cuUserObjectRelease, (a, 1));
    see_calls("gone", 1);
    CALL(cuUserObjectRetain, "stale-handle", (a, 1));
}

static CUresult inside;
static void call_inside(void *data) {
    size_t free_bytes, total;
    inside = par.api->cuMemGetInfo_v2(&free_bytes, &total);
    destroy(data);
}

static CUresult create_inside;
static void create_graph_inside(void *data) {
    CUgraph g;
    create_inside = par.api->cuGraphCreate(&g, 0);
    destroy(data);
}

SCENARIO(calls_inside, "graph-object/calls-inside", begin) {
    CUuserObject a;
    SETUP(cuUserObjectCreate, (&a, (void *)(uintptr_t)&one, call_inside, 1, SYNC));
    SETUP(cuUserObjectRelease, (a, 1));
    see_calls("call-inside", 1);
    par_see("inside", "cuMemGetInfo %s", par_result_name(inside));
    SETUP(cuUserObjectCreate, (&a, (void *)(uintptr_t)&one, create_graph_inside, 1, SYNC));
    SETUP(cuUserObjectRelease, (a, 1));
    see_calls("create-inside", 2);
    par_see("inside", "cuGraphCreate %s", par_result_name(create_inside));
}

/* ---- Pictures ------------------------------------------------------------------------------- */

static void host_work(void *data) {
}

static char path[TEMPORARY_ROOM];

static void see_file(void) {
    char start[8] = "";
    size_t size = 0, arrows = 0;
    int c, previous = 0;
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        par_see("file", "none");
        return;
    }
    while ((c = getc(file)) != EOF) {
        if (size < sizeof(start) - 1)
            start[size] = (char)c;
        arrows += previous == '-' && c == '>';
        previous = c;
        size++;
    }
    fclose(file);
    unlink(path);
    par_see("file", "%s starts '%s' arrows %zu", size ? "full" : "empty", start, arrows);
}

SCENARIO(pictures, "graph-object/pictures", begin) {
    CUgraph g, child;
    CUDA_HOST_NODE_PARAMS host = {host_work, NULL};
    int fd = temporary_file(path, "parity-dot");
    if (fd >= 0) {
        close(fd);
        unlink(path); /* the driver makes it */
    }
    CUdeviceptr p = par_alloc(4096);
    g = new_graph("g");
    CALL(cuGraphDebugDotPrint, "empty-graph", (g, path, 0));
    see_file();
    CUgraphNode a = PAR_MADE(CUgraphNode, cuGraphAddEmptyNode, g, NULL, 0);
    CUgraphNode b = PAR_MADE(CUgraphNode, cuGraphAddHostNode, g, &a, 1, &host);
    CUDA_MEMSET_NODE_PARAMS set = {.dst = p, .elementSize = 1, .width = 16, .height = 1};
    CUgraphNode node = PAR_MADE(CUgraphNode, cuGraphAddMemsetNode, g, &b, 1, &set, par.primary);
    CALL(cuGraphDebugDotPrint, "plain", (g, path, 0));
    see_file();
    for (unsigned bit = 0; bit <= 17; bit++) {
        par_note("flags=0x%x", 1u << bit);
        CALL(cuGraphDebugDotPrint, "flag", (g, path, 1u << bit));
        see_file();
    }
    CALL(cuGraphDebugDotPrint, "all-flags", (g, path, 0xffff));
    see_file();
    CALL(cuGraphDebugDotPrint, "bad-flags", (g, path, ~0u));
    see_file();
    CALL(cuGraphDebugDotPrint, "null-path", (g, NULL, 0));
    CALL(cuGraphDebugDotPrint, "null-graph", (NULL, path, 0));
    see_file();
    CALL(cuGraphDebugDotPrint, "missing-folder", (g, "/tmp/no-such-folder-of-parity/a.dot", 0));
    CALL(cuGraphDebugDotPrint, "folder", (g, "/tmp", 0));
    CALL(cuGraphDebugDotPrint, "empty-path", (g, "", 0));
    child = new_graph("child");
    SETUP(cuGraphAddEmptyNode, (&a, child, NULL, 0));
    SETUP(cuGraphAddChildGraphNode, (&node, g, &b, 1, child));
    CALL(cuGraphDebugDotPrint, "with-child", (g, path, 1));
    see_file();
}
