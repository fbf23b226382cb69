/*
 * The runtime's types, with the names that programs know. Where a type is laid out as the driver's,
 * it is the driver's; numbers of the runtime's enums are the driver's own except where one is
 * defined here. tests/abi/test_runtime.py compares sizes, offsets and values with NVIDIA's headers
 * of both versions.
 */
#ifndef RT_CORE_TYPES_H
#define RT_CORE_TYPES_H

#include <gpumem/cuda_api.h>
#include <stddef.h>

/* RT_ABI: 12 for libcudart.so.12, 13 for libcudart.so.13. */
#if RT_ABI == 12
#define RT_VERSION 12090
#else
#define RT_VERSION 13050
#endif

typedef enum cudaError {
#define RT_ERROR(value, name, text)   name = value,
#define RT_ERROR13(value, name, text) name = value,
#include "runtime/core/errors.def"
} cudaError_t;

/* Handles. */
typedef CUstream cudaStream_t;
typedef CUevent cudaEvent_t;
typedef CUgraph cudaGraph_t;
typedef CUgraphNode cudaGraphNode_t;
typedef CUgraphExec cudaGraphExec_t;
typedef CUgraphConditionalHandle cudaGraphConditionalHandle;
typedef CUfunction cudaFunction_t;
typedef CUkernel cudaKernel_t;
typedef CUlibrary cudaLibrary_t;
typedef CUmemoryPool cudaMemPool_t;
typedef CUarray cudaArray_t;
typedef CUarray cudaArray_const_t;
typedef CUmipmappedArray cudaMipmappedArray_t;
typedef CUmipmappedArray cudaMipmappedArray_const_t;
typedef CUtexObject cudaTextureObject_t;
typedef CUsurfObject cudaSurfaceObject_t;
typedef CUexternalMemory cudaExternalMemory_t;
typedef CUexternalSemaphore cudaExternalSemaphore_t;
typedef CUuserObject cudaUserObject_t;
typedef struct cudaExecutionContext_st *cudaExecutionContext_t;

/* Numbers that are the driver's. */
typedef CUdevice_attribute cudaDeviceAttr;
typedef CUdevice_P2PAttribute cudaDeviceP2PAttr;
typedef CUlimit cudaLimit;
typedef CUfunc_cache cudaFuncCache;
typedef CUfunction_attribute cudaFuncAttribute;
typedef CUmemPool_attribute cudaMemPoolAttr;
typedef CUgraphMem_attribute cudaGraphMemAttributeType;
typedef CUmem_advise cudaMemoryAdvise;
typedef CUmem_range_attribute cudaMemRangeAttribute;
typedef CUmemAllocationHandleType cudaMemAllocationHandleType;
typedef CUmemAllocationType cudaMemAllocationType;
typedef CUmemAccess_flags cudaMemAccessFlags;
typedef CUstreamCaptureMode cudaStreamCaptureMode;
typedef CUstreamCaptureStatus cudaStreamCaptureStatus;
typedef CUgraphNodeType cudaGraphNodeType;
typedef CUjit_option cudaJitOption;
typedef CUlibraryOption cudaLibraryOption;
typedef CUdriverProcAddressQueryResult cudaDriverEntryPointQueryResult;
typedef CUlaunchAttributeID cudaLaunchAttributeID;

/* Structs that are the driver's. */
typedef CUuuid cudaUUID_t;
typedef CUmemLocation cudaMemLocation;
typedef CUmemAccessDesc cudaMemAccessDesc;
typedef CUmemPoolProps cudaMemPoolProps;
typedef CUmemPoolPtrExportData cudaMemPoolPtrExportData;
typedef CUipcMemHandle cudaIpcMemHandle_t;
typedef CUipcEventHandle cudaIpcEventHandle_t;
typedef CUgraphEdgeData cudaGraphEdgeData;
typedef CUlaunchAttribute cudaLaunchAttribute;
typedef CUlaunchAttributeValue cudaLaunchAttributeValue;
typedef CUgraphExecUpdateResultInfo cudaGraphExecUpdateResultInfo;
typedef CUDA_HOST_NODE_PARAMS cudaHostNodeParams;
typedef CUDA_MEM_ALLOC_NODE_PARAMS cudaMemAllocNodeParams;
typedef CUDA_ARRAY_SPARSE_PROPERTIES cudaArraySparseProperties;
typedef CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS cudaExternalSemaphoreSignalParams;
typedef CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS cudaExternalSemaphoreWaitParams;

typedef CUhostFn cudaHostFn_t;
typedef void(CUDAAPI *cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status,
                                            void *userData);

typedef struct dim3 {
    unsigned int x, y, z;
} dim3;

typedef enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4,
} cudaMemcpyKind;

typedef enum cudaMemoryType {
    cudaMemoryTypeUnregistered = 0,
    cudaMemoryTypeHost = 1,
    cudaMemoryTypeDevice = 2,
    cudaMemoryTypeManaged = 3,
} cudaMemoryType;

typedef struct cudaExtent {
    size_t width, height, depth;
} cudaExtent;

typedef struct cudaPos {
    size_t x, y, z;
} cudaPos;

typedef struct cudaPitchedPtr {
    void *ptr;
    size_t pitch;
    size_t xsize, ysize;
} cudaPitchedPtr;

typedef struct cudaMemcpy3DParms {
    cudaArray_t srcArray;
    cudaPos srcPos;
    cudaPitchedPtr srcPtr;
    cudaArray_t dstArray;
    cudaPos dstPos;
    cudaPitchedPtr dstPtr;
    cudaExtent extent;
    cudaMemcpyKind kind;
} cudaMemcpy3DParms;

typedef struct cudaMemcpy3DPeerParms {
    cudaArray_t srcArray;
    cudaPos srcPos;
    cudaPitchedPtr srcPtr;
    int srcDevice;
    cudaArray_t dstArray;
    cudaPos dstPos;
    cudaPitchedPtr dstPtr;
    int dstDevice;
    cudaExtent extent;
} cudaMemcpy3DPeerParms;

typedef struct cudaMemsetParams {
    void *dst;
    size_t pitch;
    unsigned int value;
    unsigned int elementSize;
    size_t width, height;
} cudaMemsetParams;

typedef struct cudaKernelNodeParams {
    void *func;
    dim3 gridDim, blockDim;
    unsigned int sharedMemBytes;
    void **kernelParams;
    void **extra;
} cudaKernelNodeParams;

typedef struct cudaMemcpyNodeParams {
    int flags;
    int reserved[3];
    cudaMemcpy3DParms copyParams;
} cudaMemcpyNodeParams;

typedef struct cudaConditionalNodeParams {
    cudaGraphConditionalHandle handle;
    CUgraphConditionalNodeType type;
    unsigned int size;
    cudaGraph_t *phGraph_out;
#if RT_ABI >= 13
    cudaExecutionContext_t ctx;
#endif
} cudaConditionalNodeParams;

typedef struct cudaGraphNodeParams {
    cudaGraphNodeType type;
    int reserved0[3];
    union {
        long long reserved1[29];
        cudaKernelNodeParams kernel;
        cudaMemcpyNodeParams memcpy;
        cudaMemsetParams memset;
        CUDA_HOST_NODE_PARAMS_v2 host;
        CUDA_CHILD_GRAPH_NODE_PARAMS graph;
        CUDA_EVENT_WAIT_NODE_PARAMS eventWait;
        CUDA_EVENT_RECORD_NODE_PARAMS eventRecord;
        CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2 extSemSignal;
        CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2 extSemWait;
        CUDA_MEM_ALLOC_NODE_PARAMS_v2 alloc;
        CUDA_MEM_FREE_NODE_PARAMS free;
        cudaConditionalNodeParams conditional;
    };
    long long reserved2;
} cudaGraphNodeParams;

typedef struct cudaLaunchConfig_st {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned int numAttrs;
} cudaLaunchConfig_t;

typedef struct cudaPointerAttributes {
    cudaMemoryType type;
    int device;
    void *devicePointer;
    void *hostPointer;
#if RT_ABI >= 13
    union {
        int localityDomainOrdinal;
        long unused;
    };
    long reserved[7];
#endif
} cudaPointerAttributes;

typedef struct cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock;
    int numRegs;
    int ptxVersion, binaryVersion;
    int cacheModeCA;
    int maxDynamicSharedSizeBytes;
    int preferredShmemCarveout;
    int clusterDimMustBeSet;
    int requiredClusterWidth, requiredClusterHeight, requiredClusterDepth;
    int clusterSchedulingPolicyPreference;
    int nonPortableClusterSizeAllowed;
    int reserved[16];
} cudaFuncAttributes;

typedef enum cudaChannelFormatKind {
    cudaChannelFormatKindSigned = 0,
    cudaChannelFormatKindUnsigned = 1,
    cudaChannelFormatKindFloat = 2,
    cudaChannelFormatKindNone = 3,
} cudaChannelFormatKind;

typedef struct cudaChannelFormatDesc {
    int x, y, z, w;
    cudaChannelFormatKind f;
} cudaChannelFormatDesc;

typedef enum cudaResourceType {
    cudaResourceTypeArray = 0,
    cudaResourceTypeMipmappedArray = 1,
    cudaResourceTypeLinear = 2,
    cudaResourceTypePitch2D = 3,
} cudaResourceType;

typedef struct cudaResourceDesc {
    cudaResourceType resType;
    union {
        struct {
            cudaArray_t array;
        } array;
        struct {
            cudaMipmappedArray_t mipmap;
        } mipmap;
        struct {
            void *devPtr;
            cudaChannelFormatDesc desc;
            size_t sizeInBytes;
        } linear;
        struct {
            void *devPtr;
            cudaChannelFormatDesc desc;
            size_t width, height, pitchInBytes;
        } pitch2D;
#if RT_ABI >= 13
        struct {
            int reserved[32];
        } reserved;
#endif
    } res;
#if RT_ABI >= 13
    unsigned int flags;
#endif
} cudaResourceDesc;

typedef struct cudaResourceViewDesc {
    CUresourceViewFormat format;
    size_t width, height, depth;
    unsigned int firstMipmapLevel, lastMipmapLevel;
    unsigned int firstLayer, lastLayer;
#if RT_ABI >= 13
    unsigned int reserved[16];
#endif
} cudaResourceViewDesc;

typedef struct cudaTextureDesc {
    CUaddress_mode addressMode[3];
    CUfilter_mode filterMode;
    int readMode; /* 0: as the elements are; 1: as fractions */
    int sRGB;
    float borderColor[4];
    int normalizedCoords;
    unsigned int maxAnisotropy;
    CUfilter_mode mipmapFilterMode;
    float mipmapLevelBias;
    float minMipmapLevelClamp, maxMipmapLevelClamp;
    int disableTrilinearOptimization;
    int seamlessCubemap;
} cudaTextureDesc;

/* 12's structs end where 13's and the driver's have what is reserved. */
typedef struct cudaExternalMemoryHandleDesc {
    CUexternalMemoryHandleType type;
    union {
        int fd;
        struct {
            void *handle;
            const void *name;
        } win32;
        const void *nvSciBufObject;
    } handle;
    unsigned long long size;
    unsigned int flags;
#if RT_ABI >= 13
    unsigned int reserved[16];
#endif
} cudaExternalMemoryHandleDesc;

typedef struct cudaExternalMemoryBufferDesc {
    unsigned long long offset, size;
    unsigned int flags;
#if RT_ABI >= 13
    unsigned int reserved[16];
#endif
} cudaExternalMemoryBufferDesc;

typedef struct cudaExternalMemoryMipmappedArrayDesc {
    unsigned long long offset;
    cudaChannelFormatDesc formatDesc;
    cudaExtent extent;
    unsigned int flags, numLevels;
#if RT_ABI >= 13
    unsigned int reserved[16];
#endif
} cudaExternalMemoryMipmappedArrayDesc;

#if RT_ABI == 12
/* Of programs built before 11.2. */
typedef struct cudaExternalSemaphoreSignalParams_v1 {
    struct {
        struct {
            unsigned long long value;
        } fence;
        union {
            void *fence;
            unsigned long long reserved;
        } nvSciSync;
        struct {
            unsigned long long key;
        } keyedMutex;
    } params;
    unsigned int flags;
} cudaExternalSemaphoreSignalParams_v1;

typedef struct cudaExternalSemaphoreWaitParams_v1 {
    struct {
        struct {
            unsigned long long value;
        } fence;
        union {
            void *fence;
            unsigned long long reserved;
        } nvSciSync;
        struct {
            unsigned long long key;
            unsigned int timeoutMs;
        } keyedMutex;
    } params;
    unsigned int flags;
} cudaExternalSemaphoreWaitParams_v1;
#endif

typedef struct cudaExternalSemaphoreHandleDesc {
    CUexternalSemaphoreHandleType type;
    union {
        int fd;
        struct {
            void *handle;
            const void *name;
        } win32;
        const void *nvSciSyncObj;
    } handle;
    unsigned int flags;
#if RT_ABI >= 13
    unsigned int reserved[16];
#endif
} cudaExternalSemaphoreHandleDesc;

/* 13 has lost some members, and given names to what 12 reserves. */
typedef struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    char luid[8];
    unsigned int luidDeviceNodeMask;
    size_t totalGlobalMem, sharedMemPerBlock;
    int regsPerBlock, warpSize;
    size_t memPitch;
    int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
#if RT_ABI < 13
    int clockRate;
#endif
    size_t totalConstMem;
    int major, minor;
    size_t textureAlignment, texturePitchAlignment;
#if RT_ABI < 13
    int deviceOverlap;
#endif
    int multiProcessorCount;
#if RT_ABI < 13
    int kernelExecTimeoutEnabled;
#endif
    int integrated, canMapHostMemory;
#if RT_ABI < 13
    int computeMode;
#endif
    int maxTexture1D, maxTexture1DMipmap;
#if RT_ABI < 13
    int maxTexture1DLinear;
#endif
    int maxTexture2D[2], maxTexture2DMipmap[2], maxTexture2DLinear[3], maxTexture2DGather[2];
    int maxTexture3D[3], maxTexture3DAlt[3], maxTextureCubemap;
    int maxTexture1DLayered[2], maxTexture2DLayered[3], maxTextureCubemapLayered[2];
    int maxSurface1D, maxSurface2D[2], maxSurface3D[3];
    int maxSurface1DLayered[2], maxSurface2DLayered[3];
    int maxSurfaceCubemap, maxSurfaceCubemapLayered[2];
    size_t surfaceAlignment;
    int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver;
    int asyncEngineCount, unifiedAddressing;
#if RT_ABI < 13
    int memoryClockRate;
#endif
    int memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize, maxThreadsPerMultiProcessor;
    int streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID;
    int hostNativeAtomicSupported;
#if RT_ABI < 13
    int singleToDoublePrecisionPerfRatio;
#endif
    int pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported;
    int canUseHostPointerForRegisteredMem, cooperativeLaunch;
#if RT_ABI < 13
    int cooperativeMultiDeviceLaunch;
#endif
    size_t sharedMemPerBlockOptin;
    int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost;
    int maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
    size_t reservedSharedMemPerBlock;
    /* Programs built with CUDA 11 know the members until here. */
    int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported;
    int timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
    unsigned int gpuDirectRDMAFlushWritesOptions;
    int gpuDirectRDMAWritesOrdering;
    unsigned int memoryPoolSupportedHandleTypes;
    int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch;
    int unifiedFunctionPointers;
#if RT_ABI < 13
    int reserved[63];
#else
    int deviceNumaConfig, deviceNumaId, mpsEnabled, hostNumaId;
    unsigned int gpuPciDeviceID, gpuPciSubsystemID;
    int hostNumaMultinodeIpcSupported;
    int reserved[56];
#endif
} cudaDeviceProp;

#endif
