/* Functions that one chapter offers to others, refused as long as the chapter is not there: a
 * definition takes the place of the weak one here. */
#include "softgpu/array/array.h"
#include "softgpu/graph/capture.h"
#include "softgpu/graph/exec.h"
#include "softgpu/image/function.h"

#define ABSENT(result, function, parameters, answer)                                               \
    __attribute__((weak)) result function parameters {                                             \
        return answer;                                                                             \
    }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
/* graph/ */
ABSENT(struct sg_graph *, sg_graph_get, (CUgraph handle), NULL)
ABSENT(struct sg_node *, sg_node_get, (CUgraphNode handle), NULL)
ABSENT(struct sg_graph *, sg_graph_new, (void), NULL)
ABSENT(void, sg_graph_free, (struct sg_graph * graph), )
ABSENT(struct sg_graph *, sg_graph_clone, (const struct sg_graph *graph), NULL)
ABSENT(CUresult, sg_graph_add,
       (struct sg_graph * graph, struct sg_node *const *dependencies, const CUgraphEdgeData *data,
        size_t count, CUgraphNodeParams *params, struct sg_node **node),
       CUDA_ERROR_NOT_SUPPORTED)
ABSENT(CUresult, sg_params_check, (const CUgraphNodeParams *params), CUDA_ERROR_NOT_SUPPORTED)
ABSENT(CUresult, sg_params_copy, (CUgraphNodeParams * to, const CUgraphNodeParams *from),
       CUDA_ERROR_NOT_SUPPORTED)
ABSENT(void, sg_params_free, (CUgraphNodeParams * params), )
ABSENT(CUgraphExecUpdateResult, sg_params_compare,
       (const CUgraphNodeParams *now, const CUgraphNodeParams *wanted), CU_GRAPH_EXEC_UPDATE_ERROR)
ABSENT(CUresult, sg_graph_memory_reserve, (CUgraphNodeParams * params), CUDA_ERROR_NOT_SUPPORTED)
ABSENT(void, sg_graph_memory_retain, (CUdeviceptr address), )
ABSENT(void, sg_graph_memory_release, (CUdeviceptr address), )
ABSENT(bool, sg_graph_memory_is, (CUdeviceptr address), false)
ABSENT(bool, sg_held_objects_copy, (struct sg_held_object * *to, const struct sg_held_object *from),
       false)
ABSENT(void, sg_held_objects_drop, (struct sg_held_object * *objects), )
ABSENT(struct sg_condition *, sg_condition_get, (CUgraphConditionalHandle handle), NULL)
ABSENT(struct sg_exec *, sg_exec_get, (CUgraphExec handle), NULL)
ABSENT(CUresult, sg_work_make,
       (struct sg_context * context, const CUgraphNodeParams *params, struct sg_op **op),
       CUDA_ERROR_NOT_SUPPORTED)
ABSENT(CUresult, sg_capture_node, (struct sg_stream * stream, CUgraphNodeParams *params),
       CUDA_ERROR_NOT_SUPPORTED)
ABSENT(CUresult, sg_capture_node_at,
       (struct sg_stream * stream, CUgraphNodeParams *params, struct sg_node **node),
       CUDA_ERROR_NOT_SUPPORTED)
ABSENT(CUresult, sg_capture_refuse, (struct sg_stream * stream),
       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
ABSENT(CUresult, sg_capture_unsafe, (void), CUDA_SUCCESS)
/* image/ */
ABSENT(CUresult, sg_image_read,
       (const void *data, size_t size, const struct sg_image_options *options,
        struct sg_image_log *log, struct sg_image **image),
       CUDA_ERROR_NOT_SUPPORTED)
ABSENT(void, sg_image_free, (struct sg_image * image), )
ABSENT(const struct sg_image_function *, sg_image_find_function,
       (const struct sg_image *image, const char *name), NULL)
ABSENT(const struct sg_image_variable *, sg_image_find_variable,
       (const struct sg_image *image, const char *name), NULL)
ABSENT(CUresult, sg_image_link,
       (const struct sg_image *const *images, size_t count, const struct sg_image_options *options,
        struct sg_image_log *log, unsigned char **bytes, size_t *size),
       CUDA_ERROR_NOT_SUPPORTED)
ABSENT(CUresult, sg_function_from_handle, (CUfunction handle, struct sg_function **function),
       CUDA_ERROR_INVALID_HANDLE)
ABSENT(CUresult, sg_function_of_kernel,
       (CUkernel kernel, struct sg_context *context, struct sg_function **function),
       CUDA_ERROR_INVALID_HANDLE)
/* array/ */
ABSENT(struct sg_array *, sg_array_get, (CUarray handle), NULL)
ABSENT(struct sg_mipmap *, sg_mipmap_get, (CUmipmappedArray handle), NULL)
ABSENT(unsigned, sg_array_element, (CUarray_format format, unsigned channels), 0)
ABSENT(CUresult, sg_array_check, (const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels),
       CUDA_ERROR_NOT_SUPPORTED)
ABSENT(CUresult, sg_mipmap_over,
       (struct sg_context * context, const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels,
        CUdeviceptr address, size_t size, struct sg_mipmap **mipmap),
       CUDA_ERROR_NOT_SUPPORTED)
ABSENT(void, sg_mipmap_free, (struct sg_mipmap * mipmap), )
#pragma GCC diagnostic pop
