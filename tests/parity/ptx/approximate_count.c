/*
 * Counts the inputs for which softgpu's result differs from another driver's. Both are open in one
 * process, because the results do not fit into a recording.
 */
#include "approximate.h"
#include "ptx.h"

#include <stdlib.h>
#include <string.h>

struct side {
    const gpumem_driver_api *api;
    CUdeviceptr out;
    CUmodule modules[FUNCTIONS];
    uint32_t *results;
};

static struct side sides[2];
static const char *const drivers[] = {"softgpu", NULL};

static void begin(void) {
    for (int i = 0; i < 2; i++) {
        void *host;
        ptx_open(drivers[i]);
        MUST(cu->cuMemAlloc_v2(&sides[i].out, (size_t)BLOCK * 4));
        MUST(cu->cuMemHostAlloc(&host, (size_t)BLOCK * 4, 0));
        sides[i].results = host;
        sides[i].api = cu;
    }
}

static void fetch(struct side *side, size_t function, uint32_t first, uint32_t count) {
    CUfunction kernel;
    uint32_t stride = 1;
    void *params[] = {&side->out, &first, &stride};
    cu = side->api;
    if (side->modules[function] == NULL)
        side->modules[function] = ptx_function_module(&ptx_functions[function]);
    MUST(cu->cuModuleGetFunction(&kernel, side->modules[function], "give"));
    MUST(cu->cuLaunchKernel(kernel, count / THREADS, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
    MUST(cu->cuMemcpyDtoH_v2(side->results, side->out, (size_t)count * 4));
}

/* Maps floats to integers in the same order, so that neighbours differ by 1. */
static int64_t place(uint32_t bits, bool half) {
    uint32_t sign = half ? 0x8000 : 0x80000000;
    return bits & sign ? -(int64_t)(bits & (sign - 1)) : (int64_t)bits;
}

struct count {
    uint64_t differing, most;
    uint32_t first; /* input whose result differs */
};

static void compare(struct count *count, bool half, uint32_t first, uint32_t inputs) {
    if (memcmp(sides[0].results, sides[1].results, (size_t)inputs * 4) == 0)
        return;
    for (uint32_t i = 0; i < inputs; i++) {
        uint32_t a = sides[0].results[i], b = sides[1].results[i];
        if (a == b)
            continue;
        uint64_t far = (uint64_t)llabs((long long)(place(a, half) - place(b, half)));
        if (count->differing++ == 0)
            count->first = first + i;
        count->most = far > count->most ? far : count->most;
    }
}

/* A line of 16 blocks, of which one in `every` is compared; or a whole function with fewer
 * inputs. */
static struct item {
    size_t function;
    uint32_t first, blocks, inputs;
} * items;
static unsigned every;

static void put_name(unsigned item, FILE *file) {
    fprintf(file, "%s %08x", ptx_functions[items[item].function].name, items[item].first);
}

static bool work(unsigned number, FILE *file) {
    const struct item *item = &items[number];
    struct count count = {0};
    for (uint32_t i = 0; i < item->blocks; i++) {
        uint32_t first = item->first + i * item->inputs;
        fetch(&sides[0], item->function, first, item->inputs);
        fetch(&sides[1], item->function, first, item->inputs);
        compare(&count, ptx_functions[item->function].kind == HALF, first, item->inputs);
    }
    put_name(number, file);
    fprintf(file, "\t%llu %llu %llu %x\n", (unsigned long long)item->blocks * item->inputs,
            (unsigned long long)count.differing, (unsigned long long)count.most, count.first);
    return true;
}

static unsigned list_items(const struct ptx_options *options) {
    unsigned count = 0;
    every = options->every;
    items = calloc((size_t)FUNCTIONS * 4096, sizeof *items);
    if (items == NULL)
        abort();
    for (size_t f = 0; f < FUNCTIONS; f++) {
        uint64_t inputs = ptx_function_inputs(&ptx_functions[f]);
        uint32_t block = inputs < BLOCK ? (uint32_t)inputs : BLOCK;
        if (options->only != NULL && strstr(ptx_functions[f].name, options->only) == NULL)
            continue;
        for (uint64_t first = 0; first < inputs; first += (uint64_t)block * every)
            items[count++] = (struct item){f, (uint32_t)first, 1, block};
    }
    return count;
}

/* Adds up the items' lines to one line for each function. */
static void add_up(FILE *from, FILE *to) {
    char name[64], last[64] = "";
    unsigned long long inputs, differing, most;
    unsigned first, at, at_last = 0;
    unsigned long long all = 0, bad = 0, far = 0;
    rewind(from);
    for (;;) {
        int got = fscanf(from, "%63s %x %llu %llu %llu %x", name, &at, &inputs, &differing, &most,
                         &first);
        if (*last != '\0' && (got != 6 || strcmp(name, last) != 0)) {
            fprintf(to,
                    bad ? "%s\tinputs %llu differing %llu most %llu first %08x\n"
                        : "%s\tinputs %llu differing %llu\n",
                    last, all, bad, far, at_last);
            all = bad = far = 0;
        }
        if (got != 6)
            break;
        strcpy(last, name);
        if (bad == 0 && differing != 0)
            at_last = first;
        all += inputs;
        bad += differing;
        far = most > far ? most : far;
    }
}

int ptx_approximate_count(const struct ptx_options *options, FILE *to) {
    struct ptx_work all = {.count = list_items(options),
                           .chunk = 8,
                           .jobs = options->jobs,
                           .seconds = 600,
                           .begin = begin,
                           .work = work,
                           .name = put_name};
    FILE *lines = tmpfile();
    if (lines == NULL)
        return 2;
    unsigned bad = ptx_fan_out(&all, lines);
    add_up(lines, to);
    fclose(lines);
    free(items);
    return bad ? 1 : 0;
}
