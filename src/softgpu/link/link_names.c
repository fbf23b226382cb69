/*
 * The rules for names, as in nvlink of CUDA 13.0 (the driver's linker reports less, but refuses the
 * same). Names that are not visible are private to their input. Among visible ones there must not
 * be two strong definitions; a weak one gives way to a strong one, and of several weak ones the
 * first counts. All that share a name must be the same kind of thing and have one size, except for
 * arrays without a size, and for common variables, which grow to the largest of them and give way
 * to one that has a value and is not smaller.
 */
#include "softgpu/link/link_names.h"

#include "softgpu/link/grid_sync.h"

#include <stdlib.h>
#include <string.h>

enum kind { KIND_ENTRY, KIND_FUNCTION, KIND_GLOBAL, KIND_CONSTANT };
enum strength { DECLARED, COMMON, WEAK, STRONG };

struct sg_link_name {
    const char *name;
    size_t image, index; /* of the function or variable */
    enum kind kind;
    enum strength strength;
    bool managed;
    bool needed;   /* of a function: something that is reached calls it */
    uint64_t size; /* of a variable, or of an entry's parameters */
};

static void wrong(struct sg_link_names *names, const char *what, const char *name) {
    if (names->result != CUDA_SUCCESS)
        return;
    names->result = CUDA_ERROR_INVALID_SOURCE; /* as an H200 says */
    sg_image_log_error(names->log, names->options->name, 0, "%s '%.80s'", what, name);
}

static bool is_variable(const struct sg_link_name *one) {
    return one->kind == KIND_GLOBAL || one->kind == KIND_CONSTANT;
}

/* A declaration in machine code does not say whether it is constant, nor one in a text whether a
 * function is an entry. */
static bool same_kind(const struct sg_link_name *a, const struct sg_link_name *b) {
    if (a->strength == DECLARED || b->strength == DECLARED)
        return is_variable(a) == is_variable(b);
    return a->kind == b->kind && a->managed == b->managed;
}

static bool same_size(const struct sg_link_name *a, const struct sg_link_name *b) {
    if (is_variable(a)) {
        if (a->strength == COMMON && b->strength == COMMON)
            return true;
        if (a->strength == COMMON && b->strength > COMMON)
            return a->size <= b->size;
        if (b->strength == COMMON && a->strength > COMMON)
            return b->size <= a->size;
        return a->size == b->size || (a->strength == DECLARED && a->size == 0) ||
               (b->strength == DECLARED && b->size == 0);
    }
    return a->kind != KIND_ENTRY || a->strength != WEAK || b->strength != WEAK ||
           a->size == b->size;
}

static bool better(const struct sg_link_name *one, const struct sg_link_name *than) {
    if (one->strength != than->strength)
        return one->strength > than->strength;
    return (one->strength == COMMON || one->strength == DECLARED) && one->size > than->size;
}

/* A function after a variable makes nvlink fail internally, and an H200 answer UNKNOWN. */
static void wrong_kind(struct sg_link_names *names, const struct sg_link_name *known,
                       const struct sg_link_name *one) {
    wrong(names, "inputs disagree about what it is:", one->name);
    if (is_variable(known) && !is_variable(one) && known->strength != DECLARED &&
        one->strength != DECLARED)
        names->result = CUDA_ERROR_UNKNOWN;
}

static void merge(struct sg_link_names *names, struct sg_link_name *known,
                  const struct sg_link_name *one) {
    if (known->strength == STRONG && one->strength == STRONG)
        wrong(names, "two inputs define", one->name);
    else if (!same_kind(known, one))
        wrong_kind(names, known, one);
    else if (!same_size(known, one))
        wrong(names, "inputs disagree about the size of", one->name);
    else if (better(one, known))
        *known = *one;
}

static void share(struct sg_link_names *names, struct sg_link_name one) {
    size_t at = names->used;
    if (names->result != CUDA_SUCCESS)
        return;
    if (!sg_names_add(&names->table, 0, one.name, strlen(one.name), names->used, &at)) {
        names->result = CUDA_ERROR_OUT_OF_MEMORY;
        return;
    }
    if (at < names->used) {
        merge(names, &names->all[at], &one);
        return;
    }
    struct sg_link_name *grown = sg_image_grow(names->all, &names->used, sizeof *grown);
    if (!grown) {
        names->result = CUDA_ERROR_OUT_OF_MEMORY;
        return;
    }
    names->all = grown;
    grown[names->used - 1] = one;
}

/* Machine code that PTX takes the place of (link_call.c). */
static bool of_grids(const char *name) {
    return strncmp(name, SG_LINK_GRID_PREFIX, strlen(SG_LINK_GRID_PREFIX)) == 0;
}

static void share_functions(struct sg_link_names *names, size_t i) {
    const struct sg_image *image = names->images[i];
    for (size_t f = 0; f < image->function_count; f++) {
        const struct sg_image_function *function = &image->functions[f];
        if (function->visible)
            share(names, (struct sg_link_name){.name = function->name,
                                               .image = i,
                                               .index = f,
                                               .kind = KIND_ENTRY,
                                               .strength = function->weak ? WEAK : STRONG,
                                               .size = function->parameter_bytes});
    }
    const struct {
        char *const *list;
        size_t count;
        enum strength strength;
    } lists[] = {{image->exported, image->exported_count, STRONG},
                 {image->weak, image->weak_count, WEAK},
                 {image->undefined, image->undefined_count, DECLARED}};
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++) {
        for (size_t n = 0; n < lists[l].count; n++)
            share(names,
                  (struct sg_link_name){.name = lists[l].list[n],
                                        .image = i,
                                        .kind = KIND_FUNCTION,
                                        .strength = lists[l].strength == STRONG && !image->ptx &&
                                                            of_grids(lists[l].list[n])
                                                        ? WEAK
                                                        : lists[l].strength});
    }
}

static void share_variable(struct sg_link_names *names, size_t i, size_t v) {
    const struct sg_image_variable *variable = &names->images[i]->variables[v];
    size_t length = strlen(variable->name), first;
    if (names->result == CUDA_SUCCESS &&
        !sg_names_add(&names->table, i + 1, variable->name, length, v, &first))
        names->result = CUDA_ERROR_OUT_OF_MEMORY;
    if (!variable->visible && !variable->external)
        return;
    share(names, (struct sg_link_name){.name = variable->name,
                                       .image = i,
                                       .index = v,
                                       .kind = variable->constant ? KIND_CONSTANT : KIND_GLOBAL,
                                       .strength = variable->external ? DECLARED
                                                   : variable->common ? COMMON
                                                   : variable->weak   ? WEAK
                                                                      : STRONG,
                                       .managed = variable->managed,
                                       .size = variable->size});
}

CUresult sg_link_names_gather(struct sg_link_names *names) {
    for (size_t i = 0; i < names->count; i++) {
        share_functions(names, i);
        for (size_t v = 0; v < names->images[i]->variable_count; v++)
            share_variable(names, i, v);
    }
    return names->result;
}

bool sg_link_need(struct sg_link_names *names, const char *name, size_t *image) {
    size_t at;
    if (!sg_names_find(&names->table, 0, name, strlen(name), &at))
        return false;
    names->all[at].needed = true;
    *image = names->all[at].image;
    return names->all[at].strength != DECLARED;
}

CUresult sg_link_names_require(struct sg_link_names *names) {
    if (names->result == CUDA_SUCCESS)
        names->result = sg_link_reach(names);
    for (size_t i = 0; i < names->used; i++) {
        const struct sg_link_name *one = &names->all[i];
        if (one->strength == DECLARED && (is_variable(one) || one->needed))
            wrong(names, "no input defines", one->name);
    }
    return names->result;
}

void sg_link_names_end(struct sg_link_names *names) {
    sg_names_clear(&names->table);
    free(names->all);
    names->all = NULL;
    names->used = 0;
}

/* ---- what counts ----------------------------------------------------------------------------- */

static const struct sg_link_name *shared(const struct sg_link_names *names, const char *name) {
    size_t at;
    return sg_names_find(&names->table, 0, name, strlen(name), &at) ? &names->all[at] : NULL;
}

bool sg_link_has_function(const struct sg_link_names *names, size_t image, size_t function) {
    const struct sg_image_function *one = &names->images[image]->functions[function];
    const struct sg_link_name *found = one->visible ? shared(names, one->name) : NULL;
    return !one->visible || (found && found->image == image && found->index == function);
}

bool sg_link_has_variable(const struct sg_link_names *names, size_t image, size_t variable) {
    const struct sg_image_variable *one = &names->images[image]->variables[variable];
    if (one->external || !one->visible)
        return !one->external;
    const struct sg_link_name *found = shared(names, one->name);
    return found && found->image == image && found->index == variable;
}

bool sg_link_target(const struct sg_link_names *names, const struct sg_relocation *of,
                    size_t *image, size_t *variable) {
    *variable = of->target - 1;
    if (of->target == 0 &&
        !sg_names_find(&names->table, *image + 1, of->symbol, strlen(of->symbol), variable))
        return false;
    const struct sg_image_variable *own = &names->images[*image]->variables[*variable];
    if (!own->visible && !own->external)
        return true;
    const struct sg_link_name *found = shared(names, own->name);
    if (!found || !is_variable(found))
        return false;
    *image = found->image;
    *variable = found->index;
    return true;
}
