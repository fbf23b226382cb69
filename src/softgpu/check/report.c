/* The list of hazards: each is written once, then counted, and summed up at the end. */
#include "softgpu/check/report.h"

#include "base/descriptor.h"
#include "softgpu/core/job.h"
#include "softgpu/core/verdict.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLACES_MOST 10000 /* that are written: all others are counted as one */
#define BUCKETS     1024

struct place {
    struct place *next;
    uint64_t number, count, hash;
    enum sg_hazard_level level;
    char key[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct place *buckets[BUCKETS];
static uint64_t number_of_places, beyond;
static uint64_t counts[SG_HAZARD_LEVELS];
static int output = STDERR_FILENO;

/* ---- output ---------------------------------------------------------------------------------- */

bool sg_check_output_open(const char *path, char *why, size_t size) {
    int fd = gm_fd_open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (fd < 0) {
        snprintf(why, size, "SOFTGPU_CHECK_OUTPUT='%s' cannot be written: %s", path,
                 strerror(errno));
        return false;
    }
    output = fd;
    return true;
}

/* In one write, so that the reports of several processes do not mix. */
void sg_check_write(const char *text) {
    (void)gm_fd_write(output, text, strlen(text)); /* there is nowhere left to report it */
}

/* ---- the list -------------------------------------------------------------------------------- */

static int key_of(const struct sg_hazard *hazard, char *key, size_t size) {
    const struct sg_hazard_place *place = &hazard->place, *other = &hazard->other;
    if (!place->kernel)
        return snprintf(key, size, "%s %s %s", hazard->check, hazard->kind, hazard->what);
    return snprintf(key, size, "%s %s %s %" PRIu32 " %s %" PRIu32 " %s", hazard->check,
                    hazard->kind, place->kernel, place->line, place->file ? place->file : "",
                    other->line, other->kernel ? other->kernel : "");
}

static uint64_t hash_of(const char *key) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * 0x100000001b3u;
    return hash;
}

/* The entry of a hazard; *fresh: it is new. NULL: out of memory. */
static struct place *find(const struct sg_hazard *hazard, bool *fresh) {
    char key[1024];
    (void)key_of(hazard, key, sizeof key);
    uint64_t hash = hash_of(key);
    struct place **link = &buckets[hash % BUCKETS];
    for (struct place *one = *link; one; one = one->next)
        if (one->hash == hash && strcmp(one->key, key) == 0) {
            *fresh = false;
            return one;
        }
    size_t length = strlen(key) + 1;
    struct place *made = number_of_places < PLACES_MOST ? malloc(sizeof *made + length) : NULL;
    if (!made)
        return NULL;
    *made = (struct place){
        .next = *link, .number = ++number_of_places, .hash = hash, .level = hazard->level};
    memcpy(made->key, key, length);
    *link = made;
    *fresh = true;
    return made;
}

static void say(const struct sg_hazard *hazard, uint64_t number) {
    bool json = sg_config()->check_json;
    char *text = json ? sg_hazard_json(hazard, number) : sg_hazard_text(hazard, number);
    if (text) {
        sg_check_write(text);
        free(text);
        return;
    }
    char line[256]; /* without memory for more: at least that there is one */
    snprintf(line, sizeof line,
             json ? "{\"level\":\"%s\",\"hazard\":%" PRIu64 ",\"check\":\"%s\",\"kind\":\"%s\"}\n"
                  : "softgpu: %s %" PRIu64 " (%s, %s): there is no memory to say more\n",
             sg_hazard_level_name(hazard->level), number, hazard->check, hazard->kind);
    sg_check_write(line);
}

void sg_hazard_report(const struct sg_hazard *hazard) {
    bool fresh = false;
    if (sg_suppressed(hazard))
        return;
    pthread_mutex_lock(&lock);
    struct place *place = find(hazard, &fresh);
    counts[hazard->level]++;
    uint64_t number = place && fresh ? place->number : 0;
    if (place)
        place->count++;
    else if (number_of_places <
             PLACES_MOST) /* no memory to know it again: it may be written twice */
        number = ++number_of_places;
    else
        beyond++;
    bool first_error = hazard->level == SG_HAZARD_ERROR && counts[SG_HAZARD_ERROR] == 1;
    if (number)
        say(hazard, number);
    pthread_mutex_unlock(&lock);
    if (first_error)
        sg_verdict_hazard();
}

uint64_t sg_hazard_count(enum sg_hazard_level level) {
    pthread_mutex_lock(&lock);
    uint64_t count = counts[level];
    pthread_mutex_unlock(&lock);
    return count;
}

/* ---- the end --------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b) {
    const struct place *x = *(struct place *const *)a, *y = *(struct place *const *)b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static struct place **sorted(uint64_t *count) {
    struct place **all = malloc((number_of_places + 1) * sizeof(struct place *));
    *count = 0;
    for (unsigned i = 0; all && i < BUCKETS; i++)
        for (struct place *one = buckets[i]; one; one = one->next)
            all[(*count)++] = one;
    if (all)
        qsort(all, *count, sizeof(struct place *), by_number);
    return all;
}

static void say_counts(bool json) {
    char line[160];
    uint64_t count;
    struct place **all = sorted(&count);
    bool first = true;
    for (uint64_t i = 0; all && i < count; i++) {
        if (all[i]->count < 2)
            continue;
        snprintf(line, sizeof line,
                 json ? "%s{\"hazard\":%" PRIu64 ",\"count\":%" PRIu64 "}"
                      : "%ssoftgpu: %" PRIu64 " was found %" PRIu64 " times\n",
                 json && !first ? "," : "", all[i]->number, all[i]->count);
        sg_check_write(line);
        first = false;
    }
    free(all);
}

void sg_report_sum(void) {
    char line[256];
    bool json = sg_config()->check_json;
    pthread_mutex_lock(&lock);
    if (json) {
        snprintf(line, sizeof line,
                 "{\"errors\":%" PRIu64 ",\"warnings\":%" PRIu64 ",\"info\":%" PRIu64
                 ",\"not_listed\":%" PRIu64 ",\"again\":[",
                 counts[SG_HAZARD_ERROR], counts[SG_HAZARD_WARNING], counts[SG_HAZARD_INFO],
                 beyond);
        sg_check_write(line);
        say_counts(true);
        sg_check_write("]}\n");
    } else {
        say_counts(false);
        snprintf(line, sizeof line,
                 "softgpu: checked: %" PRIu64 " errors, %" PRIu64 " warnings, %" PRIu64
                 " remarks\n",
                 counts[SG_HAZARD_ERROR], counts[SG_HAZARD_WARNING], counts[SG_HAZARD_INFO]);
        sg_check_write(line);
    }
    pthread_mutex_unlock(&lock);
}
