/* .version, .target, .address_size: what the text is written in, and for which device. */
#include "softgpu/ptx/ptx.h"

#include <string.h>

/* The last minor version of each major one, as found with ptxas of CUDA 13.5. */
static const unsigned newest_minor[] = {[1] = 5, [2] = 3, [3] = 2,
                                        [4] = 3, [5] = 0, [6] = 5,
                                        [7] = 8, [8] = 8, [9] = SG_PTX_NEWEST % 10};

/* Each target, the first version with it, and with its a and f forms; also from ptxas. */
static const struct target {
    int number, since, since_a, since_f;
} targets[] = {
    {10, 10, 0, 0},    {11, 10, 0, 0},    {12, 12, 0, 0},    {13, 12, 0, 0},    {20, 20, 0, 0},
    {21, 20, 0, 0},    {30, 30, 0, 0},    {32, 40, 0, 0},    {35, 31, 0, 0},    {37, 41, 0, 0},
    {50, 40, 0, 0},    {52, 41, 0, 0},    {53, 42, 0, 0},    {60, 50, 0, 0},    {61, 50, 0, 0},
    {62, 50, 0, 0},    {70, 60, 0, 0},    {72, 61, 0, 0},    {75, 63, 0, 0},    {80, 70, 0, 0},
    {82, 62, 0, 0},    {86, 71, 0, 0},    {87, 74, 0, 0},    {88, 73, 0, 0},    {89, 78, 0, 0},
    {90, 78, 80, 0},   {100, 86, 86, 88}, {101, 86, 86, 88}, {103, 88, 88, 88}, {107, 94, 94, 94},
    {110, 90, 90, 90}, {120, 87, 87, 88}, {121, 88, 88, 88},
};

static CUresult refuse(struct sg_ptx *ptx, CUresult result) {
    ptx->result = result;
    return result;
}

static bool version_exists(const struct sg_ptx *ptx, uint64_t major, uint64_t minor) {
    if (major == 0 || major > 99 || minor > 9 ||
        10 * major + minor > (uint64_t)ptx->options->newest_ptx)
        return false;
    /* The options may allow a text that is newer than this table. */
    size_t known = sizeof newest_minor / sizeof newest_minor[0];
    return major >= known || minor <= newest_minor[major] || major == known - 1;
}

/* major.minor as two integers, not a float: 8.00 is the same as 8.0, and 8.08 as 8.8. */
static bool version_number(const struct sg_word *word, uint64_t *major, uint64_t *minor) {
    uint64_t *number = major;
    bool digits = false, point = false;
    *major = *minor = 0;
    for (size_t i = 0; i < word->length; i++) {
        char c = word->text[i];
        if (c == '.' && digits && !point) {
            point = true;
            digits = false;
            number = minor;
        } else if (c >= '0' && c <= '9' && *number < 10000) {
            *number = 10 * *number + (uint64_t)(c - '0');
            digits = true;
        } else {
            return false;
        }
    }
    return digits && point;
}

static bool version(struct sg_ptx *ptx) {
    uint64_t major, minor;
    sg_words_next(&ptx->words, &ptx->word);
    /* In a comment; as the first character it is the beginning of something else. */
    if (ptx->word.kind == SG_WORD_WRONG && ptx->word.length == 0 &&
        ptx->words.at < ptx->words.end && (*ptx->words.at & 0x80))
        return sg_ptx_wrong(ptx, "a character that is not ASCII");
    if (!sg_ptx_is(ptx, ".version")) {
        /* Not an error in PTX: this is not PTX at all. */
        sg_image_log_error(ptx->log, ptx->options->name, ptx->word.line,
                           "the text does not begin with .version");
        refuse(ptx, CUDA_ERROR_INVALID_IMAGE);
        return false;
    }
    if (!sg_ptx_next(ptx))
        return false;
    if (ptx->word.kind != SG_WORD_FLOAT || !version_number(&ptx->word, &major, &minor))
        return sg_ptx_unexpected(ptx, "a version such as 8.0");
    if (!version_exists(ptx, major, minor)) {
        sg_image_log_error(ptx->log, ptx->options->name, ptx->word.line,
                           "version %u.%u of PTX is not supported; the newest is %d.%d",
                           (unsigned)major, (unsigned)minor, ptx->options->newest_ptx / 10,
                           ptx->options->newest_ptx % 10);
        if (ptx->log && major < 100 && 10 * major + minor > (uint64_t)ptx->options->newest_ptx)
            ptx->log->newer_ptx = (int)(10 * major + minor);
        refuse(ptx, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
        return false;
    }
    ptx->image->ptx_version = (int)(10 * major + minor);
    return sg_ptx_next(ptx);
}

/* sm_90a, compute_90: the number and the letter after it. */
static bool target_number(const struct sg_word *word, int *number, char *suffix) {
    size_t at = 0;
    if (word->length > 3 && memcmp(word->text, "sm_", 3) == 0)
        at = 3;
    else if (word->length > 8 && memcmp(word->text, "compute_", 8) == 0)
        at = 8;
    else
        return false;
    *number = 0;
    *suffix = 0;
    size_t first = at;
    for (; at < word->length && word->text[at] >= '0' && word->text[at] <= '9'; at++) {
        if (*number > 1000)
            return false;
        *number = 10 * *number + (word->text[at] - '0');
    }
    if (at == first)
        return false;
    if (at + 1 == word->length && (word->text[at] == 'a' || word->text[at] == 'f'))
        *suffix = word->text[at++];
    return at == word->length;
}

static bool target_known(struct sg_ptx *ptx, int number, char suffix) {
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        const struct target *target = &targets[i];
        if (target->number != number)
            continue;
        int since = suffix == 'a'   ? target->since_a
                    : suffix == 'f' ? target->since_f
                                    : target->since;
        if (since == 0)
            break;
        if (since <= ptx->image->ptx_version)
            return true;
        return sg_ptx_wrong(ptx, "version %d.%d of PTX has no target sm_%d%.1s",
                            ptx->image->ptx_version / 10, ptx->image->ptx_version % 10, number,
                            &suffix);
    }
    return sg_ptx_wrong(ptx, "there is no target sm_%d%.1s", number, &suffix);
}

/* a: this device alone; f: its family, that is, all of the same major version. */
static bool target_fits(struct sg_ptx *ptx, int number, char suffix) {
    int device = ptx->options->architecture;
    if (device < 0)
        return true;
    if (number > device)
        return sg_ptx_wrong(ptx, "target sm_%d is newer than the device, sm_%d", number, device);
    bool fits = suffix == 0 || (suffix == 'a' && number == device && ptx->options->suffix == 'a') ||
                (suffix == 'f' && number / 10 == device / 10);
    return fits ||
           sg_ptx_wrong(ptx, "target sm_%d%c does not run on sm_%d", number, suffix, device);
}

static bool target_option(struct sg_ptx *ptx, const char **texture_mode) {
    static const char *const options[] = {"texmode_unified", "texmode_independent", "debug"};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (!sg_ptx_is(ptx, options[i]))
            continue;
        if (i < 2 && *texture_mode && *texture_mode != options[i])
            return sg_ptx_wrong(ptx, "%s contradicts %s", options[i], *texture_mode);
        *texture_mode = i < 2 ? options[i] : *texture_mode;
        ptx->independent = ptx->independent || i == 1;
        ptx->debug = ptx->debug || i == 2;
        return sg_ptx_next(ptx);
    }
    if (sg_ptx_is(ptx, "map_f64_to_f32") && ptx->image->target < 13)
        return sg_ptx_next(ptx);
    int number;
    char suffix;
    if (target_number(&ptx->word, &number, &suffix))
        return target_known(ptx, number, suffix) && sg_ptx_next(ptx);
    return sg_ptx_unexpected(ptx, "an option of .target");
}

static bool target(struct sg_ptx *ptx) {
    int number;
    char suffix;
    const char *texture_mode = NULL;
    if (!sg_ptx_expect(ptx, ".target"))
        return false;
    if (!target_number(&ptx->word, &number, &suffix))
        return sg_ptx_unexpected(ptx, "a target such as sm_90");
    if (!target_known(ptx, number, suffix) || !target_fits(ptx, number, suffix))
        return false;
    ptx->image->target = number;
    ptx->image->target_suffix = suffix;
    if (!sg_ptx_next(ptx))
        return false;
    while (sg_ptx_accept(ptx, ",")) {
        if (!target_option(ptx, &texture_mode))
            return false;
    }
    return ptx->result == CUDA_SUCCESS;
}

static bool address_size(struct sg_ptx *ptx) {
    uint64_t bits;
    if (!sg_ptx_is(ptx, ".address_size"))
        return true;
    if (ptx->image->ptx_version < 23)
        return sg_ptx_wrong(ptx, ".address_size came with version 2.3");
    if (!sg_ptx_next(ptx) || !sg_ptx_integer(ptx, &bits))
        return false;
    return bits == 64 || sg_ptx_wrong(ptx, "addresses have 64 bits, not %u", (unsigned)bits);
}

bool sg_ptx_head(struct sg_ptx *ptx) {
    return version(ptx) && target(ptx) && address_size(ptx);
}
