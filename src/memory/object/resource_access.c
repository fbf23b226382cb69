/* Who may use all memory of a resource: asked of the one in a chain of wrappers that has it. */
#include "base/cancel.h"
#include "memory/core/driver_error.h"
#include "memory/object/resource.h"

static gpumem_status find(gpumem_resource *resource, const char *call, gpumem_resource **found) {
    gpumem_resource *innermost = resource;
    while (!innermost->access && innermost->upstream)
        innermost = innermost->upstream;
    if (!innermost->access)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "%s: the driver decides who may use memory of a %s resource; it can be set "
                       "for virtual resources and pools",
                       call, innermost->kind);
    *found = innermost;
    return GPUMEM_OK;
}

gpumem_status gpumem_resource_set_access(gpumem_resource *resource, int ordinal,
                                         gpumem_access access) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_resource_set_access";
    gpumem_resource *found = NULL;
    GM_CHECK(resource, call);
    GM_REQUIRE((unsigned)access <= GPUMEM_ACCESS_NONE, "%s: unknown access %d", call, (int)access);
    gpumem_status status = find(resource, call, &found);
    return status == GPUMEM_OK ? found->access->set(found, ordinal, access) : status;
}

gpumem_status gpumem_resource_get_access(gpumem_resource *resource, int ordinal,
                                         gpumem_access *access) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_resource_get_access";
    gpumem_resource *found = NULL;
    GM_CHECK(resource, call);
    GM_REQUIRE(access, "%s: access is NULL", call);
    gpumem_status status = find(resource, call, &found);
    return status == GPUMEM_OK ? found->access->get(found, ordinal, access) : status;
}
