/*
 * Texture and surface objects, and the references of the older interface: descriptions that are
 * checked, stored and read back; launches make of them what kernels sample (launch_texture.c).
 * Everything here requires the lock.
 */
#ifndef SG_TEXTURE_TEXTURE_H
#define SG_TEXTURE_TEXTURE_H

#include "softgpu/context/context.h"
#include "softgpu/core/chapter.h"

/* Every bit that a texture's flags may have, two of them unnamed. Cubemaps allow one more. */
#define SG_TEXTURE_FLAGS                                                                           \
    ((unsigned)(CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | 0x4 | 0x8 |             \
                CU_TRSF_SRGB | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION))

/* ---- Objects (object.c) ---------------------------------------------------------------------- */

/* Objects are numbered from 1 in each context, textures and surfaces together, as on an H200: the
 * number is the handle, and means nothing in another context. */
struct sg_sampler {
    bool surface, has_view;
    size_t number;
    struct sg_origin origin;
    uint64_t ended; /* when it was destroyed, in the order of launches; 0: it is an object */
    struct sg_sampler *next_ended;
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC texture;
    CUDA_RESOURCE_VIEW_DESC view;
};

/* One per context; NULL in the context until the first object. */
struct sg_samplers;

/* A launch, which samples by whatever numbers its kernel has: objects that were destroyed after it
 * was made are kept until it ends. */
struct sg_sampler_user {
    uint64_t since; /* in the order of launches and of ends of objects */
    struct sg_sampler_user *previous, *next;
};
void sg_sampler_user_begin(struct sg_sampler_user *user);
void sg_sampler_user_end(struct sg_sampler_user *user);

/* The object of a number in a context, as kernels name it, or what was one: an H200 samples by a
 * destroyed object as long as no other has its number. The last SG_SAMPLERS_KEPT are found, and all
 * that a launch may still need. NULL: there is none. */
#define SG_SAMPLERS_KEPT 4096u
const struct sg_sampler *sg_sampler_find(const struct sg_context *context, uint64_t number);

/* ---- Checks (check.c) ------------------------------------------------------------------------ */

/* Checks for cuTexObjectCreate; invalid address modes of dimensions that the resource lacks become
 * CLAMP. INVALID_VALUE. */
CUresult sg_texture_check(struct sg_sampler *sampler, const struct sg_context *context);
/* Checks for cuSurfObjectCreate. */
CUresult sg_surface_check(const CUDA_RESOURCE_DESC *resource);

/* ---- References (reference.c) ---------------------------------------------------------------- */

struct sg_module;

enum sg_bound { SG_BOUND_NOTHING, SG_BOUND_ADDRESS, SG_BOUND_ARRAY, SG_BOUND_MIPMAP };

/* A CUtexref or, with `surface`, a CUsurfref. */
struct sg_reference {
    uint64_t handle;
    bool surface;
    struct sg_context *context;
    const struct sg_module *module; /* that declares it, or NULL */
    const char *name;               /* the module's */
    struct sg_reference *next;      /* in the context */
    enum sg_bound bound;
    CUdeviceptr address;
    size_t bytes;                /* from the address on, bound as one row */
    size_t width, height, pitch; /* bound as rows: pitch is not 0 */
    CUarray array;
    CUmipmappedArray mipmap;
    CUaddress_mode address_mode[3];
    CUfilter_mode filter, mipmap_filter;
    CUarray_format format;
    int channels;
    unsigned flags, anisotropy;
    float bias, least_level, most_level, border[4];
};

/* A new one; NULL when out of memory. */
struct sg_reference *sg_reference_new(struct sg_context *context, bool surface);
/* Ends one that no module declares. */
void sg_reference_free(struct sg_reference *reference);
/* The module's reference of that name (which the caller has found in its image), created on first
 * request. OUT_OF_MEMORY. */
CUresult sg_reference_of_module(const struct sg_module *module, struct sg_context *context,
                                const char *name, bool surface, struct sg_reference **reference);
/* Ends those of a module that is being unloaded. */
void sg_references_module_end(const struct sg_module *module, struct sg_context *context);
void sg_references_context_end(struct sg_context *context);
struct sg_reference *sg_reference_get(CUtexref handle);
/* Whether it is bound to memory, or to an array that still exists. */
bool sg_reference_bound(const struct sg_reference *reference);

extern const struct sg_chapter sg_texture_chapter;

#endif
