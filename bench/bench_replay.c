/*
 * Two logs of allocations, generated from published descriptions of programs, replayed by `gpumem
 * replay` through the library and through the driver's pool: time, peak, fragmentation.
 *
 *     bench_replay                        both, on the resources that make sense for each
 *     bench_replay train|serve FILE       writes the log, for `gpumem replay FILE`
 *
 * train: what one training step of a transformer keeps, tensor by tensor, is listed in section 4 of
 * V. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models" (2022,
 * arXiv:2205.05198): 34 sbh + 5 as^2 b bytes a layer. Weights, gradients and optimizer states have
 * 2, 2 and 12 bytes a parameter: S. Rajbhandari et al., "ZeRO" (2020, arXiv:1910.02054). Model:
 * GPT-2 medium, or small on a small device (A. Radford et al., 2019). Ours: that the sequence
 * length changes from step to step, and that a layer's backward pass holds the gradient of its
 * input.
 *
 * serve: requests as measured on ShareGPT by W. Kwon et al., "Efficient Memory Management for Large
 * Language Model Serving with PagedAttention" (2023, arXiv:2309.06180): prompts of 161.31 tokens on
 * average, answers of 337.99, Poisson arrivals, 800 KB of keys and values a token of OPT-13B, taken
 * in steps of 16 tokens, 2,048 tokens at most. Ours: exponential lengths with these means, one
 * buffer a request that grows, one token a request and step.
 */
#include "table.h"

#include <gpumem/gpumem.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct log {
    FILE *file;
    uint64_t sequence, buffers;
    int small; /* for a device with little memory */
    uint64_t random;
};

/* xorshift64*: the same log on every machine. Below 1. */
static double draw(struct log *log) {
    log->random ^= log->random >> 12;
    log->random ^= log->random << 25;
    log->random ^= log->random >> 27;
    return (double)(log->random * 0x2545f4914f6cdd1du >> 11) / 9007199254740992.0;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static void line(struct log *log, const char *event, uint64_t buffer, uint64_t bytes,
                 uint64_t capacity, const char *note) {
    log->sequence++;
    fprintf(log->file,
            "%" PRIu64 ",%" PRIu64 ",1,%s,%" PRIu64 ",%" PRIu64 ",1,%" PRIu64
            ",0x1000,0x0,0,0,OK,%s\n",
            log->sequence, log->sequence * 1000, event, buffer, bytes, capacity, note);
}

static void begin(struct log *log, const char *note) {
    fputs("#gpumem-log,1\nsequence,time_ns,thread,event,buffer,bytes,alignment,capacity,stream,"
          "pointer,committed,took_ns,status,note\n",
          log->file);
    line(log, "note", 0, 0, 0, note);
}

static uint64_t take(struct log *log, uint64_t bytes, uint64_t capacity) {
    line(log, "allocate", ++log->buffers, bytes, capacity, "");
    return log->buffers;
}

static void give(struct log *log, uint64_t buffer) {
    line(log, "free", buffer, 0, 0, "");
}

/* ---- Training -------------------------------------------------------------------------------- */

struct model {
    uint64_t hidden, heads, layers, batch, sequence;
};

/* Of one layer, in the order of the forward pass. */
#define KEPT 16

static unsigned forward(struct log *log, const struct model *m, uint64_t s, uint64_t *kept) {
    const uint64_t sbh = s * m->batch * m->hidden, squares = m->heads * s * s * m->batch;
    const uint64_t sizes[] = {
        2 * sbh,     /* input of the layer norm */
        2 * sbh,     /* input of Q, K and V */
        2 * sbh,     /* Q */
        2 * sbh,     /* K */
        2 * sbh,     /* V */
        2 * squares, /* output of the softmax */
        squares,     /* mask of its dropout */
        2 * squares, /* output of its dropout */
        2 * sbh,     /* input of the projection */
        sbh,         /* mask of the dropout after it */
        2 * sbh,     /* input of the second layer norm */
        2 * sbh,     /* input of the first linear layer */
        8 * sbh,     /* input of the GeLU */
        8 * sbh,     /* input of the second linear layer */
        sbh,         /* mask of the last dropout */
    };
    const unsigned count = sizeof sizes / sizeof sizes[0];
    for (unsigned i = 0; i < count; i++)
        kept[i] = take(log, sizes[i], 0);
    return count;
}

static void step(struct log *log, const struct model *m, uint64_t s) {
    static uint64_t kept[64][KEPT];
    unsigned counts[64];
    for (uint64_t layer = 0; layer < m->layers; layer++)
        counts[layer] = forward(log, m, s, kept[layer]);
    uint64_t gradient = take(log, 2 * s * m->batch * m->hidden, 0);
    for (uint64_t layer = m->layers; layer-- > 0;) {
        uint64_t next = take(log, 2 * s * m->batch * m->hidden, 0);
        for (unsigned i = counts[layer]; i-- > 0;)
            give(log, kept[layer][i]);
        give(log, gradient);
        gradient = next;
    }
    give(log, gradient);
}

static void write_train(struct log *log) {
    const struct model medium = {1024, 16, 24, 8, 1024}, little = {768, 12, 12, 1, 512};
    const struct model m = log->small ? little : medium;
    static const unsigned bytes_a_parameter[] = {2, 2, 12}, matrices[] = {3, 1, 4, 4};
    begin(log,
          "generated: training of GPT-2 by Korthikanti et al. 2022 and Rajbhandari et al. 2020");
    for (uint64_t layer = 0; layer < m.layers; layer++)
        for (unsigned i = 0; i < 3; i++)
            for (unsigned k = 0; k < 4; k++)
                take(log, bytes_a_parameter[i] * matrices[k] * m.hidden * m.hidden, 0);
    for (int i = 0; i < 50; i++)
        step(log, &m, m.sequence / 4 + 8 * (uint64_t)(draw(log) * (double)m.sequence * 3 / 32));
}

/* ---- Serving --------------------------------------------------------------------------------- */

#define REQUESTS    2000
#define AT_ONCE     256
#define BLOCK       16 /* tokens */
#define TOKENS_MOST 2048

struct request {
    uint64_t buffer, tokens, until, blocks;
};

/* At least one token. */
static uint64_t length(struct log *log, double mean) {
    return 1 + (uint64_t)(-log1p(-draw(log)) * mean);
}

static struct request arrive(struct log *log, uint64_t token_bytes) {
    struct request r = {.tokens = length(log, 161.31)};
    if (r.tokens > TOKENS_MOST - 1)
        r.tokens = TOKENS_MOST - 1;
    r.until = r.tokens + length(log, 337.99);
    if (r.until > TOKENS_MOST)
        r.until = TOKENS_MOST;
    r.blocks = (r.tokens + BLOCK - 1) / BLOCK;
    r.buffer = take(log, r.blocks * BLOCK * token_bytes, TOKENS_MOST * token_bytes);
    return r;
}

/* One more token. Returns whether it was the last. */
static int decode(struct log *log, struct request *r, uint64_t token_bytes) {
    if (++r->tokens > r->until) {
        give(log, r->buffer);
        return 1;
    }
    if (r->tokens > r->blocks * BLOCK)
        line(log, "resize", r->buffer, ++r->blocks * BLOCK * token_bytes, 0, "");
    return 0;
}

static void write_serve(struct log *log) {
    static struct request alive[AT_ONCE];
    const uint64_t token_bytes = log->small ? 12800 : 819200;
    const double between = 16; /* steps from one arrival to the next, on average */
    unsigned count = 0, arrived = 0;
    double next = 0;
    begin(log, "generated: serving by Kwon et al. 2023 (ShareGPT and OPT-13B)");
    for (uint64_t now = 0; arrived < REQUESTS || count; now++) {
        for (; arrived < REQUESTS && (double)now >= next && count < AT_ONCE; arrived++) {
            alive[count++] = arrive(log, token_bytes);
            next += -log1p(-draw(log)) * between;
        }
        for (unsigned i = 0; i < count;) {
            if (decode(log, &alive[i], token_bytes))
                alive[i] = alive[--count];
            else
                i++;
        }
    }
}

/* ---- Replaying ------------------------------------------------------------------------------- */

static const struct kind {
    const char *name;
    void (*write)(struct log *log);
    const char *resources;
} kinds[] = {
    {"train", write_train, "caching,caching-virtual,pool,driver"},
    {"serve", write_serve, "caching,caching-virtual,pool,driver,virtual"},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static void write_log(const struct kind *kind, const char *path, int small) {
    struct log log = {.file = fopen(path, "w"), .small = small, .random = 0x9e3779b97f4a7c15u};
    if (!log.file)
        bench_fail("cannot write %s", path);
    kind->write(&log);
    if (fclose(log.file) != 0)
        bench_fail("cannot write %s", path);
}

/* The command beside this program: ../bin/gpumem. */
static void find_command(char *path, size_t size) {
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    if (length <= 0)
        bench_fail("/proc/self/exe cannot be read");
    path[length] = 0;
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(path, '/');
        if (!slash)
            bench_fail("no folder above that of this program");
        *slash = 0;
    }
    if ((size_t)snprintf(path + strlen(path), size - strlen(path), "/bin/gpumem") >=
        size - strlen(path))
        bench_fail("the path of gpumem is too long");
}

static int replay(const char *command, const struct kind *kind, const char *log) {
    printf("\n%s\n", kind->name);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        execl(command, command, "replay", "--repeat", "3", "--resource", kind->resources, log,
              (char *)NULL);
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        bench_fail("cannot run %s", command);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

/* Under 32 GiB the logs are those of small models. */
static int is_small(void) {
    gpumem_library *library = NULL;
    gpumem_device *device = NULL;
    uint64_t room = 0, total = 0;
    if (gpumem_open(NULL, &library) != GPUMEM_OK ||
        gpumem_device_open(library, 0, &device) != GPUMEM_OK ||
        gpumem_device_get_memory(device, &room, &total) != GPUMEM_OK ||
        gpumem_device_close(device) != GPUMEM_OK || gpumem_close(library) != GPUMEM_OK)
        bench_fail("%s", gpumem_last_error()->message);
    return room < (uint64_t)32 << 30;
}

static int replay_all(int small) {
    char command[PATH_MAX], path[PATH_MAX];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/bench_replay.XXXXXX", folder && folder[0] ? folder : "/tmp");
    int failed = 0, file = mkstemp(path);
    if (file < 0)
        bench_fail("no temporary file");
    close(file);
    find_command(command, sizeof command);
    printf("logs generated from published descriptions (the source says which), %s models\n",
           small ? "small" : "large");
    for (size_t i = 0; i < KINDS; i++) {
        write_log(&kinds[i], path, small);
        failed |= replay(command, &kinds[i], path) != 0;
    }
    unlink(path);
    return failed;
}

int main(int argc, char **argv) {
    int small = is_small();
    if (argc < 3)
        return replay_all(small);
    for (size_t i = 0; i < KINDS; i++) {
        if (strcmp(argv[1], kinds[i].name) == 0) {
            write_log(&kinds[i], argv[2], small);
            return 0;
        }
    }
    bench_fail("'%s' is neither train nor serve", argv[1]);
}
