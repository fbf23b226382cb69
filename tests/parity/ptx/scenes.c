/* Runs the scenes of scenes.def: behaviour of kernels that takes more than one instruction. */
#include "ptx.h"

#include <stdlib.h>

#define WORDS 256u

static const struct scene {
    const char *name;
    unsigned blocks, threads, dynamic, words;
    const char *before, *body;
} scenes[] = {
#define SCENE(name, blocks, threads, dynamic, words, before, body)                                 \
    {name, blocks, threads, dynamic, words, before, body},
#include "scenes.def"
#undef SCENE
};
#define SCENES (sizeof scenes / sizeof scenes[0])

static CUdeviceptr out;

static void begin(void) {
    ptx_open(NULL);
    MUST(cu->cuMemAlloc_v2(&out, WORDS * 4));
}

static void put_name(unsigned item, FILE *file) {
    fputs(scenes[item].name, file);
}

static CUresult load(const struct scene *scene, CUfunction *kernel) {
    static char text[16384];
    CUmodule module;
    snprintf(text, sizeof text,
             PTX_HEAD
             "%s.visible .entry k(.param .u64 out) {\n"
             ".reg .b32 %%t, %%a, %%b, %%c, %%d, %%e, %%f, %%g, %%h; .reg .pred %%p, %%q;\n"
             ".reg .b64 %%out, %%at, %%dd;\n"
             "ld.param.u64 %%out, [out]; mov.u32 %%t, %%tid.x;\n"
             "mad.wide.u32 %%at, %%t, 4, %%out;\n%sret; }\n",
             scene->before, scene->body);
    if (getenv("PTX_SHOW") != NULL)
        fputs(text, stderr);
    CUresult result = cu->cuModuleLoadData(&module, text);
    return result == CUDA_SUCCESS ? cu->cuModuleGetFunction(kernel, module, "k") : result;
}

static bool work(unsigned item, FILE *file) {
    static uint32_t got[WORDS];
    const struct scene *scene = &scenes[item];
    CUfunction kernel;
    void *params[] = {&out};
    put_name(item, file);
    CUresult result = load(scene, &kernel);
    if (result == CUDA_SUCCESS) {
        MUST(cu->cuMemsetD8_v2(out, 0, sizeof got));
        result = cu->cuLaunchKernel(kernel, scene->blocks, 1, 1, scene->threads, 1, 1,
                                    scene->dynamic, NULL, params, NULL);
    }
    if (result != CUDA_SUCCESS) {
        fprintf(file, "\trefused: %s\n", ptx_result_name(result));
        return true;
    }
    result = cu->cuCtxSynchronize();
    if (result != CUDA_SUCCESS) {
        fprintf(file, "\tfault: %s\n", ptx_result_name(result));
        return false;
    }
    MUST(cu->cuMemcpyDtoH_v2(got, out, sizeof got));
    for (unsigned i = 0; i < scene->words; i++) {
        unsigned times = 1;
        while (i + times < scene->words && got[i + times] == got[i])
            times++;
        fprintf(file, times > 1 ? "%c%x*%u" : "%c%x", i ? ' ' : '\t', got[i], times);
        i += times - 1;
    }
    fputc('\n', file);
    return true;
}

int ptx_scenes_record(const struct ptx_options *options, FILE *to) {
    struct ptx_work all = {.count = SCENES,
                           .chunk = 1,
                           .jobs = options->jobs,
                           .seconds = 8,
                           .begin = begin,
                           .work = work,
                           .name = put_name};
    ptx_fan_out(&all, to); /* a scene that never ends is a result too */
    return 0;
}
