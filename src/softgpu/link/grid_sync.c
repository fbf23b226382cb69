/*
 * What programs link from NVIDIA's library of the device runtime, which holds machine code: the two
 * functions behind a grid's synchronization. A cooperative launch gives them zeroed memory, whose
 * address is in %envreg1 (high) and %envreg2 (low).
 *
 * In each round one block adds what the others leave to 2^31, so that the top bit changes when the
 * last has come; threads of a block meet at its barrier, before and after.
 */
#include "softgpu/link/grid_sync.h"

const char sg_link_grid_sync[] =
    ".version 6.3\n.target sm_70\n.address_size 64\n"
    ".visible .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope) {\n"
    ".reg .b32 %scope, %high, %low; .reg .b64 %at; .reg .pred %grid;\n"
    "ld.param.b32 %scope, [scope]; mov.b32 %high, %envreg1; mov.b32 %low, %envreg2;\n"
    "mov.b64 %at, {%low, %high}; setp.eq.u32 %grid, %scope, 1; selp.b64 %at, %at, 0, %grid;\n"
    "st.param.b64 [handle], %at; ret; }\n"
    ".visible .func (.param .b32 error) cudaCGSynchronize(.param .b64 handle, .param .b32 flags) "
    "{\n"
    ".reg .b32 %x, %y, %z, %count, %add, %old, %now; .reg .b64 %at; .reg .pred %p;\n"
    "ld.param.b64 %at, [handle]; setp.eq.u64 %p, %at, 0; @%p bra NOT_COOPERATIVE;\n"
    "bar.sync 0;\n"
    "mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; mov.u32 %z, %tid.z;\n"
    "or.b32 %x, %x, %y; or.b32 %x, %x, %z; setp.ne.u32 %p, %x, 0; @%p bra MET;\n"
    "mov.u32 %x, %nctaid.x; mov.u32 %y, %nctaid.y; mov.u32 %z, %nctaid.z;\n"
    "mul.lo.u32 %count, %x, %y; mul.lo.u32 %count, %count, %z;\n"
    "mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mov.u32 %z, %ctaid.z;\n"
    "or.b32 %x, %x, %y; or.b32 %x, %x, %z; setp.eq.u32 %p, %x, 0;\n"
    "sub.u32 %add, 0x80000001, %count; selp.b32 %add, %add, 1, %p;\n"
    "fence.acq_rel.gpu; atom.add.relaxed.gpu.u32 %old, [%at+128], %add;\n"
    "AGAIN: ld.acquire.gpu.u32 %now, [%at+128]; xor.b32 %now, %now, %old;\n"
    "setp.ge.s32 %p, %now, 0; @%p bra AGAIN;\n"
    "fence.acq_rel.gpu;\n"
    "MET: bar.sync 0; st.param.b32 [error], 0; ret;\n"
    "NOT_COOPERATIVE: st.param.b32 [error], 1; ret; }\n"; /* cudaErrorInvalidValue */
