/* Runs each form of forms/ as a kernel of its own, over the values of its operands. */
#include "ptx.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct form {
    const char *outs, *ins, *text;
};

/* As they are written: the text may have choices. */
static const struct form rows[] = {
#define FORM(outs, ins, text) {outs, ins, text},
#include "forms/arithmetic.def"
#include "forms/comparisons.def"
#include "forms/conversions.def"
#include "forms/memory_and_warps.def"
#include "forms/video_choices.def"
#include "forms/video_products.def"
#include "forms/video_sums.def"
#include "forms/video_vectors.def"
#undef FORM
};
static struct form *forms;
static unsigned forms_count;

/* Kernels in one module, which are compiled together. */
#define CHUNK 24
#define CELL  32u /* bytes that each thread has for itself in global and in shared memory */

static const char *only;
static unsigned *chosen, chosen_count;

/* The forms of a row whose text begins with `begin`, for each choice in the rest. */
static void add_forms(const struct form *row, const char *begin, const char *rest) {
    const char *open = strchr(rest, '<');
    char text[512];
    if (open == NULL) {
        snprintf(text, sizeof text, "%s%s", begin, rest);
        forms = realloc(forms, (forms_count + 1) * sizeof *forms);
        if (forms == NULL)
            abort();
        forms[forms_count++] = (struct form){row->outs, row->ins, strdup(text)};
        return;
    }
    const char *close = strchr(open, '>');
    for (const char *word = open + 1; word <= close; word += strcspn(word, "|>") + 1) {
        snprintf(text, sizeof text, "%s%.*s%.*s", begin, (int)(open - rest), rest,
                 (int)strcspn(word, "|>"), word);
        add_forms(row, text, close + 1);
    }
}

static void make_forms(void) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        add_forms(&rows[i], "", rows[i].text);
}

static unsigned bits_of(char letter) {
    return letter == 'h' ? 16 : letter == 'w' ? 32 : letter == 'd' ? 64 : 1;
}

/* The form's statements, with registers in place of $0, $a, $G and so on. */
static void put_text(FILE *file, const char *text) {
    for (; *text != '\0'; text++) {
        if (*text != '$') {
            fputc(*text, file);
            continue;
        }
        char name = *++text;
        if (isdigit((unsigned char)name))
            fprintf(file, "%%o_%c", name);
        else if (islower((unsigned char)name))
            fprintf(file, "%%i_%c", name);
        else
            fputs(name == 'G' || name == 'X' ? "%cell" : name == 'S' ? "%own" : "%generic", file);
    }
}

static void put_register(FILE *file, char group, char name, unsigned bits) {
    if (bits == 1)
        fprintf(file, ".reg .pred %%%c_%c;\n", group, name);
    else
        fprintf(file, ".reg .b%u %%%c_%c;\n", bits, group, name);
}

/* in: values[operand][PTX_MOST]; out: likewise of what the form writes; cells: CELL bytes a
 * thread. */
static void put_kernel(FILE *file, const struct form *form, unsigned number) {
    fprintf(file,
            ".visible .entry k%u(.param .u64 in, .param .u64 out, .param .u64 cells) {\n"
            ".reg .b32 %%t, %%own, %%u; .reg .b64 %%in, %%out, %%cell, %%x, %%generic;\n"
            ".reg .pred %%p;\n",
            number);
    if (strstr(form->text, "$S") || strstr(form->text, "$Y"))
        fprintf(file,
                ".shared .align 32 .b8 own[%u];\nmov.u32 %%t, %%tid.x; mov.u32 %%own, own;\n"
                "mad.lo.u32 %%own, %%t, %u, %%own; cvt.u64.u32 %%generic, %%own;\n"
                "cvta.shared.u64 %%generic, %%generic; mov.b64 %%x, 0;\n"
                "st.shared.v2.b64 [%%own], {%%x,%%x}; st.shared.v2.b64 [%%own+16], {%%x,%%x};\n",
                PTX_BLOCK * CELL, CELL);
    fprintf(file,
            "mov.u32 %%t, %%ctaid.x; mov.u32 %%u, %%tid.x; mad.lo.u32 %%t, %%t, %u, %%u;\n"
            "ld.param.u64 %%in, [in]; ld.param.u64 %%out, [out]; ld.param.u64 %%cell, [cells];\n"
            "mul.wide.u32 %%x, %%t, %u; add.u64 %%cell, %%cell, %%x;\n"
            "mul.wide.u32 %%x, %%t, 8; add.u64 %%in, %%in, %%x; add.u64 %%out, %%out, %%x;\n",
            PTX_BLOCK, CELL);
    for (unsigned k = 0; k < ptx_operands(form->ins); k++) {
        unsigned bits = ptx_operand_bits(form->ins, k), at = k * PTX_MOST * 8;
        char name = (char)('a' + k);
        put_register(file, 'i', name, bits);
        if (bits == 1)
            fprintf(file, "ld.global.b32 %%u, [%%in+%u]; setp.ne.u32 %%i_%c, %%u, 0;\n", at, name);
        else
            fprintf(file, "ld.global.b%u %%i_%c, [%%in+%u];\n", bits, name, at);
    }
    for (unsigned k = 0; form->outs[k] != '\0'; k++)
        put_register(file, 'o', (char)('0' + k), bits_of(form->outs[k]));
    put_text(file, form->text);
    for (unsigned k = 0; form->outs[k] != '\0'; k++) {
        unsigned bits = bits_of(form->outs[k]), at = k * PTX_MOST * 8;
        if (bits == 1)
            fprintf(file, "\nselp.u32 %%u, 1, 0, %%o_%u; st.global.b32 [%%out+%u], %%u;", k, at);
        else
            fprintf(file, "\nst.global.b%u [%%out+%u], %%o_%u;", bits, at, k);
    }
    fputs("\nret; }\n", file);
}

/* A module of the forms [from, to), or NULL and the driver's result. */
static CUmodule load(unsigned from, unsigned to, CUresult *result) {
    char *text;
    size_t size;
    CUmodule module = NULL;
    FILE *file = open_memstream(&text, &size);
    if (file == NULL)
        abort();
    fputs(PTX_HEAD, file);
    for (unsigned i = from; i < to; i++)
        put_kernel(file, &forms[chosen[i]], i);
    fclose(file);
    *result = cu->cuModuleLoadData(&module, text);
    if (getenv("PTX_SHOW") != NULL)
        fprintf(stderr, "%s", text);
    free(text);
    return *result == CUDA_SUCCESS ? module : NULL;
}

static CUdeviceptr in, out, cells;
static CUmodule module;
static unsigned module_from, module_to; /* the forms in the loaded module */

static void begin(void) {
    ptx_open(NULL);
    MUST(cu->cuMemAlloc_v2(&in, (size_t)PTX_MOST_INS * PTX_MOST * 8));
    MUST(cu->cuMemAlloc_v2(&out, (size_t)PTX_MOST_OUTS * PTX_MOST * 8));
    MUST(cu->cuMemAlloc_v2(&cells, (size_t)PTX_MOST * CELL));
}

/* A form's kernel: in its chunk's module, or in one of its own if the chunk's is refused. */
static CUresult kernel_of(unsigned item, CUfunction *kernel) {
    char name[16];
    CUresult result = CUDA_SUCCESS;
    if (module == NULL || item < module_from || item >= module_to) {
        if (module != NULL)
            MUST(cu->cuModuleUnload(module));
        module_from = item / CHUNK * CHUNK;
        module_to = module_from + CHUNK < chosen_count ? module_from + CHUNK : chosen_count;
        module = load(module_from, module_to, &result);
        if (module == NULL) {
            module_from = item;
            module_to = item + 1;
            module = load(module_from, module_to, &result);
        }
        if (module == NULL)
            return result;
    }
    snprintf(name, sizeof name, "k%u", item);
    return cu->cuModuleGetFunction(kernel, module, name);
}

/* The values in order, those of one thread joined by commas; *n: the same for n threads. */
static void put_answers(FILE *file, const struct form *form, const uint64_t *got, unsigned count) {
    char last[PTX_MOST_OUTS * 17 + 1] = "", now[sizeof last];
    unsigned times = 0;
    for (unsigned i = 0; i <= count; i++) {
        now[0] = '\0';
        for (unsigned k = 0; i < count && form->outs[k] != '\0'; k++)
            snprintf(now + strlen(now), sizeof now - strlen(now), "%s%llx", k ? "," : "",
                     (unsigned long long)got[(size_t)k * PTX_MOST + i]);
        if (times > 0 && strcmp(now, last) == 0) {
            times++;
            continue;
        }
        if (times > 1)
            fprintf(file, "*%u", times);
        if (i < count)
            fprintf(file, "%c%s", i == 0 ? '\t' : ' ', now);
        strcpy(last, now);
        times = 1;
    }
    fputc('\n', file);
}

static void put_name(unsigned item, FILE *file) {
    fputs(forms[chosen[item]].text, file);
}

static bool work(unsigned item, FILE *file) {
    static uint64_t values[PTX_MOST_INS * PTX_MOST], got[PTX_MOST_OUTS * PTX_MOST];
    const struct form *form = &forms[chosen[item]];
    unsigned asked, threads = ptx_values(form->ins, values, &asked);
    CUfunction kernel = NULL;
    CUresult result = kernel_of(item, &kernel);
    void *params[] = {&in, &out, &cells};
    put_name(item, file);
    if (result == CUDA_SUCCESS) {
        MUST(
            cu->cuMemcpyHtoD_v2(in, values, ptx_operands(form->ins) * sizeof(uint64_t) * PTX_MOST));
        MUST(cu->cuMemsetD8_v2(out, 0, sizeof got));
        MUST(cu->cuMemsetD8_v2(cells, 0, (size_t)PTX_MOST * CELL));
        result = cu->cuLaunchKernel(kernel, threads / PTX_BLOCK, 1, 1, PTX_BLOCK, 1, 1, 0, NULL,
                                    params, NULL);
    }
    bool sound = true;
    if (result == CUDA_SUCCESS) {
        result = cu->cuCtxSynchronize();
        sound = result == CUDA_SUCCESS;
    }
    if (result != CUDA_SUCCESS) {
        fprintf(file, "\trefused: %s\n", ptx_result_name(result));
        return sound;
    }
    MUST(cu->cuMemcpyDtoH_v2(got, out, sizeof got));
    put_answers(file, form, got, asked);
    return true;
}

int ptx_forms_record(const struct ptx_options *options, FILE *to) {
    fprintf(to, "values\t%016llx\n", (unsigned long long)ptx_values_hash());
    only = options->only;
    make_forms();
    chosen = malloc(forms_count * sizeof *chosen);
    if (chosen == NULL)
        abort();
    for (unsigned i = 0; i < forms_count; i++)
        if (only == NULL || strstr(forms[i].text, only) != NULL)
            chosen[chosen_count++] = i;
    struct ptx_work all = {.count = chosen_count,
                           .chunk = CHUNK,
                           .jobs = options->jobs,
                           .seconds = 60,
                           .begin = begin,
                           .work = work,
                           .name = put_name};
    return ptx_fan_out(&all, to) ? 1 : 0;
}

int ptx_forms_inputs(const char *text) {
    static uint64_t values[PTX_MOST_INS * PTX_MOST];
    make_forms();
    for (unsigned i = 0; i < forms_count; i++) {
        if (strcmp(forms[i].text, text) != 0)
            continue;
        unsigned asked;
        ptx_values(forms[i].ins, values, &asked);
        for (unsigned n = 0; n < asked; n++) {
            for (unsigned k = 0; k < ptx_operands(forms[i].ins); k++)
                printf("%s%llx", k ? "," : "",
                       (unsigned long long)values[(size_t)k * PTX_MOST + n]);
            putchar('\n');
        }
        return 0;
    }
    fprintf(stderr, "ptx: there is no form '%s'\n", text);
    return 2;
}
