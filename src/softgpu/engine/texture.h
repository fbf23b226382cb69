/*
 * Textures and surfaces as the engine sees them: descriptions of texels and of how to sample them.
 * A launch provides them by handle (sg_grid_launch.texture); nothing here knows of contexts,
 * objects or arrays.
 */
#ifndef SG_ENGINE_TEXTURE_H
#define SG_ENGINE_TEXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the bits of a channel mean. */
enum sg_texel_form {
    SG_TEXEL_UINT,
    SG_TEXEL_SINT,
    SG_TEXEL_UNORM, /* [0, 1] */
    SG_TEXEL_SNORM, /* [-1, 1]; the two smallest values are both -1 */
    SG_TEXEL_FLOAT, /* of 16 or 32 bits */
    SG_TEXEL_1010102,
    SG_TEXEL_BC1, /* blocks of 4 x 4 texels */
    SG_TEXEL_BC2,
    SG_TEXEL_BC3,
    SG_TEXEL_BC4,
    SG_TEXEL_BC4_SIGNED,
    SG_TEXEL_BC5,
    SG_TEXEL_BC5_SIGNED
};

/* With the values of CUaddress_mode. */
enum sg_address_mode { SG_ADDRESS_WRAP, SG_ADDRESS_CLAMP, SG_ADDRESS_MIRROR, SG_ADDRESS_BORDER };

/* 32,768 texels, halved until one is left. */
#define SG_TEXTURE_LEVELS 16

struct sg_texture_level {
    uint64_t address;              /* of the first texel; unused with a view */
    const void *view;              /* memory in pieces, for sg_grid_launch.piece; else NULL */
    uint64_t base;                 /* of the first texel in the view */
    uint64_t pitch, layer;         /* bytes from one row (of blocks) to the next, and from slice to
                                      slice */
    uint32_t width, height, depth; /* texels; at least 1. depth: slices or layers */
};

struct sg_texture {
    const char *refused; /* why it cannot be used, for a report; else NULL */
    bool surface;
    bool memory;  /* linear memory: one row, whose coordinates never wrap */
    bool array;   /* its bytes are not part of an allocation */
    bool layered; /* depth counts layers; for cubes, faces */
    bool cube;    /* six faces per cube */
    bool faults;  /* in pieces: an access to unmapped ones is a fault; else reads return 0 */
    unsigned char dimensions; /* 1 to 3, without layers */
    unsigned char form;       /* enum sg_texel_form */
    unsigned char channels;   /* 1 to 4 */
    unsigned char bits;       /* of a channel */
    unsigned char element;    /* bytes of a texel, or of a block of them */
    unsigned char level_count;
    struct sg_texture_level levels[SG_TEXTURE_LEVELS];

    /* How it is sampled; unused for surfaces. */
    bool normalized;          /* coordinates are in [0, 1) */
    bool integers;            /* integers are returned as they are, not scaled to 1 */
    bool srgb;                /* 8-bit channels except the fourth are sRGB */
    bool seamless;            /* cubes are filtered across edges */
    bool linear;              /* between texels */
    bool mip_linear;          /* between levels */
    unsigned char address[3]; /* enum sg_address_mode */
    unsigned anisotropy;
    float bias, least_level, most_level;
    float border[4]; /* for integers, their bits */
};

#endif
