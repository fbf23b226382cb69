/* Launching kernels: the arguments that are refused, and a few launches that run. */
#include "../parity.h"
#include "images.h"
#include "module_texts.h"

static CUfunction function(const void *image, const char *name) {
    CUmodule m = PAR_MADE(CUmodule, cuModuleLoadData, image);
    return PAR_MADE(CUfunction, cuModuleGetFunction, m, name);
}

SCENARIO(dimensions, "launch/dimensions", par_context) {
    static const unsigned shapes[][7] = {{0, 1, 1, 1, 1, 1, 0},
                                         {1, 0, 1, 1, 1, 1, 0},
                                         {1, 1, 0, 1, 1, 1, 0},
                                         {1, 1, 1, 0, 1, 1, 0},
                                         {1, 1, 1, 1, 0, 1, 0},
                                         {1, 1, 1, 1, 1, 0, 0},
                                         {0x80000000u, 1, 1, 1, 1, 1, 0},
                                         {1, 65536, 1, 1, 1, 1, 0},
                                         {1, 1, 65536, 1, 1, 1, 0},
                                         {1, 1, 1, 1025, 1, 1, 0},
                                         {1, 1, 1, 1, 1025, 1, 0},
                                         {1, 1, 1, 1, 1, 65, 0},
                                         {1, 1, 1, 64, 32, 1, 0},
                                         {1, 1, 1, 1, 1, 1, 49153},
                                         {1, 1, 1, 1, 1, 1, 65536},
                                         {1, 1, 1, 1, 1, 1, 232449},
                                         {1, 1, 1, 1, 1, 1, 0xffffffffu},
                                         {0, 0, 0, 0, 0, 0, 0},
                                         {0xffffffffu, 65535, 65535, 1025, 1, 1, 0}};
    CUfunction f = function(image_kernels_cubin, "empty");
    for (size_t i = 0; i < COUNT(shapes); i++) {
        const unsigned *s = shapes[i];
        par_note("%u,%u,%u %u,%u,%u %u", s[0], s[1], s[2], s[3], s[4], s[5], s[6]);
        CALL(cuLaunchKernel, "shape",
             (f, s[0], s[1], s[2], s[3], s[4], s[5], s[6], NULL, NULL, NULL));
    }
    CALL(cuLaunchCooperativeKernel, "zero-grid", (f, 0, 1, 1, 1, 1, 1, 0, NULL, NULL));
    CALL(cuLaunchCooperativeKernel, "zero-block", (f, 1, 1, 1, 0, 1, 1, 0, NULL, NULL));
    CALL(cuLaunchCooperativeKernel, "block-1025", (f, 1, 1, 1, 1025, 1, 1, 0, NULL, NULL));
    CALL(cuLaunchCooperativeKernel, "too-large", (f, 100000, 1, 1, 1024, 1, 1, 0, NULL, NULL));
    CALL(cuLaunchCooperativeKernel, "just-too-large",
         (f, 132 * 2 + 1, 1, 1, 1024, 1, 1, 0, NULL, NULL));
    CALL(cuLaunchCooperativeKernel, "null-function", (NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL));
    CALL(cuLaunchKernel, "null-function", (NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

SCENARIO(functions, "launch/functions", par_context) {
    CUfunction bounded = function(image_kernels_cubin, "bounded");
    CUfunction required = function(TEXT_PLAIN, "required");
    CUfunction shared = function(image_kernels_cubin, "static_shared");
    CUfunction clustered = function(image_kernels_cubin, "clustered");
    CUfunction any = function(TEXT_CLUSTERS, "any_cluster");
    CUfunction heavy = function(image_kernels_cubin, "heavy");
    void *params[4] = {NULL};
    CUdeviceptr p = par_alloc(4096);
    params[0] = params[1] = &p;
    CALL(cuLaunchKernel, "beyond-maxntid", (bounded, 1, 1, 1, 129, 1, 1, 0, NULL, params, NULL));
    CALL(cuLaunchKernel, "not-reqntid", (required, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL));
    CALL(cuLaunchKernel, "not-reqntid-turned", (required, 1, 1, 1, 2, 64, 1, 0, NULL, NULL, NULL));
    CALL(cuLaunchKernel, "static-and-dynamic",
         (shared, 1, 1, 1, 32, 1, 1, 49152, NULL, params, NULL));
    CALL(cuLaunchKernel, "grid-not-of-clusters",
         (clustered, 3, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    CALL(cuLaunchKernel, "cluster-not-set", (any, 4, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    SETUP(cuFuncSetAttribute, (heavy, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024));
    CALL(cuLaunchKernel, "beyond-own-limit", (heavy, 1, 1, 1, 32, 1, 1, 1025, NULL, params, NULL));
    CALL(cuLaunchKernel, "too-many-registers", (heavy, 1, 1, 1, 1024, 1, 1, 0, NULL, params, NULL));
    CALL(cuLaunchKernel, "1-1-1-with-reqntid", (required, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

SCENARIO(parameters, "launch/parameters", par_context) {
    unsigned value = 5;
    char buffer[16];
    size_t size = sizeof(buffer), wrong = 8, far_too_large = 1 << 20;
    CUfunction f = function(TEXT_PLAIN, "writes");
    CUdeviceptr p = par_alloc(64);
    void *params[] = {&p, &value};
    memcpy(buffer, &p, 8);
    memcpy(buffer + 8, &value, 4);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    void *no_size[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_END};
    void *no_pointer[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    void *unknown[] = {(void *)(uintptr_t)7, buffer, CU_LAUNCH_PARAM_END};
    void *small[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &wrong,
                     CU_LAUNCH_PARAM_END};
    void *large[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &far_too_large, CU_LAUNCH_PARAM_END};
    void *empty[] = {CU_LAUNCH_PARAM_END};
    CALL(cuLaunchKernel, "params-and-extra", (f, 1, 1, 1, 1, 1, 1, 0, NULL, params, extra));
    CALL(cuLaunchKernel, "neither", (f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    CALL(cuLaunchKernel, "extra-no-size", (f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, no_size));
    CALL(cuLaunchKernel, "extra-no-pointer", (f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, no_pointer));
    CALL(cuLaunchKernel, "extra-unknown", (f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, unknown));
    CALL(cuLaunchKernel, "extra-small", (f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, small));
    CALL(cuLaunchKernel, "extra-large", (f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, large));
    CALL(cuLaunchKernel, "extra-empty", (f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, empty));
    CALL(cuLaunchKernel, "bad-shape-and-both", (f, 0, 1, 1, 1, 1, 1, 0, NULL, params, extra));
    CUstream s = par_stream();
    SETUP(cuStreamDestroy_v2, (s));
    CALL(cuLaunchKernel, "stale-stream", (f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
}

SCENARIO(null_parameter, "launch/null-parameter", par_context) {
    void *params[] = {NULL, NULL};
    CUfunction f = function(TEXT_PLAIN, "writes");
    CALL(cuLaunchKernel, "null-parameter", (f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
}

static void with_attribute(const char *cls, CUfunction f, CUlaunchAttribute *attributes,
                           unsigned count, unsigned grid_x) {
    CUlaunchConfig config = {grid_x, 1, 1, 32, 1, 1, 0, NULL, attributes, count};
    CALL(cuLaunchKernelEx, cls, (&config, f, NULL, NULL));
}

static CUlaunchAttribute dims(CUlaunchAttributeID id, unsigned x, unsigned y, unsigned z) {
    CUlaunchAttribute a = {.id = id};
    a.value.clusterDim.x = x;
    a.value.clusterDim.y = y;
    a.value.clusterDim.z = z;
    return a;
}

SCENARIO(attributes_bad, "launch/attributes-bad", par_context) {
    CUfunction f = function(image_kernels_cubin, "empty");
    CUlaunchAttribute a = {.id = (CUlaunchAttributeID)99};
    with_attribute("id-99", f, &a, 1, 2);
    a.id = CU_LAUNCH_ATTRIBUTE_MAX;
    with_attribute("id-max", f, &a, 1, 2);
    a.id = (CUlaunchAttributeID)-1;
    with_attribute("id-negative", f, &a, 1, 2);
    with_attribute("null-attributes", f, NULL, 1, 2);
    a = dims(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 2, 1, 1);
    with_attribute("cluster-not-divisor", f, &a, 1, 3);
    a = dims(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 0, 1, 1);
    with_attribute("cluster-zero", f, &a, 1, 2);
    a = dims(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 16, 1, 1);
    with_attribute("cluster-16", f, &a, 1, 16);
    a = dims(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 64, 1, 1);
    with_attribute("cluster-64", f, &a, 1, 64);
    a = dims(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 4, 1, 1);
    with_attribute("cluster-other-than-required", function(image_kernels_cubin, "clustered"), &a, 1,
                   4);
    a = dims(CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, 3, 1, 1);
    with_attribute("preferred-alone", f, &a, 1, 3);
    memset(&a, 0, sizeof(a));
    a.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
    a.value.clusterSchedulingPolicyPreference = (CUclusterSchedulingPolicy)9;
    with_attribute("policy-9", f, &a, 1, 2);
    memset(&a, 0, sizeof(a));
    a.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
    with_attribute("null-programmatic-event", f, &a, 1, 2);
    a.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
    with_attribute("null-completion-event", f, &a, 1, 2);
    memset(&a, 0, sizeof(a));
    a.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    a.value.priority = 100;
    with_attribute("priority-100", f, &a, 1, 2);
    memset(&a, 0, sizeof(a));
    a.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
    a.value.memSyncDomain = (CUlaunchMemSyncDomain)7;
    with_attribute("domain-7", f, &a, 1, 2);
    memset(&a, 0, sizeof(a));
    a.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
    a.value.sharedMemCarveout = 101;
    with_attribute("carveout-101", f, &a, 1, 2);
    memset(&a, 0, sizeof(a));
    a.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    a.value.cooperative = 1;
    with_attribute("cooperative-too-large", f, &a, 1, 1000000);
    memset(&a, 0, sizeof(a));
    a.id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
    a.value.deviceUpdatableKernelNode.deviceUpdatable = 1;
    with_attribute("updatable", f, &a, 1, 2);
    memset(&a, 0, sizeof(a));
    a.id = CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY;
    a.value.syncPolicy = (CUsynchronizationPolicy)9;
    with_attribute("synchronization-policy-9", f, &a, 1, 2);
    memset(&a, 0, sizeof(a));
    a.id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
    a.value.accessPolicyWindow.hitRatio = 2.0F;
    a.value.accessPolicyWindow.num_bytes = 4096;
    with_attribute("window-ratio-2", f, &a, 1, 2);
    CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, NULL, NULL, 0};
    CALL(cuLaunchKernelEx, "null-config", (NULL, f, NULL, NULL));
    CALL(cuLaunchKernelEx, "null-function", (&config, NULL, NULL, NULL));
    config.gridDimX = 0;
    CALL(cuLaunchKernelEx, "zero-grid", (&config, f, NULL, NULL));
    config.gridDimX = 1;
    config.blockDimX = 1025;
    CALL(cuLaunchKernelEx, "block-1025", (&config, f, NULL, NULL));
}

SCENARIO(multi_device, "launch/multi-device", par_context) {
    CUDA_LAUNCH_PARAMS list[2];
    CUfunction f = function(image_kernels_cubin, "empty");
    CUstream s = par_stream();
    CUDA_LAUNCH_PARAMS one = {f, 1, 1, 1, 32, 1, 1, 0, s, NULL};
    list[0] = list[1] = one;
    CALL(cuLaunchCooperativeKernelMultiDevice, "null-list", (NULL, 1, 0));
    CALL(cuLaunchCooperativeKernelMultiDevice, "zero-devices", (list, 0, 0));
    CALL(cuLaunchCooperativeKernelMultiDevice, "flags-4", (list, 1, 4));
    CALL(cuLaunchCooperativeKernelMultiDevice, "same-device-twice", (list, 2, 0));
    list[0].hStream = NULL;
    CALL(cuLaunchCooperativeKernelMultiDevice, "default-stream", (list, 1, 0));
    list[0] = one;
    list[0].gridDimX = 0;
    CALL(cuLaunchCooperativeKernelMultiDevice, "zero-grid", (list, 1, 0));
    list[0] = one;
    list[0].function = NULL;
    CALL(cuLaunchCooperativeKernelMultiDevice, "null-function", (list, 1, 0));
    list[0] = one;
    list[0].gridDimX = 1000000;
    CALL(cuLaunchCooperativeKernelMultiDevice, "too-large", (list, 1, 0));
}

/* While capturing a launch becomes a node. */
SCENARIO(captured, "launch/captured", par_context) {
    CUgraph g;
    unsigned value = 5;
    CUgraphNode node;
    CUDA_KERNEL_NODE_PARAMS got;
    CUfunction f = function(TEXT_PLAIN, "writes");
    CUstream s = par_stream();
    CUdeviceptr p = par_alloc(64);
    void *params[] = {&p, &value};
    SETUP(cuStreamBeginCapture_v2, (s, CU_STREAM_CAPTURE_MODE_RELAXED));
    CALL(cuLaunchKernel, "capture-bad-shape", (f, 0, 1, 1, 1, 1, 1, 0, s, params, NULL));
    CALL(cuLaunchKernel, "capture", (f, 2, 3, 1, 4, 1, 1, 0, s, params, NULL));
    CALLO(cuStreamEndCapture, "kernel", (s, &g), OUT_C(g));
    if (par_last() != CUDA_SUCCESS)
        return;
    size_t count = PAR_GOT(size_t, cuGraphGetNodes, g, NULL);
    par_see("nodes", "%zu", count);
    count = 1;
    SETUP(cuGraphGetNodes, (g, &node, &count));
    CALLO(cuGraphKernelNodeGetParams_v2, "captured", (node, &got), OUT_U(got.gridDimX),
          OUT_U(got.gridDimY), OUT_U(got.blockDimX));
    par_see("function", "%d", got.func == f);
    par_see("arguments", "%u", *(unsigned *)got.kernelParams[1]);
    value = 9;
    par_see("arguments", "%u", *(unsigned *)got.kernelParams[1]);
}

SCENARIO(captured_others, "launch/captured-others", par_context) {
    CUgraph g;
    CUfunction f = function(image_kernels_cubin, "empty");
    CUstream s = par_stream();
    CUlaunchConfig config = {2, 1, 1, 32, 1, 1, 0, s, NULL, 0};
    SETUP(cuStreamBeginCapture_v2, (s, CU_STREAM_CAPTURE_MODE_RELAXED));
    CALL(cuLaunchKernelEx, "capture", (&config, f, NULL, NULL));
    CALL(cuLaunchCooperativeKernel, "capture", (f, 1, 1, 1, 1, 1, 1, 0, s, NULL));
    SETUP(cuFuncSetBlockShape, (f, 1, 1, 1));
    CALL(cuLaunchGridAsync, "capture", (f, 1, 1, s));
    CALLO(cuStreamEndCapture, "kernels", (s, &g), OUT_C(g));
    if (par_last() != CUDA_SUCCESS)
        return;
    size_t count = PAR_GOT(size_t, cuGraphGetNodes, g, NULL);
    par_see("nodes", "%zu", count);
}

/* Launches that run: softgpu refuses these. */
SCENARIO(runs, "launch/runs", par_context) {
    unsigned value = 41, back = 0;
    CUfunction f = function(TEXT_PLAIN, "writes"), e = function(image_kernels_cubin, "empty");
    CUdeviceptr p = par_alloc(64);
    void *params[] = {&p, &value};
    CUlaunchConfig config = {2, 1, 1, 32, 1, 1, 0, NULL, NULL, 0};
    CALL(cuLaunchKernel, "ok", (f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    SETUP(cuMemcpyDtoH_v2, (&back, p, 4));
    par_see("written", "%u", back);
    CALL(cuLaunchKernelEx, "ok", (&config, e, NULL, NULL));
    CALL(cuLaunchCooperativeKernel, "ok", (e, 1, 1, 1, 32, 1, 1, 0, NULL, NULL));
    CUDA_LAUNCH_PARAMS one = {e, 1, 1, 1, 32, 1, 1, 0, par_stream(), NULL};
    CALL(cuLaunchCooperativeKernelMultiDevice, "ok", (&one, 1, 0));
    CUlaunchAttribute a = dims(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 2, 1, 1);
    with_attribute("cluster-2", e, &a, 1, 4);
}
