/* Attributes of kernel nodes. */
#include "softgpu/core/calls.h"
#include "softgpu/graph/nodes.h"

#include <stdlib.h>
#include <string.h>

static bool make_room(struct sg_node *node) {
    if (!node->attributes)
        node->attributes = calloc(CU_LAUNCH_ATTRIBUTE_MAX, sizeof *node->attributes);
    if (!node->attribute_set)
        node->attribute_set = calloc(CU_LAUNCH_ATTRIBUTE_MAX, sizeof *node->attribute_set);
    return node->attributes && node->attribute_set;
}

bool sg_node_attributes_copy(struct sg_node *to, const struct sg_node *from) {
    if (!from->attributes || !from->attribute_set)
        return true;
    if (!make_room(to))
        return false;
    memcpy(to->attributes, from->attributes, CU_LAUNCH_ATTRIBUTE_MAX * sizeof *to->attributes);
    memcpy(to->attribute_set, from->attribute_set,
           CU_LAUNCH_ATTRIBUTE_MAX * sizeof *to->attribute_set);
    return true;
}
