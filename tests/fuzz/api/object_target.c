/*
 * Graphs, captures, programs, arrays, textures and what else refers to memory, with all of
 * memory.
 */
#include "world.h"

static const struct calls *const chapters[] = {
    &graph_calls,  &exec_calls,    &capture_calls, &image_calls,    &kernel_calls,
    &array_calls,  &texture_calls, &managed_calls, &external_calls, &context_calls,
    &memory_calls, &vmm_calls,     &pool_calls,    &copy_calls,     &stream_calls,
    &share_calls,  &graph_calls,   &exec_calls,    &report_calls,
};

static void begin_memory(void) {
    CUdeviceptr memory = 0, managed = 0;
    CUevent event = NULL;
    CUstream stream = NULL;
    CUarray array = NULL;
    CUmipmappedArray mipmap = NULL;
    CUDA_ARRAY3D_DESCRIPTOR shape = {64, 32, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST};
    cuMemAlloc_v2(&memory, 65536);
    cuMemAllocManaged(&managed, 65536, CU_MEM_ATTACH_GLOBAL);
    cuEventCreate(&event, 0);
    cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    cuArray3DCreate_v2(&array, &shape);
    cuMipmappedArrayCreate(&mipmap, &shape, 3);
    remember(ADDRESSES, managed);
    remember(ADDRESSES, memory);
    remember(EVENTS, (uintptr_t)event);
    remember(STREAMS, (uintptr_t)stream);
    remember(ARRAYS, (uintptr_t)array);
    remember(MIPMAPS, (uintptr_t)mipmap);
}

static void begin_program(void) {
    char *text = draw_program();
    CUmodule module = NULL;
    CUlibrary library = NULL;
    CUfunction functions[2] = {NULL};
    CUkernel kernels[2] = {NULL};
    cuModuleLoadData(&module, text);
    cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0);
    cuModuleEnumerateFunctions(functions, 2, module);
    cuLibraryEnumerateKernels(kernels, 2, library);
    remember(MODULES, (uintptr_t)module);
    remember(LIBRARIES, (uintptr_t)library);
    for (unsigned i = 0; i < 2; i++) {
        remember(FUNCTIONS, (uintptr_t)functions[i]);
        remember(KERNELS, (uintptr_t)kernels[i]);
    }
}

/* A set, a copy of what it wrote, and an empty node after both, and the graph as it runs. */
static void begin_graph(void) {
    CUgraph graph = NULL;
    CUgraphNode nodes[3] = {NULL};
    CUgraphExec exec = NULL;
    CUcontext context = NULL;
    CUdeviceptr memory =
        world.counts[ADDRESSES] ? world.values[ADDRESSES][world.counts[ADDRESSES] - 1] : 0;
    CUDA_MEMSET_NODE_PARAMS set = {.dst = memory, .elementSize = 1, .width = 64, .height = 1};
    CUDA_MEMCPY3D box = {FROM_DEVICE(memory), TO_HOST(arena), EXTENT_3D(64, 1, 1)};
    cuCtxGetCurrent(&context);
    cuGraphCreate(&graph, 0);
    cuGraphAddMemsetNode(&nodes[0], graph, NULL, 0, &set, context);
    cuGraphAddMemcpyNode(&nodes[1], graph, nodes, 1, &box, context);
    cuGraphAddEmptyNode(&nodes[2], graph, nodes, 2);
    cuGraphInstantiateWithFlags(&exec, graph, 0);
    remember(GRAPHS, (uintptr_t)graph);
    remember(EXECS, (uintptr_t)exec);
    for (unsigned i = 0; i < 3; i++)
        remember(NODES, (uintptr_t)nodes[i]);
}

/* One of most kinds, so that calls find some. */
static void begin(void) {
    unsigned pick = byte();
    if (pick >= 0xf0)
        return;
    begin_memory();
    if (pick & 1)
        begin_program();
    if (pick & 2)
        begin_graph();
}

const struct target target = {chapters, sizeof chapters / sizeof chapters[0], KINDS, begin};
