#include "softgpu/launch/device_conditions.h"

#include <stdlib.h>

struct sg_conditions {
    unsigned refs;
    size_t count;
    atomic_uint values[];
};

struct sg_conditions *sg_conditions_new(size_t count) {
    struct sg_conditions *conditions =
        calloc(1, sizeof *conditions + count * sizeof conditions->values[0]);
    if (!conditions)
        return NULL;
    conditions->refs = 1;
    conditions->count = count;
    return conditions;
}

struct sg_conditions *sg_conditions_ref(struct sg_conditions *conditions) {
    if (conditions)
        conditions->refs++;
    return conditions;
}

void sg_conditions_unref(struct sg_conditions *conditions) {
    if (conditions && --conditions->refs == 0)
        free(conditions);
}

bool sg_conditions_set(struct sg_conditions *conditions, uint64_t handle, unsigned value) {
    if (!conditions || handle == 0 || handle > conditions->count)
        return false;
    atomic_store(&conditions->values[handle - 1], value);
    return true;
}

unsigned sg_conditions_value(const struct sg_conditions *conditions, uint64_t handle) {
    bool known = conditions && handle > 0 && handle <= conditions->count;
    return known ? atomic_load(&conditions->values[handle - 1]) : 0;
}
