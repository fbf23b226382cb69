/* mbarriers: phases, counts of arrivals and bytes, what is misused. */
#include "async_kernel.h"

TEST(misusing_an_mbarrier_is_a_fault) {
    static const struct {
        const char *text;
        enum sg_fault_kind kind;
    } cases[] = {
        {ASYNC("mbarrier.arrive.shared.b64 %rd4, [%r8];"), SG_FAULT_MBARRIER},
        {ASYNC("mbarrier.init.shared.b64 [%r8], 0;"), SG_FAULT_MBARRIER},
        {ASYNC("mbarrier.init.shared.b64 [%r8], 1048576;"), SG_FAULT_MBARRIER},
        {ASYNC("mbarrier.init.shared.b64 [%r8+4], 1;"), SG_FAULT_MISALIGNED},
        {ASYNC("mbarrier.init.shared.b64 [%r8+80], 1;"), SG_FAULT_SPACE},
        {ASYNC("mbarrier.init.b64 [%rd1], 1;"), SG_FAULT_SPACE},
        {ASYNC("@%q mbarrier.init.shared.b64 [%r8], 3; mbarrier.arrive.shared.b64 %rd4, [%r8], 4;"),
         SG_FAULT_MBARRIER},
        {ASYNC("mbarrier.init.shared.b64 [%r8], 3; mbarrier.inval.shared.b64 [%r8];\n"
               "mbarrier.test_wait.parity.shared.b64 %p, [%r8], 0;"),
         SG_FAULT_MBARRIER},
        {ASYNC("@%q mbarrier.init.shared.b64 [%r8], 3;\n"
               "mbarrier.expect_tx.relaxed.cta.shared.b64 [%r8], 1048575;"),
         SG_FAULT_MBARRIER},
    };
    uint32_t out[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sg_grid_fault fault =
            async_fault(cases[i].text, &(struct async_run){.threads = 32}, out, NULL);
        if (fault.kind != cases[i].kind)
            fail_msg("%s: %s", cases[i].text, sg_fault_name(fault.kind));
    }
}
