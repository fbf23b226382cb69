/*
 * Which of the functions that no input defines are missing: those that something in the result
 * calls. nvlink drops what no entry reaches and no variable points to before it looks for undefined
 * names. So does an H200, which links libcudadevrt.a with all its undefined names.
 */
#include "softgpu/link/link_names.h"

#include <stdlib.h>
#include <string.h>

struct reach {
    struct sg_link_names *names;
    struct sg_name_table codes; /* scope: the image's number */
    size_t *first;              /* by image: where its functions begin in these: */
    bool *seen;
    struct place {
        size_t image, code;
    } * queue;
    size_t queued;
};

static bool begin(struct reach *reach) {
    const struct sg_link_names *names = reach->names;
    size_t all = 0, other;
    reach->first = calloc(names->count + 1, sizeof *reach->first);
    for (size_t i = 0; reach->first && i < names->count; i++) {
        reach->first[i] = all;
        all += names->images[i]->code_count;
    }
    reach->seen = calloc(all + 1, sizeof *reach->seen);
    reach->queue = calloc(all + 1, sizeof *reach->queue);
    if (!reach->first || !reach->seen || !reach->queue)
        return false;
    for (size_t i = 0; i < names->count; i++) {
        const struct sg_image *image = names->images[i];
        for (size_t c = 0; c < image->code_count; c++) {
            const char *name = image->code[c].name;
            if (!sg_names_add(&reach->codes, i, name, strlen(name), c, &other))
                return false;
        }
    }
    return true;
}

static void end(struct reach *reach) {
    sg_names_clear(&reach->codes);
    free(reach->first);
    free(reach->seen);
    free(reach->queue);
}

/* For a name that inputs share, follows the definition that counts. */
static void reach_code(struct reach *reach, size_t image, size_t code) {
    const struct sg_image_code *one = &reach->names->images[image]->code[code];
    if (one->shared && (!sg_link_need(reach->names, one->name, &image) ||
                        !sg_names_find(&reach->codes, image, one->name, strlen(one->name), &code)))
        return;
    size_t at = reach->first[image] + code;
    if (reach->seen[at])
        return;
    reach->seen[at] = true;
    reach->queue[reach->queued++] = (struct place){image, code};
}

static void reach_named(struct reach *reach, size_t image, const char *name) {
    size_t code;
    if (sg_names_find(&reach->codes, image, name, strlen(name), &code))
        reach_code(reach, image, code);
}

static void reach_roots(struct reach *reach, size_t number) {
    const struct sg_image *image = reach->names->images[number];
    for (size_t c = 0; c < image->code_count; c++) {
        if (image->code[c].needed)
            reach_code(reach, number, c);
    }
    for (size_t v = 0; v < image->variable_count; v++) {
        const struct sg_image_variable *variable = &image->variables[v];
        for (size_t r = 0; r < variable->relocation_count; r++) {
            if (variable->relocations[r].target == 0)
                reach_named(reach, number, variable->relocations[r].symbol);
        }
    }
}

CUresult sg_link_reach(struct sg_link_names *names) {
    struct reach reach = {.names = names};
    bool room = begin(&reach);
    for (size_t i = 0; room && i < names->count; i++)
        reach_roots(&reach, i);
    while (room && reach.queued > 0) {
        struct place at = reach.queue[--reach.queued];
        const struct sg_image *image = names->images[at.image];
        for (size_t call = image->code[at.code].last_call; call; call = image->calls[call - 1].next)
            reach_code(&reach, at.image, image->calls[call - 1].to);
    }
    end(&reach);
    return room ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
