/*
 * Every attribute of CUlaunchAttributeID, for launches, for kernel nodes and for streams: it acts,
 * or is taken as the hint that it is, or is refused. The kernel tells of what clusters it ran in.
 */
#include "kernels.h"

/* Of CUDA's later headers; the driver of 13.0 knows neither. */
#define PORTABLE_CLUSTER_SIZE_MODE 17
#define SHARED_MEMORY_MODE         18

#define EACH_ID(id) for (int id = 0; id <= SHARED_MEMORY_MODE; id++)
#define BLOCKS      8

static const char text[] =
    KERNELS_HEAD ".visible .entry probe() { ret; }\n"
                 /* out[0]: how many blocks ran; out[1]: of how many a cluster is made */
                 ".visible .entry tell(.param .u64 out) { .reg .b32 %r<3>; .reg .b64 %d<2>;\n"
                 "ld.param.u64 %d1, [out]; mov.u32 %r1, 1; red.global.add.u32 [%d1], %r1;\n"
                 "mov.u32 %r2, %cluster_nctarank; st.relaxed.sys.global.u32 [%d1+4], %r2; ret; }\n";

static struct shared_words words;
static CUstream stream;
static CUevent event;

static void begin(void) {
    kernels_open(text);
    words = words_make(2);
    stream = new_stream();
    event = new_event();
}

static CUlaunchAttribute attribute(int id) {
    CUlaunchAttribute made;
    memset(&made, 0, sizeof made);
    made.id = (CUlaunchAttributeID)id;
    return made;
}

/* How many blocks ran, and in clusters of how many. */
static void ran(unsigned blocks, unsigned cluster, const char *what, int id) {
    OK_CU(cu.cuCtxSynchronize());
    if (words.host[0] != blocks || (blocks && words.host[1] != cluster))
        fail_msg("%s %d: %u blocks ran in clusters of %u, not %u of %u", what, id, words.host[0],
                 words.host[1], blocks, cluster);
    words.host[0] = words.host[1] = 0;
}

static void expect(CUresult got, CUresult wanted, const char *what, int id) {
    if (got != wanted)
        fail_msg("%s, attribute %d: %d, not %d", what, id, (int)got, (int)wanted);
}

/* ---- Launches -------------------------------------------------------------------------------- */

static CUresult launch(CUlaunchAttribute *attributes, unsigned count) {
    void *params[] = {&words.device};
    CUlaunchConfig config = {BLOCKS, 1, 1, 1, 1, 1, 0, stream, attributes, count};
    return cu.cuLaunchKernelEx(&config, kernel("tell"), params, NULL);
}

static void launch_with(CUlaunchAttribute one, CUresult wanted, unsigned cluster) {
    expect(launch(&one, 1), wanted, "launch", (int)one.id);
    ran(wanted == CUDA_SUCCESS ? BLOCKS : 0, cluster, "launch with attribute", (int)one.id);
}

/* A value that is good wherever the attribute is, and not its default. */
static CUlaunchAttribute good(int id) {
    CUlaunchAttribute a = attribute(id);
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        a.value.accessPolicyWindow.base_ptr = (void *)(uintptr_t)words.device;
        a.value.accessPolicyWindow.num_bytes = 4096;
        a.value.accessPolicyWindow.hitRatio = 0.5F;
        a.value.accessPolicyWindow.hitProp = CU_ACCESS_PROPERTY_PERSISTING;
        a.value.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_STREAMING;
        break;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        a.value.cooperative = 1;
        break;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        a.value.syncPolicy = CU_SYNC_POLICY_YIELD;
        break;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        a.value.clusterDim.x = 2, a.value.clusterDim.y = a.value.clusterDim.z = 1;
        break;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        a.value.clusterSchedulingPolicyPreference = CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
        break;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        a.value.programmaticStreamSerializationAllowed = 1;
        break;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        a.value.programmaticEvent.event = event;
        break;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        a.value.priority = -2;
        break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        a.value.memSyncDomainMap = (CUlaunchMemSyncDomainMap){1, 0};
        break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        a.value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
        break;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
        a.value.preferredClusterDim.x = 4;
        a.value.preferredClusterDim.y = a.value.preferredClusterDim.z = 1;
        break;
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        a.value.launchCompletionEvent.event = event;
        break;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        a.value.deviceUpdatableKernelNode.deviceUpdatable = 1;
        break;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        a.value.sharedMemCarveout = 50;
        break;
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
        a.value.nvlinkUtilCentricScheduling = 1;
        break;
    default:
        break;
    }
    return a;
}

/* What a launch answers to a good value, as the header says where it is valid. */
static CUresult answer_of_launch(int id) {
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION: /* alone */
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE: /* of graphs alone */
        return CUDA_ERROR_NOT_SUPPORTED;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY: /* of streams alone */
    case PORTABLE_CLUSTER_SIZE_MODE:
    case SHARED_MEMORY_MODE:
        return CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_SUCCESS;
    }
}

TEST(launches_accept_or_refuse_each_attribute) {
    begin();
    EACH_ID(id) {
        if (id != 15) /* no attribute has this number */
            launch_with(good(id), answer_of_launch(id),
                        id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ? 2 : 1);
        OK_CU(cu.cuEventSynchronize(event)); /* recorded by two of them */
    }
}

TEST(launches_refuse_invalid_attribute_values) {
    begin();
    CUlaunchAttribute a = good(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW);
    a.value.accessPolicyWindow.hitRatio = 2;
    launch_with(a, CUDA_ERROR_INVALID_VALUE, 0);
    a = good(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    a.value.clusterDim.x = 3;
    launch_with(a, CUDA_ERROR_INVALID_CLUSTER_SIZE, 0);
    a = good(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
    a.value.clusterSchedulingPolicyPreference = (CUclusterSchedulingPolicy)9;
    launch_with(a, CUDA_ERROR_INVALID_VALUE, 0);
    launch_with(attribute(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT), CUDA_ERROR_INVALID_HANDLE, 0);
    launch_with(attribute(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT), CUDA_ERROR_INVALID_HANDLE,
                0);
    a = good(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN);
    a.value.memSyncDomain = (CUlaunchMemSyncDomain)7;
    launch_with(a, CUDA_ERROR_INVALID_VALUE, 0);
    a = good(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
    a.value.sharedMemCarveout = 101;
    launch_with(a, CUDA_ERROR_INVALID_VALUE, 0);
    launch_with(attribute(CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE),
                CUDA_ERROR_NOT_SUPPORTED, 0);
    launch_with(attribute(-1), CUDA_ERROR_INVALID_VALUE, 0);
    launch_with(attribute(99), CUDA_ERROR_INVALID_VALUE, 0);
}

/* The nearest priority that there is is taken. */
TEST(out_of_range_launch_priorities_are_clamped) {
    begin();
    CUlaunchAttribute a = good(CU_LAUNCH_ATTRIBUTE_PRIORITY);
    for (int priority = -100; priority <= 100; priority += 50) {
        a.value.priority = priority;
        launch_with(a, CUDA_SUCCESS, 1);
    }
}

/* Blocks may be grouped by either; a multiple of the other is asked for. */
TEST(preferred_clusters_are_a_hint) {
    begin();
    CUlaunchAttribute both[] = {good(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION),
                                good(CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION)};
    OK_CU(launch(both, 2));
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(words.host[0], BLOCKS);
    assert_true(words.host[1] == 2 || words.host[1] == 4);
    words.host[0] = words.host[1] = 0;
    both[1].value.preferredClusterDim.x = 3;
    assert_int_not_equal(launch(both, 2), CUDA_SUCCESS);
    both[1].value.preferredClusterDim.x = 0;
    assert_int_not_equal(launch(both, 2), CUDA_SUCCESS);
    ran(0, 0, "launch with attribute", CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION);
}

/* ---- Kernel nodes ---------------------------------------------------------------------------- */

static CUgraphNode add_node(CUgraph graph) {
    void *params[] = {&words.device};
    CUDA_KERNEL_NODE_PARAMS given = kernel_node(kernel("tell"), BLOCKS, 1, params);
    return MADE_CU(CUgraphNode, cuGraphAddKernelNode_v2, graph, NULL, 0, &given);
}

/* As an H200 answers; NVLINK_UTIL_CENTRIC_SCHEDULING can be set, but not read. */
static bool nodes_take(int id) {
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
        return true;
    default:
        return false;
    }
}

static bool nodes_tell(int id) {
    return nodes_take(id) && id != CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING;
}

/* A device-updatable node's value has its handle, too. */
static bool same_value(int id, const CUkernelNodeAttrValue *a, const CUkernelNodeAttrValue *b) {
    if (id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
        return a->deviceUpdatableKernelNode.deviceUpdatable ==
               b->deviceUpdatableKernelNode.deviceUpdatable;
    return memcmp(a, b, sizeof *a) == 0;
}

static void node_has(CUgraphNode node, int id, const CUkernelNodeAttrValue *wanted,
                     const char *what) {
    CUkernelNodeAttrValue got;
    memset(&got, 0, sizeof got);
    CUresult result = cu.cuGraphKernelNodeGetAttribute(node, (CUkernelNodeAttrID)id, &got);
    expect(result, nodes_tell(id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, what, id);
    if (nodes_tell(id) && !same_value(id, &got, wanted))
        fail_msg("%s: attribute %d is another", what, id);
}

static void launch_graph(CUgraph graph, unsigned blocks, unsigned cluster, int id) {
    CUgraphExec exec = instantiate(graph);
    expect(cu.cuGraphUpload(exec, stream), CUDA_SUCCESS, "upload", id);
    expect(cu.cuGraphLaunch(exec, stream), CUDA_SUCCESS, "a graph", id);
    ran(blocks, cluster, "a graph with attribute", id);
}

/* One by one: set, read, copied to another node, and the graph runs with both. */
TEST(kernel_nodes_accept_or_refuse_each_attribute) {
    begin();
    EACH_ID(id) {
        CUgraph graph = MADE_CU(CUgraph, cuGraphCreate, 0);
        CUgraphNode node = add_node(graph), other = NULL;
        const CUlaunchAttribute a = good(id);
        expect(cu.cuGraphKernelNodeSetAttribute(node, (CUkernelNodeAttrID)id, &a.value),
               nodes_take(id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, "a node", id);
        node_has(node, id, &a.value, "a node");
        /* One that the device may update has no copy. */
        if (id != CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) {
            other = add_node(graph);
            OK_CU(cu.cuGraphKernelNodeCopyAttributes(other, node));
            node_has(other, id, &a.value, "a copy");
        }
        launch_graph(graph, other ? 2 * BLOCKS : BLOCKS,
                     id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ? 2 : 1, id);
        OK_CU(cu.cuGraphDestroy(graph));
    }
}

/* A capture gives the node what the launch was given, where nodes have it. */
TEST(captured_launches_pass_attributes_to_their_node) {
    begin();
    EACH_ID(id) {
        CUgraphNode node;
        size_t count = 1;
        CUlaunchAttribute a = good(id);
        bool of_node = id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
        if (id == 15 || (answer_of_launch(id) != CUDA_SUCCESS && !of_node))
            continue;
        OK_CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        expect(launch(&a, 1), CUDA_SUCCESS, "a captured launch", id);
        CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
        OK_CU(cu.cuGraphGetNodes(graph, &node, &count));
        assert_int_equal(count, 1);
        if (nodes_tell(id))
            node_has(node, id, &a.value, "a captured launch");
        if (of_node)
            assert_non_null(a.value.deviceUpdatableKernelNode.devNode);
        launch_graph(graph, BLOCKS, id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ? 2 : 1, id);
        OK_CU(cu.cuGraphDestroy(graph));
    }
}

/* ---- Streams --------------------------------------------------------------------------------- */

static bool streams_take(int id) {
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return true;
    default:
        return false;
    }
}

static void stream_has(CUstream of, int id, const CUstreamAttrValue *wanted, const char *what) {
    CUstreamAttrValue got;
    memset(&got, 0, sizeof got);
    CUresult result = cu.cuStreamGetAttribute(of, (CUstreamAttrID)id, &got);
    expect(result, streams_take(id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, what, id);
    if (streams_take(id) && memcmp(&got, wanted, sizeof got) != 0)
        fail_msg("%s: attribute %d is another", what, id);
}

TEST(streams_accept_or_refuse_each_attribute) {
    begin();
    EACH_ID(id) {
        const CUlaunchAttribute a = good(id);
        CUstream own = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
        CUstream other = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
        expect(cu.cuStreamSetAttribute(own, (CUstreamAttrID)id, &a.value),
               streams_take(id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, "a stream", id);
        stream_has(own, id, &a.value, "a stream");
        OK_CU(cu.cuStreamCopyAttributes(other, own));
        stream_has(other, id, &a.value, "a copy");
        void *params[] = {&words.device};
        OK_CU(cu.cuLaunchKernel(kernel("tell"), BLOCKS, 1, 1, 1, 1, 1, 0, own, params, NULL));
        ran(BLOCKS, 1, "in a stream with attribute", id);
        DESTROY_CU(own, other);
    }
}
