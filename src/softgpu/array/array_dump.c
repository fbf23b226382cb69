/* Arrays in the state dump and the leak report. */
#include "softgpu/array/internal.h"
#include "softgpu/core/chapter.h"
#include "softgpu/core/text.h"

struct lines {
    struct sg_text *text;
    unsigned number;
};

static void line_of(struct lines *lines, const char *what, const CUDA_ARRAY3D_DESCRIPTOR *d,
                    int device, unsigned levels, const struct sg_tiles *tiles) {
    sg_text_line(lines->text,
                 "%s %u: device %d, %zu x %zu x %zu, format 0x%x, %u channels, flags 0x%x, "
                 "%u levels, %zu of %zu pieces mapped",
                 what, ++lines->number, device, d->Width, d->Height, d->Depth, (unsigned)d->Format,
                 d->NumChannels, d->Flags, levels, tiles ? tiles->mapped : 0,
                 tiles ? tiles->count : 0);
}

/* Levels and planes are identified by the array they belong to. */
static void array_line(uint64_t handle, void *object, void *user) {
    const struct sg_array *array = object;
    struct lines *lines = user;
    if (array->gone || array->mipmap || array->whole)
        return;
    sg_text_handle(lines->text, handle, array->context);
    line_of(user, "array", &array->descriptor, array->context->device, 1,
            array->view ? array->view->tiles : NULL);
}

static void mipmap_line(uint64_t handle, void *object, void *user) {
    const struct sg_mipmap *mipmap = object;
    struct lines *lines = user;
    if (mipmap->gone)
        return;
    sg_text_handle(lines->text, handle, mipmap->context);
    line_of(user, "mipmapped array", &mipmap->descriptor, mipmap->context->device,
            mipmap->level_count, mipmap->tiles);
}

static void dump(struct sg_text *text) {
    struct lines arrays = {text, 0}, mipmaps = {text, 0};
    sg_handle_each(SG_KIND_ARRAY, array_line, &arrays);
    sg_handle_each(SG_KIND_MIPMAP, mipmap_line, &mipmaps);
}

static void leaks(struct sg_text *text) {
    dump(text);
}

const struct sg_chapter sg_array_chapter = {
    .dump = dump,
    .leaks = leaks,
    .leak_kind = SG_LEAK_MEMORY,
    .context_end = {[SG_END_ARRAYS] = sg_arrays_context_end},
};
