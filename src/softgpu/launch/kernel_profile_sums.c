/* Sums over a kernel's instructions: total, by state space, by line. */
#include "softgpu/launch/kernel_profile.h"

#include <stdlib.h>
#include <string.h>

static int by_place(const void *a, const void *b) {
    const struct sg_hot_line *x = a, *y = b;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static int by_heat(const void *a, const void *b) {
    const struct sg_hot_line *x = a, *y = b;
    if (x->warps != y->warps)
        return x->warps < y->warps ? 1 : -1;
    return by_place(a, b);
}

/* Merges entries of the same line. */
static size_t merge(struct sg_hot_line *lines, size_t count) {
    size_t kept = 0;
    qsort(lines, count, sizeof *lines, by_place);
    for (size_t i = 0; i < count; i++) {
        if (kept && by_place(&lines[kept - 1], &lines[i]) == 0) {
            lines[kept - 1].warps += lines[i].warps;
            lines[kept - 1].threads += lines[i].threads;
        } else {
            lines[kept++] = lines[i];
        }
    }
    qsort(lines, kept, sizeof *lines, by_heat);
    return kept;
}

static size_t find_hot(const struct sg_kernel_profile *profile, bool source,
                       struct sg_hot_line *lines, struct sg_hot_line *hot) {
    const struct sg_counts *counts = profile->counts;
    size_t count = 0;
    for (size_t i = 0; i < counts->instruction_count; i++) {
        const struct sg_profiled_place *place = &profile->places[i];
        if (counts->instructions[i].warps && (!source || place->file))
            lines[count++] = (struct sg_hot_line){.file = source ? place->file : 0,
                                                  .line = source ? place->source_line : place->line,
                                                  .warps = counts->instructions[i].warps,
                                                  .threads = counts->instructions[i].threads};
    }
    count = merge(lines, count);
    count = count < SG_PROFILE_HOT ? count : SG_PROFILE_HOT;
    memcpy(hot, lines, count * sizeof *hot);
    return count;
}

bool sg_profile_sum(const struct sg_kernel_profile *profile, struct sg_profile_sums *sums) {
    const struct sg_counts *counts = profile->counts;
    struct sg_hot_line *lines = malloc((counts->instruction_count + 1) * sizeof *lines);
    if (!lines)
        return false;
    *sums = (struct sg_profile_sums){.ptx_count = 0};
    for (size_t i = 0; i < counts->instruction_count; i++) {
        sums->all.warps += counts->instructions[i].warps;
        sums->all.threads += counts->instructions[i].threads;
        sums->all.taken += counts->instructions[i].taken;
    }
    for (size_t i = 0; i < counts->access_count; i++)
        for (unsigned s = 0; s < SG_COUNT_SPACES; s++) {
            const struct sg_access_count *access = &counts->accesses[i];
            sums->bytes[s][access->direction] += access->bytes[s];
            for (unsigned p = 0; p < SG_COUNT_PATTERNS; p++)
                sums->accesses[s][p] += access->warps[s][p];
        }
    sums->ptx_count = find_hot(profile, false, lines, sums->ptx);
    sums->source_count = find_hot(profile, true, lines, sums->source);
    free(lines);
    return true;
}

const char *sg_profile_line(const struct sg_kernel_profile *profile, uint32_t line,
                            size_t *length) {
    const char *text = profile->loaded->image->ptx;
    for (uint32_t i = 1; text && i < line; i++) {
        text = strchr(text, '\n');
        text += text != NULL;
    }
    *length = 0;
    if (!text || !line)
        return "";
    text += strspn(text, " \t");
    *length = strcspn(text, "\r\n");
    while (*length && (text[*length - 1] == ' ' || text[*length - 1] == '\t'))
        --*length;
    return text;
}

const char *sg_profile_space_name(unsigned space) {
    static const char *const names[SG_COUNT_SPACES] = {
        [SG_COUNT_GLOBAL] = "global",         [SG_COUNT_SHARED] = "shared",
        [SG_COUNT_LOCAL] = "local",           [SG_COUNT_CONSTANT] = "constant",
        [SG_COUNT_PARAMETERS] = "parameters", [SG_COUNT_TEXTURE] = "texture"};
    return names[space];
}
