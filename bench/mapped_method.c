#include "mapped_method.h"
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gpumem_mapped_method chosen(void) {
    const char *name = getenv("GPUMEM_MAPPED_METHOD");
    if (!name || !*name)
        return GPUMEM_MAPPED_ANY;
    for (int m = GPUMEM_MAPPED_ANY; m <= GPUMEM_MAPPED_HOST; m++)
        if (strcmp(name, gpumem_mapped_method_name((gpumem_mapped_method)m)) == 0)
            return (gpumem_mapped_method)m;
    bench_fail("GPUMEM_MAPPED_METHOD: %s is no method; vulkan-import is one", name);
}

gpumem_resource *mapped_resource(gpumem_device *device, gpumem_mapped_method *method) {
    gpumem_resource *resource = NULL;
    gpumem_mapped_method wanted = chosen();
    if (gpumem_mapped_resource_create(
            device,
            GPUMEM_MAPPED_OPTIONS(.method = wanted, .method_strict = wanted != GPUMEM_MAPPED_ANY),
            &resource) != GPUMEM_OK)
        bench_fail("mapped resource: %s", gpumem_last_error()->message);
    gpumem_mapped_info info = {.size = sizeof info};
    if (gpumem_mapped_get_info(resource, &info) != GPUMEM_OK)
        bench_fail("mapped resource: %s", gpumem_last_error()->message);
    printf("method: %s%s\n", gpumem_mapped_method_name(info.method),
           info.coherent ? "" : ", with flushes");
    *method = info.method;
    return resource;
}
