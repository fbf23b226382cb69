/* Runs random programs and prints a hash of each one's results. */
#include "program_text.h"
#include "ptx.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = PTX_PROGRAM_THREADS * PTX_PROGRAM_BLOCKS + 6 * PTX_PROGRAM_BLOCKS };
#define DROPS 4096

static CUdeviceptr out;
static uint64_t from;
static bool drop[DROPS];
static bool plain; /* the driver's compiler does not optimise */

static void put_name(unsigned item, FILE *file) {
    fprintf(file, "%llu", (unsigned long long)(from + item));
}

/* Writes or reads the whole of a variable: before the program begins, or at its end. */
static void all_of(CUmodule module, const char *name, void *bytes, size_t size, bool write) {
    CUdeviceptr at;
    size_t has;
    MUST(cu->cuModuleGetGlobal_v2(&at, &has, module, name));
    if (has != size)
        ptx_must(CUDA_ERROR_INVALID_VALUE, name);
    if (write)
        MUST(cu->cuMemsetD8_v2(at, 0, size));
    else
        MUST(cu->cuMemcpyDtoH_v2(bytes, at, size));
}

/* Words of the threads, sums of the blocks, sums of the grid, each thread's own memory. */
static struct answer {
    uint32_t words[WORDS];
    uint64_t everything[4];
    uint64_t owns[4 * PTX_PROGRAM_THREADS * PTX_PROGRAM_BLOCKS];
} answer;

static void begin(void) {
    ptx_open(NULL);
    MUST(cu->cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 16384));
    MUST(cu->cuMemAlloc_v2(&out, sizeof answer.words));
}

/* *loaded: the program was launched, so a failure is the kernel's. */
static CUresult run(uint64_t seed, bool *loaded) {
    unsigned statements;
    char *text = ptx_program_text(seed, drop, DROPS, &statements);
    CUmodule module;
    CUfunction kernel;
    void *params[] = {&out};
    *loaded = false;
    CUjit_option level = CU_JIT_OPTIMIZATION_LEVEL;
    void *none = NULL; /* the optimisation level 0, passed as a pointer */
    CUresult result = cu->cuModuleLoadDataEx(&module, text, plain ? 1 : 0, &level, &none);
    free(text);
    if (result != CUDA_SUCCESS)
        return result;
    MUST(cu->cuModuleGetFunction(&kernel, module, "k"));
    MUST(cu->cuMemsetD8_v2(out, 0, sizeof answer.words));
    all_of(module, "everything", answer.everything, sizeof answer.everything, true);
    all_of(module, "owns", answer.owns, sizeof answer.owns, true);
    result = cu->cuLaunchKernel(kernel, PTX_PROGRAM_BLOCKS, 1, 1, PTX_PROGRAM_THREADS, 1, 1, 0,
                                NULL, params, NULL);
    if (result == CUDA_SUCCESS) {
        *loaded = true;
        result = cu->cuCtxSynchronize();
    }
    if (result == CUDA_SUCCESS) {
        MUST(cu->cuMemcpyDtoH_v2(answer.words, out, sizeof answer.words));
        all_of(module, "everything", answer.everything, sizeof answer.everything, false);
        all_of(module, "owns", answer.owns, sizeof answer.owns, false);
        MUST(cu->cuModuleUnload(module));
    } else if (!*loaded) {
        MUST(cu->cuModuleUnload(module));
    }
    return result;
}

static uint64_t hash_of(const void *bytes, size_t size) {
    uint64_t hash = 0, word;
    for (size_t i = 0; i + 4 <= size; i += 4) {
        word = 0;
        memcpy(&word, (const char *)bytes + i, 4);
        hash = ptx_mix(hash ^ word);
    }
    return hash;
}

static bool work(unsigned item, FILE *file) {
    bool launched;
    CUresult result = run(from + item, &launched);
    put_name(item, file);
    if (result == CUDA_SUCCESS)
        fprintf(file, "\t%016llx\n", (unsigned long long)hash_of(&answer, sizeof answer));
    else
        fprintf(file, "\t%s: %s\n", launched ? "fault" : "refused", ptx_result_name(result));
    return !launched || result == CUDA_SUCCESS;
}

static void read_drops(const char *list) {
    while (list != NULL && *list != '\0') {
        char *end;
        unsigned long number = strtoul(list, &end, 10);
        if (end == list)
            return;
        if (number < DROPS)
            drop[number] = true;
        list = *end == ',' ? end + 1 : end;
    }
}

/* Of the first hundred programs. Results of other programs cannot be compared. */
static uint64_t hash_of_texts(void) {
    uint64_t hash = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        unsigned statements;
        char *text = ptx_program_text(seed, NULL, 0, &statements);
        for (const char *byte = text; *byte != '\0'; byte++)
            hash = ptx_mix(hash ^ (unsigned char)*byte);
        free(text);
    }
    return hash;
}

int ptx_programs_record(const struct ptx_options *options, FILE *to) {
    fprintf(to, "texts\t%016llx\n", (unsigned long long)hash_of_texts());
    from = options->from;
    read_drops(options->drop);
    struct ptx_work all = {.count = options->to > from ? (unsigned)(options->to - from) : 0,
                           .chunk = 16,
                           .jobs = options->jobs,
                           .seconds = 20,
                           .begin = begin,
                           .work = work,
                           .name = put_name};
    ptx_fan_out(&all, to);
    return 0;
}

/* Where these results equal softgpu's and those of ptx_programs_record do not, optimising has
 * changed what the program does. */
int ptx_programs_record_plain(const struct ptx_options *options, FILE *to) {
    plain = true;
    return ptx_programs_record(options, to);
}

int ptx_program_show(const struct ptx_options *options) {
    unsigned statements;
    read_drops(options->drop);
    char *text = ptx_program_text(options->from, drop, DROPS, &statements);
    printf("%s/* %u statements */\n", text, statements);
    free(text);
    return 0;
}

int ptx_program_answer(const struct ptx_options *options) {
    bool launched;
    read_drops(options->drop);
    begin();
    CUresult result = run(options->from, &launched);
    if (result != CUDA_SUCCESS) {
        printf("%s: %s\n", launched ? "fault" : "refused", ptx_result_name(result));
        return 1;
    }
    for (unsigned i = 0; i < WORDS; i++)
        printf("%s %u: %08x\n", i < PTX_PROGRAM_THREADS * PTX_PROGRAM_BLOCKS ? "thread" : "sum", i,
               answer.words[i]);
    for (unsigned i = 0; i < 4; i++)
        printf("all %u: %016llx\n", i, (unsigned long long)answer.everything[i]);
    for (unsigned i = 0; i < PTX_PROGRAM_THREADS * PTX_PROGRAM_BLOCKS * 4; i++)
        printf("own %u: %016llx\n", i, (unsigned long long)answer.owns[i]);
    return 0;
}
