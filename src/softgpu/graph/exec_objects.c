/*
 * User objects of executable graphs. Each part of an exec holds those of the graph that it is a
 * copy of. An update exchanges them, and launches in progress keep the old ones.
 *
 * The launches between two updates form an age. An age that has ended keeps what the update after
 * it released, and also the next age: its launches too may use what a later update releases.
 */
#include "softgpu/graph/update.h"

#include "base/growing_array.h"

#include <stdlib.h>

struct sg_launch_age {
    unsigned refs; /* the exec, launches, and the preceding age */
    struct sg_held_object *given_up;
    struct sg_launch_age *later;
};

struct sg_launch_age *sg_launch_age_new(void) {
    struct sg_launch_age *age = calloc(1, sizeof *age);
    if (age)
        age->refs = 1;
    return age;
}

void sg_launch_age_ref(struct sg_launch_age *age) {
    age->refs++;
}

void sg_launch_age_unref(struct sg_launch_age *age) {
    while (age && --age->refs == 0) {
        struct sg_launch_age *later = age->later;
        sg_held_objects_drop(&age->given_up);
        free(age);
        age = later;
    }
}

/* ---- Updates -------------------------------------------------------------------------------- */

struct sg_objects_change {
    struct sg_exec_part *part;
    struct sg_held_object *objects;
};

bool sg_exec_take_objects(struct sg_exec_changes *changes, struct sg_exec_part *part,
                          const struct sg_graph *graph) {
    if (!changes->age)
        changes->age = sg_launch_age_new();
    if (!changes->age || !GM_RESERVE(changes->parts, changes->part_room, changes->part_count + 1))
        return false;
    struct sg_objects_change *change = &changes->parts[changes->part_count];
    *change = (struct sg_objects_change){.part = part};
    if (!sg_held_objects_copy(&change->objects, graph->objects))
        return false;
    changes->part_count++;
    return true;
}

static void append(struct sg_held_object **to, struct sg_held_object **from) {
    while (*to)
        to = &(*to)->next;
    *to = *from;
    *from = NULL;
}

void sg_exec_exchange_objects(struct sg_exec_changes *changes) {
    struct sg_launch_age *age = changes->exec->age;
    bool under_way = age->refs > 1;
    for (size_t i = 0; i < changes->part_count; i++) {
        struct sg_objects_change *change = &changes->parts[i];
        struct sg_held_object *before = change->part->objects;
        change->part->objects = change->objects;
        change->objects = before;
        if (under_way)
            append(&age->given_up, &change->objects);
    }
    if (!under_way)
        return;
    age->later = changes->age;
    sg_launch_age_ref(changes->age);
    changes->exec->age = changes->age;
    changes->age = NULL;
    sg_launch_age_unref(age);
}

void sg_exec_drop_objects(struct sg_exec_changes *changes) {
    for (size_t i = 0; i < changes->part_count; i++)
        sg_held_objects_drop(&changes->parts[i].objects);
    free(changes->parts);
    sg_launch_age_unref(changes->age);
}
