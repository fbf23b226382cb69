/* Initial values of .texref, .samplerref and .surfref: named fields in braces. */
#include "softgpu/ptx/ptx.h"

#include "softgpu/image/image.h"

/* What a symbol stands for; all other values are numbers. */
static bool value_of(struct sg_ptx *ptx, uint64_t *value) {
    static const char *const modes[] = {"wrap", "mirror", "clamp_ogl", "clamp_to_edge",
                                        "clamp_to_border"};
    static const char *const filters[] = {"nearest", "linear"};
    for (unsigned i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (sg_ptx_is(ptx, modes[i])) {
            *value = i;
            return sg_ptx_next(ptx);
        }
    for (unsigned i = 0; i < sizeof filters / sizeof filters[0]; i++)
        if (sg_ptx_is(ptx, filters[i])) {
            *value = i;
            return sg_ptx_next(ptx);
        }
    return sg_ptx_integer(ptx, value);
}

static bool field(struct sg_ptx *ptx, struct sg_ptx_type *type) {
    static const struct {
        const char *name;
        unsigned kinds; /* bits of the opaque types that have it */
        unsigned shift, bits;
    } fields[] = {
#define TEXTURE (1u << SG_OPAQUE_TEXTURE)
#define SURFACE (1u << SG_OPAQUE_SURFACE)
#define SAMPLER (1u << SG_OPAQUE_SAMPLER)
        {"addr_mode_0", TEXTURE | SAMPLER, 0, 3},
        {"addr_mode_1", TEXTURE | SAMPLER, 3, 3},
        {"addr_mode_2", TEXTURE | SAMPLER, 6, 3},
        {"filter_mode", TEXTURE | SAMPLER, 9, 1},
        {"force_unnormalized_coords", SAMPLER, 10, 1},
        {"width", TEXTURE | SURFACE, 0, 0},
        {"height", TEXTURE | SURFACE, 0, 0},
        {"depth", TEXTURE | SURFACE, 0, 0},
        {"channel_data_type", TEXTURE | SURFACE, 0, 0},
        {"channel_order", TEXTURE | SURFACE, 0, 0},
        {"array_size", TEXTURE | SURFACE, 0, 0},
        {"normalized_coords", TEXTURE, 0, 0},
        {"num_mipmap_levels", TEXTURE, 0, 0},
        {"num_samples", TEXTURE, 0, 0},
        {"memory_layout", SURFACE, 0, 0},
#undef TEXTURE
#undef SURFACE
#undef SAMPLER
    };
    for (unsigned i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        uint64_t value;
        if (!(fields[i].kinds >> type->opaque & 1) || !sg_ptx_is(ptx, fields[i].name))
            continue;
        if (!sg_ptx_next(ptx) || !sg_ptx_expect(ptx, "=") || !value_of(ptx, &value))
            return false;
        uint32_t mask = ((1u << fields[i].bits) - 1) << fields[i].shift;
        if (fields[i].bits && value >> fields[i].bits)
            return sg_ptx_wrong(ptx, "a value that the field '%s' does not have", fields[i].name);
        type->sampler = (type->sampler & ~mask) | ((uint32_t)(value << fields[i].shift) & mask);
        return true;
    }
    return sg_ptx_wrong(ptx, "a field that this opaque type does not have");
}

bool sg_ptx_opaque_initial(struct sg_ptx *ptx, struct sg_ptx_variable *variable) {
    if (!sg_ptx_expect(ptx, "{"))
        return false;
    variable->type.sampler = SG_SAMPLER_GIVEN;
    if (sg_ptx_accept(ptx, "}"))
        return true;
    do {
        if (!field(ptx, &variable->type))
            return false;
    } while (sg_ptx_accept(ptx, ","));
    return sg_ptx_expect(ptx, "}");
}
