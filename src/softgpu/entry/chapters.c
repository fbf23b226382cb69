/* All chapters, in the order of the reports. */
#include "softgpu/address/memory.h"
#include "softgpu/array/array.h"
#include "softgpu/context/context.h"
#include "softgpu/core/chapter.h"
#include "softgpu/device/notification.h"
#include "softgpu/external/external.h"
#include "softgpu/graph/captured.h"
#include "softgpu/graph/graph.h"
#include "softgpu/graph/graph_memory.h"
#include "softgpu/green/resource.h"
#include "softgpu/launch/launch.h"
#include "softgpu/launch/launch_run.h"
#include "softgpu/memory/allocation.h"
#include "softgpu/module/module.h"
#include "softgpu/multicast/multicast.h"
#include "softgpu/pool/pool.h"
#include "softgpu/report/report.h"
#include "softgpu/stream/stream.h"
#include "softgpu/texture/texture.h"

static const struct sg_chapter *const chapters[] = {
    &sg_address_chapter, &sg_context_chapter,  &sg_memory_chapter,    &sg_pool_chapter,
    &sg_stream_chapter,  &sg_module_chapter,   &sg_launch_chapter,    &sg_graph_chapter,
    &sg_array_chapter,   &sg_external_chapter, &sg_multicast_chapter, &sg_texture_chapter,
    &sg_report_chapter,  &sg_device_chapter,   &sg_green_chapter,
};

/* Before any call of the driver. */
__attribute__((constructor(101))) static void set_chapters(void) {
    sg_capture_graphs = &sg_graph_captures;
    sg_launch_graph_extent = sg_graph_block_extent;
    sg_launch_run_begin();
    sg_chapters_set(chapters, sizeof chapters / sizeof chapters[0]);
}
