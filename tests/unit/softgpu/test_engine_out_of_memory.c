/* Compiling and running a kernel where memory ends: at each allocation in turn. */
#include "async_kernel.h"
#include "refused_memory.h"

/* Calls (paths and frames), parameters, specials, a variable, an indexed branch. */
static const char text[] = KERNEL_HEAD
    ".global .u32 v;\n"
    ".func (.param .u32 r) f(.param .u32 n) { .reg .pred %p; .reg .b32 %r<80>;\n"
    "ld.param.u32 %r1, [n]; setp.eq.u32 %p, %r1, 0; @%p bra end; sub.u32 %r1, %r1, 1;\n"
    "{ .param .u32 a, b; st.param.u32 [a], %r1; call (b), f, (a);\n"
    "ld.param.u32 %r1, [b]; }\nend: add.u32 %r1, %r1, 1; st.param.u32 [r], %r1; ret; }\n"
    ".visible .entry k(.param .u64 at) { .reg .b32 %r<9>; .reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [at]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;\n"
    "add.u64 %rd1, %rd1, %rd2; mov.u64 %rd3, v; and.b32 %r2, %r1, 1;\n"
    "t: .branchtargets one, two; brx.idx %r2, t; one: two:\n"
    "{ .param .u32 a, b; st.param.u32 [a], 9; call (b), f, (a);\n"
    "ld.param.u32 %r3, [b]; }\nst.global.u32 [%rd1], %r3; ret; }\n";

static void compile_at_each_allocation(unsigned kinds) {
    struct kernel kernel;
    size_t failures = 0;
    kernel_make(&kernel, text, sg_level_best());
    for (bool done = false; !done; failures += !done) {
        struct sg_code *code = NULL;
        refuse_memory((long)failures + 1);
        CUresult result = sg_code_make(kernel.program, sg_level_best(), kinds, &code);
        end_refusal();
        done = !memory_was_refused();
        assert_int_equal(result, memory_was_refused() ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
        assert_true((code != NULL) == done);
        sg_code_free(code);
    }
    assert_true(failures > 8);
    kernel_free(&kernel);
}

TEST(compiling_without_memory_fails_and_leaks_nothing) {
    compile_at_each_allocation(0);
    compile_at_each_allocation(SG_CODE_COUNTED);
}

static void run_at_each_allocation(unsigned kinds) {
    struct kernel kernel;
    size_t failures = 0, faults = 0;
    uint32_t out[64] = {0};
    kernel_make(&kernel, text, sg_level_best());
    sg_code_free(kernel.code);
    assert_int_equal(sg_code_make(kernel.program, sg_level_best(), kinds, &kernel.code),
                     CUDA_SUCCESS);
    kernel.launch.code = kernel.code;
    kernel_pointer(&kernel, out);
    kernel_shape(&kernel, 2, 64);
    kernel.launch.parameters = kernel.parameters;
    for (bool done = false; !done; failures += !done) {
        struct sg_grid *grid = NULL;
        refuse_memory((long)failures + 1);
        CUresult result = sg_grid_begin(&kernel.launch, &grid);
        if (result == CUDA_SUCCESS) {
            while (!sg_grid_advance(grid, UINT64_MAX))
                ;
            const struct sg_grid_fault *fault = sg_grid_fault(grid);
            assert_true((fault != NULL) == memory_was_refused());
            assert_true(!fault || fault->kind == SG_FAULT_MEMORY);
            faults += fault != NULL;
        } else {
            assert_true(memory_was_refused() && result == CUDA_ERROR_OUT_OF_MEMORY && !grid);
        }
        end_refusal();
        done = !memory_was_refused();
        sg_grid_end(grid);
    }
    for (int i = 0; i < 64; i++)
        assert_int_equal(out[i], 10);
    assert_true(failures > faults && faults > 2);
    kernel_free(&kernel);
}

TEST(running_without_memory_reports_out_of_memory) {
    run_at_each_allocation(0);
    run_at_each_allocation(SG_CODE_COUNTED);
}

/* Clusters and copies that complete late: a copy that cannot be put off is done at once, and all
 * else fails with its reason. */
TEST(an_async_copy_without_memory_completes_at_once) {
    uint32_t in[ASYNC_INPUT] __attribute__((aligned(16))), out[1024];
    size_t faults = 0, others = 0;
    for (uint32_t i = 0; i < ASYNC_INPUT; i++)
        in[i] = ASYNC_IN(i);
    for (size_t c = 0; c < ASYNC_CASES; c++) {
        const struct async_case *each = &async_cases[c];
        struct kernel kernel =
            KERNEL_WITH(each->text, sg_level_best(), each->blocks, each->threads, out, in);
        kernel.launch.cluster[0] = each->cluster;
        kernel.launch.explicit_cluster = each->cluster != 0;
        kernel.launch.schedule = SG_GRID_LATE;
        kernel.launch.parameters = kernel.parameters;
        bool done = false;
        for (size_t failures = 0; !done && failures < 400; failures++) {
            struct sg_grid *grid = NULL;
            memset(out, UNTOUCHED & 0xff, sizeof out);
            refuse_memory((long)failures + 1);
            CUresult result = sg_grid_begin(&kernel.launch, &grid);
            while (result == CUDA_SUCCESS && !sg_grid_advance(grid, UINT64_MAX))
                ;
            end_refusal();
            done = !memory_was_refused();
            const struct sg_grid_fault *fault = grid ? sg_grid_fault(grid) : NULL;
            assert_true(!fault || (memory_was_refused() && fault->kind == SG_FAULT_MEMORY));
            faults += fault != NULL;
            others += memory_was_refused() && grid && !fault;
            for (uint32_t i = 0; grid && !fault && i < each->blocks * each->threads; i++)
                assert_int_equal(out[i], each->answer(i / each->threads, i % each->threads));
            sg_grid_end(grid);
        }
        kernel_free(&kernel);
    }
    assert_true(faults > 20 && others > 20);
}
