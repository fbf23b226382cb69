/* Order made by the API: operations of streams, and the waits between them. */
#include "softgpu/check/race_inside.h"

#include "base/growing_array.h"

#include <stdlib.h>
#include <string.h>

static int by_stream(const void *a, const void *b) {
    const struct sg_race_after *x = a, *y = b;
    return (x->stream > y->stream) - (x->stream < y->stream);
}

static bool copy_after(struct sg_race_launch *launch, const struct sg_race_operation *operation) {
    size_t bytes = operation->after_count * sizeof *operation->after;
    if (operation->after_count == 0)
        return true;
    launch->after = malloc(bytes);
    if (!launch->after)
        return false;
    memcpy(launch->after, operation->after, bytes);
    launch->after_count = operation->after_count;
    qsort(launch->after, launch->after_count, sizeof *launch->after, by_stream);
    return true;
}

uint32_t sg_race_launch_new(struct sg_race *race, const struct sg_race_operation *operation) {
    struct sg_race_launch launch = {.name = operation->name,
                                    .stream = operation->stream,
                                    .number = operation->number,
                                    .serial = operation->serial,
                                    .floor = operation->floor};
    size_t count = race->launch_count ? race->launch_count : 1;
    if (!GM_RESERVE(race->launches, race->launch_room, count + 1) ||
        !copy_after(&launch, operation))
        return 0;
    if (race->launch_count == 0)
        race->launches[0] = (struct sg_race_launch){0};
    race->launches[count] = launch;
    race->launch_count = count + 1;
    return (uint32_t)count;
}

void sg_race_launches_free(struct sg_race *race) {
    for (size_t i = 0; i < race->launch_count; i++) {
        free(race->launches[i].after);
        free(race->launches[i].beside);
    }
    free(race->launches);
    race->launches = NULL;
    race->launch_count = race->launch_room = 0;
}

static bool is_after(const struct sg_race_launch *b, const struct sg_race_launch *a) {
    if (a->stream == b->stream)
        return a->number <= b->number;
    if (a->serial && a->serial <= b->floor)
        return true;
    const struct sg_race_after key = {.stream = a->stream};
    const struct sg_race_after *found =
        b->after_count ? bsearch(&key, b->after, b->after_count, sizeof *b->after, by_stream)
                       : NULL;
    return found && found->number >= a->number;
}

static bool has_met(const struct sg_race_launch *b, uint32_t a) {
    for (size_t i = 0; i < b->beside_count; i++)
        if (b->beside[i] == a)
            return true;
    return false;
}

bool sg_race_launch_before(const struct sg_race *race, uint32_t a, uint32_t b) {
    const struct sg_race_launch *after = &race->launches[b];
    return is_after(after, &race->launches[a]) || has_met(after, a);
}

bool sg_race_launch_overlaps(const struct sg_race *race, uint32_t a, uint32_t b) {
    const struct sg_race_launch *one = &race->launches[a], *other = &race->launches[b];
    return one->kernel && one->stream == other->stream && one->number + 1 == other->number;
}

void sg_race_launch_meets(struct sg_race_grid *grid, uint32_t a) {
    struct sg_race_launch *launch = &grid->race->launches[grid->launch];
    if (has_met(launch, a))
        return;
    if (GM_RESERVE(launch->beside, launch->beside_room, launch->beside_count + 1))
        launch->beside[launch->beside_count++] = a;
    else
        grid->lost = true;
    grid->unordered = 0;
}
