/*
 * What a launch samples: texture and surface objects, and a module's references, as the engine's
 * descriptions. Each handle is looked up once for a launch; its description lives as long as the
 * launch, and so do the pieces of sparse arrays that it refers to.
 */
#ifndef SG_LAUNCH_LAUNCH_TEXTURE_H
#define SG_LAUNCH_LAUNCH_TEXTURE_H

#include "softgpu/engine/texture.h"
#include "softgpu/module/module.h"

struct sg_launch_textures;

/* For a launch in a context, which must outlive it. NULL: out of memory. With the lock, like all of
 * these except sg_launch_piece. */
struct sg_launch_textures *sg_launch_textures_new(const struct sg_context *context);
/* NULL is allowed. */
void sg_launch_textures_end(struct sg_launch_textures *textures);
/* The handle of a module's .texref or .surfref, which is that of its reference; makes the reference
 * if necessary. 0 if the module has none of that name. OUT_OF_MEMORY. */
CUresult sg_launch_reference(const struct sg_module *module, const char *name, uint64_t *handle);
/* Takes a handle's description now, as later changes must not affect this launch. OUT_OF_MEMORY. */
CUresult sg_launch_texture_take(struct sg_launch_textures *textures, uint64_t handle);
/* The description of a handle; when out of memory one with `refused` set. NULL: the handle is not a
 * texture's or surface's. */
const struct sg_texture *sg_launch_texture(struct sg_launch_textures *textures, uint64_t handle);

/* sg_grid_launch.piece: without the lock. */
unsigned char *sg_launch_piece(const void *view, uint64_t offset, size_t size);

#endif
