/* Which arrays a device supports: the size table of cuArray3DCreate, from its attributes. */
#include "softgpu/array/internal.h"
#include "softgpu/device/device.h"

#define KNOWN_FLAGS 0x1ffu

struct size {
    size_t width, height, depth;
};

#define LIMIT(name) CU_DEVICE_ATTRIBUTE_MAXIMUM_##name

/* Attributes that bound a kind of array; 0: the dimension is 0. */
struct bounds {
    CUdevice_attribute width, height, depth;
};

enum kind { LINE, PLANE, SOLID, LINES, PLANES, CUBE, CUBES };

static const struct bounds texture_bounds[] = {
    [LINE] = {LIMIT(TEXTURE1D_WIDTH), 0, 0},
    [PLANE] = {LIMIT(TEXTURE2D_WIDTH), LIMIT(TEXTURE2D_HEIGHT), 0},
    [SOLID] = {LIMIT(TEXTURE3D_WIDTH), LIMIT(TEXTURE3D_HEIGHT), LIMIT(TEXTURE3D_DEPTH)},
    [LINES] = {LIMIT(TEXTURE1D_LAYERED_WIDTH), 0, LIMIT(TEXTURE1D_LAYERED_LAYERS)},
    [PLANES] = {LIMIT(TEXTURE2D_LAYERED_WIDTH), LIMIT(TEXTURE2D_LAYERED_HEIGHT),
                LIMIT(TEXTURE2D_LAYERED_LAYERS)},
    [CUBE] = {LIMIT(TEXTURECUBEMAP_WIDTH), LIMIT(TEXTURECUBEMAP_WIDTH), 0},
    [CUBES] = {LIMIT(TEXTURECUBEMAP_LAYERED_WIDTH), LIMIT(TEXTURECUBEMAP_LAYERED_WIDTH),
               LIMIT(TEXTURECUBEMAP_LAYERED_LAYERS)},
};
static const struct bounds surface_bounds[] = {
    [LINE] = {LIMIT(SURFACE1D_WIDTH), 0, 0},
    [PLANE] = {LIMIT(SURFACE2D_WIDTH), LIMIT(SURFACE2D_HEIGHT), 0},
    [SOLID] = {LIMIT(SURFACE3D_WIDTH), LIMIT(SURFACE3D_HEIGHT), LIMIT(SURFACE3D_DEPTH)},
    [LINES] = {LIMIT(SURFACE1D_LAYERED_WIDTH), 0, LIMIT(SURFACE1D_LAYERED_LAYERS)},
    [PLANES] = {LIMIT(SURFACE2D_LAYERED_WIDTH), LIMIT(SURFACE2D_LAYERED_HEIGHT),
                LIMIT(SURFACE2D_LAYERED_LAYERS)},
    [CUBE] = {LIMIT(SURFACECUBEMAP_WIDTH), LIMIT(SURFACECUBEMAP_WIDTH), 0},
    [CUBES] = {LIMIT(SURFACECUBEMAP_LAYERED_WIDTH), LIMIT(SURFACECUBEMAP_LAYERED_WIDTH),
               LIMIT(SURFACECUBEMAP_LAYERED_LAYERS)},
};
static const struct bounds alternate_bounds = {LIMIT(TEXTURE3D_WIDTH_ALTERNATE),
                                               LIMIT(TEXTURE3D_HEIGHT_ALTERNATE),
                                               LIMIT(TEXTURE3D_DEPTH_ALTERNATE)};
static const struct bounds gather_bounds = {LIMIT(TEXTURE2D_GATHER_WIDTH),
                                            LIMIT(TEXTURE2D_GATHER_HEIGHT), 0};
static const struct bounds mipmap_bounds = {LIMIT(TEXTURE2D_MIPMAPPED_WIDTH),
                                            LIMIT(TEXTURE2D_MIPMAPPED_HEIGHT), 0};
static const struct bounds mipmap_line_bounds = {LIMIT(TEXTURE1D_MIPMAPPED_WIDTH), 0, 0};

static bool within(const CUDA_ARRAY3D_DESCRIPTOR *d, const struct bounds *bounds) {
    const struct sg_context *context = sg_context_peek();
    const struct sg_device *device = sg_device(context ? context->device : 0);
    const int *attributes = device->attributes;
    return (!bounds->width || d->Width <= (size_t)attributes[bounds->width]) &&
           (!bounds->height || d->Height <= (size_t)attributes[bounds->height]) &&
           (!bounds->depth || d->Depth <= (size_t)attributes[bounds->depth]);
}

/* False for sizes and flags that describe no kind of array. */
static bool find_kind(const CUDA_ARRAY3D_DESCRIPTOR *d, enum kind *kind) {
    bool layered = (d->Flags & CUDA_ARRAY3D_LAYERED) != 0;
    if (d->Width == 0)
        return false;
    if (d->Flags & CUDA_ARRAY3D_CUBEMAP) {
        *kind = layered ? CUBES : CUBE;
        return d->Width == d->Height && d->Depth && (layered ? d->Depth % 6 == 0 : d->Depth == 6);
    }
    if (layered) {
        *kind = d->Height ? PLANES : LINES;
        return d->Depth != 0;
    }
    *kind = d->Depth ? SOLID : d->Height ? PLANE : LINE;
    return d->Height || !d->Depth;
}

static bool size_fits(const CUDA_ARRAY3D_DESCRIPTOR *d, enum kind kind, unsigned levels) {
    bool fits = within(d, &texture_bounds[kind]) || (kind == SOLID && within(d, &alternate_bounds));
    if (d->Flags & CUDA_ARRAY3D_SURFACE_LDST)
        fits = fits && within(d, &surface_bounds[kind]);
    if (d->Flags & CUDA_ARRAY3D_TEXTURE_GATHER)
        fits = fits && within(d, &gather_bounds);
    if (levels)
        fits = fits && (kind != PLANE || within(d, &mipmap_bounds)) &&
               (kind != LINE || within(d, &mipmap_line_bounds));
    return fits;
}

/* Depth textures and colour attachments exist only in graphics memory. Sparse arrays are planes and
 * solids, and not surfaces. */
static bool flags_fit(const CUDA_ARRAY3D_DESCRIPTOR *d, enum kind kind, bool graphics) {
    const unsigned tiled = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;
    const unsigned of_graphics = CUDA_ARRAY3D_DEPTH_TEXTURE | CUDA_ARRAY3D_COLOR_ATTACHMENT;
    if ((d->Flags & ~KNOWN_FLAGS) || (d->Flags & tiled) == tiled)
        return false;
    if ((d->Flags & of_graphics) && !graphics)
        return false;
    if ((d->Flags & CUDA_ARRAY3D_TEXTURE_GATHER) && kind != PLANE)
        return false;
    if (!(d->Flags & CUDA_ARRAY3D_SPARSE))
        return true;
    return (kind == PLANE || kind == SOLID || kind == PLANES) &&
           !(d->Flags & CUDA_ARRAY3D_SURFACE_LDST);
}

/* Blocks require rows; video formats require their flag, and a plane. */
static bool format_fits(const CUDA_ARRAY3D_DESCRIPTOR *d, const struct sg_format *format,
                        enum kind kind, unsigned levels) {
    const unsigned tiled = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;
    if (!sg_array_element(d->Format, d->NumChannels))
        return false;
    if (format->block > 1)
        return kind != LINE && kind != LINES;
    if (!format->video)
        return true;
    /* Planes are half the size, and frames have no mipmap levels: as recorded. */
    bool frame = levels <= 1 && d->Width % 2 == 0 && d->Height % 2 == 0;
    return (d->Flags & CUDA_ARRAY3D_VIDEO_ENCODE_DECODE) && kind == PLANE && frame &&
           !(d->Flags & tiled);
}

CUresult sg_descriptor_check(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels,
                             bool graphics) {
    const struct sg_format *format = sg_format_find(descriptor->Format);
    enum kind kind;
    if (!format || !find_kind(descriptor, &kind))
        return CUDA_ERROR_INVALID_VALUE;
    if (!size_fits(descriptor, kind, levels) || !flags_fit(descriptor, kind, graphics) ||
        !format_fits(descriptor, format, kind, levels))
        return CUDA_ERROR_INVALID_VALUE;
    bool no_surface = format->block > 1 && (descriptor->Flags & CUDA_ARRAY3D_SURFACE_LDST);
    return no_surface ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult sg_array_check(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels) {
    return sg_descriptor_check(descriptor, levels, false);
}
