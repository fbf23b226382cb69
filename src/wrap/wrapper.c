#include "wrap/wrapper.h"

#include "memory/object/resource.h"

gpumem_status gm_wrapper_make(struct gm_wrapper *wrapper, gpumem_resource *upstream,
                              const struct gm_wrapper_ops *own, gpumem_resource **resource) {
    const gpumem_resource_ops ops = {
        .size = sizeof ops,
        .kind = own->kind,
        .allocate = own->allocate,
        .deallocate = own->deallocate,
        .resize = upstream->ops.resize ? own->resize : NULL,
        .properties = gm_wrapper_properties,
        .trim = gm_wrapper_trim,
        .destroy = own->destroy,
    };
    wrapper->upstream = upstream;
    gpumem_status status = gm_resource_make(upstream->device, &ops, wrapper, upstream, resource);
    if (status != GPUMEM_OK) {
        own->destroy(wrapper);
        return status;
    }
    (*resource)->transparent = own->transparent;
    (*resource)->enters = upstream->enters;
    (*resource)->moved = own->moved;
    gm_describe_set(*resource, own->describe);
    return GPUMEM_OK;
}
