/*
 * Successes of functions that the other scenarios call only in vain, and errors that documentation
 * names and nothing else provokes. Launches are captured: so they succeed where no kernel runs,
 * too.
 */
#include "../parity.h"
#include "images.h"
#include "module_texts.h"
#include "temporary.h"

#define RELAXED CU_STREAM_CAPTURE_MODE_RELAXED
#define N       4096u

static CUmodule module_of(const void *image) {
    return PAR_MADE(CUmodule, cuModuleLoadData, image);
}

static CUfunction function_of(CUmodule m, const char *name) {
    return PAR_MADE(CUfunction, cuModuleGetFunction, m, name);
}

static void see_nodes(CUgraph graph) {
    CUgraphNode nodes[16];
    size_t count = COUNT(nodes);
    CALLO(cuGraphGetNodes, "all", (graph, nodes, &count), IO_U(count));
    for (size_t i = 0; i < count && par_last() == CUDA_SUCCESS; i++) {
        CUgraphNodeType type = (CUgraphNodeType)-1;
        SETUP(cuGraphNodeGetType, (nodes[i], &type));
        par_see("node", "type %d", (int)type);
    }
}

/* ---- Launches of the per-thread twins ---- */

SCENARIO(launches, "first/launches", par_context) {
    CUgraph graph;
    CUstream s = par_stream();
    CUmodule m = module_of(image_kernels_cubin);
    CUfunction empty = function_of(m, "empty"), heavy = function_of(m, "heavy");
    void *params[4] = {NULL};
    CUdeviceptr p = par_alloc(N);
    params[0] = params[1] = &p;
    CUlaunchConfig config = {GRID(1), BLOCK(1), .hStream = s};
    CALL(cuStreamBeginCapture_v2_ptsz, "ok", (s, RELAXED));
    CALL(cuLaunchKernel_ptsz, "captured", (empty, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
    CALL(cuLaunchKernelEx_ptsz, "captured", (&config, empty, NULL, NULL));
    CALL(cuLaunchCooperativeKernel_ptsz, "captured", (empty, 1, 1, 1, 1, 1, 1, 0, s, NULL));
    CALLO(cuStreamEndCapture_ptsz, "ok", (s, &graph), OUT_C(graph));
    see_nodes(graph);
    CALL(cuLaunchKernel_ptsz, "zero-grid", (empty, 0, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
    CALL(cuLaunchKernel_ptsz, "block-1025", (empty, 1, 1, 1, 1025, 1, 1, 0, s, NULL, NULL));
    CALL(cuLaunchKernel_ptsz, "too-many-registers",
         (heavy, 1, 1, 1, 1024, 1, 1, 0, s, params, NULL));
    CALL(cuLaunchCooperativeKernel_ptsz, "zero-grid", (empty, 0, 1, 1, 1, 1, 1, 0, s, NULL));
    CALL(cuLaunchCooperativeKernel_ptsz, "too-large",
         (empty, 100000, 1, 1, 1024, 1, 1, 0, s, NULL));
    CALL(cuLaunchCooperativeKernel_ptsz, "too-many-registers",
         (heavy, 1, 1, 1, 1024, 1, 1, 0, s, params));
    CALL(cuLaunchCooperativeKernel, "too-many-registers",
         (heavy, 1, 1, 1, 1024, 1, 1, 0, s, params));
    config.gridDimX = 0;
    CALL(cuLaunchKernelEx_ptsz, "zero-grid", (&config, empty, NULL, NULL));
    config.gridDimX = 1;
    config.numAttrs = 1;
    CALL(cuLaunchKernelEx_ptsz, "null-attributes", (&config, empty, NULL, NULL));
    config.numAttrs = 0;
    CALL(cuLaunchKernelEx_ptsz, "null-function", (&config, NULL, NULL, NULL));
}

SCENARIO(capture_to_graph, "first/capture-to-graph", par_context) {
    CUgraph graph, ended;
    CUstream s = par_stream();
    CUdeviceptr d = par_alloc(64);
    SETUP(cuGraphCreate, (&graph, 0));
    CUgraphNode node = PAR_MADE(CUgraphNode, cuGraphAddEmptyNode, graph, NULL, 0);
    CALL(cuStreamBeginCaptureToGraph_ptsz, "null-graph", (s, NULL, NULL, NULL, 0, RELAXED));
    CALL(cuStreamBeginCaptureToGraph_ptsz, "null-nodes", (s, graph, NULL, NULL, 1, RELAXED));
    CALL(cuStreamBeginCaptureToGraph_ptsz, "bad-mode",
         (s, graph, NULL, NULL, 0, (CUstreamCaptureMode)7));
    CALL(cuStreamBeginCaptureToGraph_ptsz, "legacy-stream",
         (CU_STREAM_LEGACY, graph, NULL, NULL, 0, RELAXED));
    CALL(cuStreamBeginCaptureToGraph_ptsz, "ok", (s, graph, &node, NULL, 1, RELAXED));
    CALL(cuStreamBeginCaptureToGraph_ptsz, "capturing", (s, graph, NULL, NULL, 0, RELAXED));
    CALL(cuMemsetD8Async_ptsz, "captured", (d, 1, 16, s));
    CALLO(cuStreamEndCapture_ptsz, "ok", (s, &ended), OUT_C(ended));
    par_see("graph", "%s", ended == graph ? "same" : "other");
    see_nodes(graph);
    CALL(cuStreamBeginCaptureToGraph_ptsz, "null-stream", (NULL, graph, NULL, NULL, 0, RELAXED));
    if (par_last() == CUDA_SUCCESS) {
        CALL(cuMemsetD8Async_ptsz, "captured-null-stream", (d, 2, 16, NULL));
        CALLO(cuStreamEndCapture_ptsz, "null-stream", (NULL, &ended), OUT_C(ended));
        see_nodes(graph);
    }
}

/* ---- Nodes with no semaphore in them ---- */

SCENARIO(semaphore_nodes, "first/semaphore-nodes", par_context) {
    CUgraphExec exec;
    CUgraphNode signal, wait, empty;
    CUexternalSemaphore list[1] = {NULL};
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS one_signal[1] = {0};
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS one_wait[1] = {0};
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS s = {list, one_signal, 0};
    CUDA_EXT_SEM_WAIT_NODE_PARAMS w = {list, one_wait, 0};
    CUgraph graph = par_graph();
    SETUP(cuGraphAddExternalSemaphoresSignalNode, (&signal, graph, NULL, 0, &s));
    SETUP(cuGraphAddExternalSemaphoresWaitNode, (&wait, graph, NULL, 0, &w));
    SETUP(cuGraphAddEmptyNode, (&empty, graph, NULL, 0));
    CALLO(cuGraphInstantiateWithFlags, "no-semaphores", (&exec, graph, 0), OUT_C(exec));
    if (par_last() != CUDA_SUCCESS)
        return;
    CALL(cuGraphExecExternalSemaphoresSignalNodeSetParams, "none", (exec, signal, &s));
    CALL(cuGraphExecExternalSemaphoresWaitNodeSetParams, "none", (exec, wait, &w));
    CALL(cuGraphExecExternalSemaphoresSignalNodeSetParams, "other-kind", (exec, wait, &s));
    CALL(cuGraphExecExternalSemaphoresWaitNodeSetParams, "other-kind", (exec, signal, &w));
    CALL(cuGraphExecExternalSemaphoresSignalNodeSetParams, "empty-node", (exec, empty, &s));
    CALL(cuGraphExecExternalSemaphoresWaitNodeSetParams, "empty-node", (exec, empty, &w));
    CALL(cuGraphExecExternalSemaphoresSignalNodeSetParams, "null-params", (exec, signal, NULL));
    CALL(cuGraphExecExternalSemaphoresWaitNodeSetParams, "null-params", (exec, wait, NULL));
    CALL(cuGraphExecExternalSemaphoresSignalNodeSetParams, "null-graph", (NULL, signal, &s));
    CALL(cuGraphExecExternalSemaphoresWaitNodeSetParams, "null-graph", (NULL, wait, &w));
    CALL(cuGraphLaunch, "no-semaphores", (exec, NULL));
    CALL(cuCtxSynchronize, "no-semaphores", ());
}

/* ---- The first interface ---- */

static CUcontext old_context(void) {
    CUcontext ctx = PAR_MADE(CUcontext, cuCtxCreate, 0, 0);
    par_name((uint64_t)(uintptr_t)ctx, 0, "old");
    return ctx;
}

SCENARIO(old_globals, "first/old-globals", par_init) {
    CUdeviceptr_v1 p;
    unsigned bytes, word = 0;
    old_context();
    CUmodule m = module_of(TEXT_PLAIN);
    CALLO(cuModuleGetGlobal, "old-context", (&p, &bytes, m, "counter"), OUT_C(p), OUT_U(bytes));
    if (par_last() == CUDA_SUCCESS) {
        CALL(cuMemcpyDtoH, "old-global", (&word, p, 4));
        par_see("content", "%u", word);
    }
    CALLO(cuModuleGetGlobal, "old-context-no-size", (&p, NULL, m, "counter"), OUT_C(p));
    CALLO(cuModuleGetGlobal, "old-context-no-address", (NULL, &bytes, m, "bytes"), OUT_U(bytes));
    CALL(cuModuleGetGlobal, "old-context-neither", (NULL, NULL, m, "counter"));
    CALLO(cuModuleGetGlobal, "old-context-missing", (&p, &bytes, m, "nothing"), OUT_C(p),
          OUT_C(bytes));
    CALLO(cuModuleGetGlobal, "old-context-null-name", (&p, &bytes, m, NULL), OUT_C(p),
          OUT_C(bytes));
    CALLO(cuModuleGetGlobal, "old-context-null-module", (&p, &bytes, NULL, "counter"), OUT_C(p),
          OUT_C(bytes));
}

SCENARIO(old_link, "first/old-link", par_context) {
    char text[] = TEXT_OUTSIDE, wrong[] = TEXT_HEAD ".visible .entry a()\n{\nfrob;\n}\n";
    void *image;
    size_t size;
    CUlinkState s = PAR_GOT(CUlinkState, cuLinkCreate_v2, 0, NULL, NULL);
    CALL(cuLinkAddData, "old-ptx", (s, CU_JIT_INPUT_PTX, text, sizeof(text), "a", 0, NULL, NULL));
    CALL(cuLinkAddData, "old-cubin",
         (s, CU_JIT_INPUT_CUBIN, (void *)(uintptr_t)image_part_cubin, sizeof(image_part_cubin), "b",
          0, NULL, NULL));
    CALL(cuLinkAddData, "old-wrong",
         (s, CU_JIT_INPUT_PTX, wrong, sizeof(wrong), "c", 0, NULL, NULL));
    CALL(cuLinkAddData, "old-null-data", (s, CU_JIT_INPUT_PTX, NULL, 10, "d", 0, NULL, NULL));
    CALL(cuLinkAddData, "old-zero-size", (s, CU_JIT_INPUT_PTX, text, 0, "e", 0, NULL, NULL));
    CALL(cuLinkAddData, "old-bad-type",
         (s, (CUjitInputType)99, text, sizeof(text), "f", 0, NULL, NULL));
    CALL(cuLinkAddData, "old-null-state",
         (NULL, CU_JIT_INPUT_PTX, text, sizeof(text), "g", 0, NULL, NULL));
    CALLO(cuLinkComplete, "old-inputs", (s, &image, &size), OUT_C(image), OUT_C(size));
    CALL(cuLinkDestroy, "old-inputs", (s));
}

/* Addresses of 32 bits in a texture reference. */
SCENARIO(old_texture_reference, "first/old-texture-reference", par_init) {
    CUtexref ref;
    CUdeviceptr_v1 p, got;
    unsigned offset;
    CUDA_ARRAY_DESCRIPTOR_v1 plane = {.Width = 16, .Height = 4, TEXELS(CU_AD_FORMAT_FLOAT, 1)};
    old_context();
    SETUP(cuMemAlloc, (&p, N));
    SETUP(cuTexRefCreate, (&ref));
    SETUP(cuTexRefSetFormat, (ref, CU_AD_FORMAT_FLOAT, 1));
    CALLO(cuTexRefGetAddress, "old-fresh", (&got, ref), OUT_C(got));
    CALLO(cuTexRefSetAddress, "old-ok", (&offset, ref, p, N), OUT_U(offset));
    CALLO(cuTexRefGetAddress, "old-ok", (&got, ref), OUT_C(got));
    par_see("address", "%s", got == p ? "same" : "other");
    CALLO(cuTexRefSetAddress, "old-part", (&offset, ref, p + 16, 256), OUT_U(offset));
    CALLO(cuTexRefSetAddress, "old-past-end", (&offset, ref, p, 2 * N), OUT_U(offset));
    CALLO(cuTexRefSetAddress, "old-random", (&offset, ref, 0x1000, 16), OUT_U(offset));
    CALL(cuTexRefSetAddress, "old-no-offset", (NULL, ref, p, N));
    CALLO(cuTexRefSetAddress, "old-null-reference", (&offset, NULL, p, N), OUT_U(offset));
    CALL(cuTexRefSetAddress2D, "old-ok", (ref, &plane, p, 512));
    CALLO(cuTexRefGetAddress, "old-plane", (&got, ref), OUT_C(got));
    par_see("address", "%s", got == p ? "same" : "other");
    CALL(cuTexRefSetAddress2D, "old-odd-pitch", (ref, &plane, p, 100));
    CALL(cuTexRefSetAddress2D, "old-odd-address", (ref, &plane, p + 4, 512));
    CALL(cuTexRefSetAddress2D, "old-pitch-below-width", (ref, &plane, p, 32));
    CALL(cuTexRefSetAddress2D, "old-null-reference", (NULL, &plane, p, 512));
    CALLO(cuTexRefGetAddress, "old-null-reference", (&got, NULL), OUT_C(got));
}

/* The same calls in a context of today. */
SCENARIO(old_texture_reference_today, "first/old-texture-reference-today", par_context) {
    CUtexref ref;
    CUdeviceptr_v1 got;
    unsigned offset;
    CUDA_ARRAY_DESCRIPTOR_v1 plane = {.Width = 16, .Height = 4, TEXELS(CU_AD_FORMAT_FLOAT, 1)};
    SETUP(cuTexRefCreate, (&ref));
    SETUP(cuTexRefSetFormat, (ref, CU_AD_FORMAT_FLOAT, 1));
    CALLO(cuTexRefGetAddress, "today-fresh", (&got, ref), OUT_C(got));
    CALLO(cuTexRefSetAddress, "today-zero", (&offset, ref, 0, 0), OUT_U(offset));
    CALLO(cuTexRefSetAddress, "today-random", (&offset, ref, 0x1000, 16), OUT_U(offset));
    CALL(cuTexRefSetAddress2D, "today-random", (ref, &plane, 0x1000, 512));
}

SCENARIO(bound_texture, "first/bound-texture", par_context) {
    size_t offset;
    CUmodule m = module_of(TEXT_TEXTURES);
    CUfunction f = function_of(m, "look");
    CUtexref t = PAR_MADE(CUtexref, cuModuleGetTexRef, m, "picture");
    SETUP(cuTexRefSetFormat, (t, CU_AD_FORMAT_FLOAT, 1));
    SETUP(cuTexRefSetAddress_v2, (&offset, t, par_alloc(N), N));
    CALL(cuParamSetTexRef, "bound", (f, CU_PARAM_TR_DEFAULT, t));
}

SCENARIO(made_texture, "first/made-texture", par_context) {
    CUtexref t;
    CUfunction f = function_of(module_of(TEXT_TEXTURES), "look");
    SETUP(cuTexRefCreate, (&t));
    SETUP(cuTexRefSetFormat, (t, CU_AD_FORMAT_FLOAT, 1));
    CALL(cuParamSetTexRef, "made", (f, CU_PARAM_TR_DEFAULT, t));
}

SCENARIO(old_context_texture, "first/old-context-texture", par_init) {
    old_context();
    CUmodule m = module_of(TEXT_TEXTURES);
    CUfunction f = function_of(m, "look");
    CUtexref t = PAR_MADE(CUtexref, cuModuleGetTexRef, m, "picture");
    CALL(cuParamSetTexRef, "old-context", (f, CU_PARAM_TR_DEFAULT, t));
}

/* ---- Memory of another process, by the first version of the call ---- */

static void ipc_to(const char *name) {
    char byte;
    int peer = par_spawn(name);
    par_context();
    CUdeviceptr p = par_alloc(PAR_2M);
    SETUP(cuMemsetD32_v2, (p, 0x0a0b0c0d, PAR_2M / 4));
    SETUP(cuCtxSynchronize, ());
    CUipcMemHandle handle = PAR_MADE(CUipcMemHandle, cuIpcGetMemHandle, p);
    par_send(peer, &handle, sizeof(handle), -1);
    par_receive(peer, &byte, 1, NULL);
    par_join();
}

SCENARIO_IS(ipc_to_today, "first/ipc-to-today", ipc_to("first-ipc-today"));
SCENARIO_IS(ipc_to_old, "first/ipc-to-old", ipc_to("first-ipc-old"));

static void open_first(void) {
    CUipcMemHandle handle;
    CUdeviceptr p;
    unsigned word = 0;
    if (!par_receive(par.peer_fd, &handle, sizeof(handle), NULL))
        return;
    CALLO(cuIpcOpenMemHandle, "other-process-bad-flags", (&p, handle, 2), OUT_C(p));
    CALL(cuIpcOpenMemHandle, "other-process-null-out", (NULL, handle, 1));
    CALLO(cuIpcOpenMemHandle, "other-process", (&p, handle, 1), OUT_R(p, PAR_2M));
    if (par_last() == CUDA_SUCCESS) {
        CALL(cuMemcpyDtoH_v2, "imported", (&word, p, 4));
        par_see("content", "0x%08x", word);
        CALL(cuIpcCloseMemHandle, "first-version", (p));
    }
    par_send(par.peer_fd, "d", 1, -1);
}

HELPER(helper_today, "first-ipc-today") {
    par_record_start("first/ipc-to-today:peer");
    par_context();
    open_first();
}

HELPER(helper_old, "first-ipc-old") {
    par_record_start("first/ipc-to-old:peer");
    par_init();
    old_context();
    open_first();
}

/* ---- Errors ---- */

SCENARIO(link_files, "first/link-files", par_context) {
    static const struct {
        const char *cls;
        CUjitInputType type;
        const void *data;
        size_t size;
    } files[] = {
#define TEXT(t) CU_JIT_INPUT_PTX, t, sizeof(t) - 1
        {"bad-ptx", TEXT(TEXT_HEAD ".visible .entry a()\n{\nfrob;\n}\n")},
        {"newer-ptx", TEXT(".version 99.9\n.target sm_70\n.address_size 64\n" TEXT_ENTRY)},
        {"garbage-as-cubin", CU_JIT_INPUT_CUBIN, "this is no program", 18},
        {"newer-cubin", CU_JIT_INPUT_CUBIN, image_other_cubin, sizeof(image_other_cubin)},
        {"older-cubin", CU_JIT_INPUT_CUBIN, image_older_cubin, sizeof(image_older_cubin)},
        {"relocatable", CU_JIT_INPUT_CUBIN, image_part_cubin, sizeof(image_part_cubin)},
    };
    for (size_t i = 0; i < COUNT(files); i++) {
        char path[TEMPORARY_ROOM];
        int fd = temporary_file(path, "parity-first");
        if (fd < 0 || write(fd, files[i].data, files[i].size) != (ssize_t)files[i].size) {
            par_see("setup", "SETUP_FAILED file");
            return;
        }
        close(fd);
        CUlinkState s = PAR_GOT(CUlinkState, cuLinkCreate_v2, 0, NULL, NULL);
        CALL(cuLinkAddFile_v2, files[i].cls, (s, files[i].type, path, 0, NULL, NULL));
        SETUP(cuLinkDestroy, (s));
        unlink(path);
    }
}

SCENARIO(errors, "first/errors", par_context) {
    CUtexObject texture = 0;
    CUsurfObject surface = 0;
    CUDA_RESOURCE_DESC resource;
    memset(&resource, 0, sizeof(resource));
    resource.resType = (CUresourcetype)9;
    CALLO(cuTexObjectCreate, "bad-kind", (&texture, &resource, NULL, NULL), OUT_U(texture));
    CALLO(cuSurfObjectCreate, "bad-kind", (&surface, &resource), OUT_U(surface));
    CALL(cuTexObjectDestroy, "zero", (0));
    CALL(cuSurfObjectDestroy, "zero", (0));
    CUevent e = par_event(0);
    CALL(cuEventRecordWithFlags, "bad-flags", (e, NULL, 0x80));
    CALL(cuCtxGetStreamPriorityRange, "null-both", (NULL, NULL));
    CALL(cuCtxResetPersistingL2Cache, "ok", ());
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuCtxResetPersistingL2Cache, "no-context", ());
    CALL(cuCtxGetStreamPriorityRange, "no-context", (NULL, NULL));
}
