#ifndef SG_GRAPH_CAPTURED_H
#define SG_GRAPH_CAPTURED_H

#include "softgpu/stream/capture.h"

extern const struct sg_capture_graphs sg_graph_captures;

#endif
