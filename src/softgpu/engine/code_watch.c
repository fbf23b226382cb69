/* Watched code: additional steps around accesses, and before fences. */
#include "softgpu/core/config.h"
#include "softgpu/engine/code.h"
#include "softgpu/engine/watching.h"

static unsigned scope_of(const struct sg_instruction *in, unsigned otherwise) {
    switch (in->scope) {
    case SG_SCOPE_CTA:
        return SG_WATCHED_CTA;
    case SG_SCOPE_CLUSTER:
        return SG_WATCHED_CLUSTER;
    case SG_SCOPE_GPU:
        return SG_WATCHED_GPU;
    case SG_SCOPE_SYS:
        return SG_WATCHED_SYSTEM;
    default:
        return otherwise;
    }
}

static unsigned order_of(unsigned semantics) {
    switch (semantics) {
    case SG_SEMANTICS_RELAXED:
        return SG_WATCHED_STRONG;
    case SG_SEMANTICS_ACQUIRE:
        return SG_WATCHED_STRONG | SG_WATCHED_ACQUIRE;
    case SG_SEMANTICS_RELEASE:
        return SG_WATCHED_STRONG | SG_WATCHED_RELEASE;
    case SG_SEMANTICS_ACQ_REL:
    case SG_SEMANTICS_SC:
        return SG_WATCHED_STRONG | SG_WATCHED_ACQUIRE | SG_WATCHED_RELEASE;
    default:
        return 0;
    }
}

/* Puts the last step between a probe and its end. */
void sg_maker_watch_access(struct sg_maker *maker, unsigned kind, uint64_t size) {
    struct sg_code *code = maker->code;
    const struct sg_instruction *in = maker->in;
    if (!code->watched || maker->no_memory)
        return;
    uint32_t at = code->step_count - 1;
    (void)sg_maker_step(maker, sg_run_probe);
    (void)sg_maker_step(maker, sg_run_probed);
    if (maker->no_memory)
        return;
    struct sg_step probe = code->steps[at + 1];
    const struct sg_step *access = &code->steps[at];
    bool plain = kind != SG_WATCHED_ATOMIC;
    bool counts = !sg_config()->check_plain_volatile;
    bool outer = in->modifiers & SG_MOD(MMIO) || (counts && in->modifiers & SG_MOD(VOLATILE));
    probe.a = access->a;
    probe.value = access->value;
    probe.space = access->space;
    probe.flags = access->flags & SG_STEP_WIDE;
    probe.count = (uint16_t)size;
    probe.choice = (unsigned char)kind;
    probe.second =
        (unsigned char)(order_of(in->semantics) | (plain && !outer ? 0 : SG_WATCHED_STRONG));
    probe.rounding = (unsigned char)scope_of(in, outer ? SG_WATCHED_SYSTEM : SG_WATCHED_GPU);
    code->steps[at + 1] = code->steps[at];
    code->steps[at] = probe;
}

void sg_maker_watch_fence(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    if (!maker->code->watched)
        return;
    unsigned order = order_of(in->semantics);
    if (in->operation == SG_DO_NONE && in->semantics == SG_SEMANTICS_NONE)
        order = SG_WATCHED_ACQUIRE | SG_WATCHED_RELEASE;
    bool sc =
        in->semantics == SG_SEMANTICS_SC || (in->op == SG_OP_membar && in->operation == SG_DO_NONE);
    struct sg_step *step = sg_maker_step(maker, sg_run_watched_fence);
    step->choice = (unsigned char)((order & ~SG_WATCHED_STRONG) | (sc ? SG_WATCHED_STRONG : 0));
    step->rounding = (unsigned char)scope_of(in, SG_WATCHED_CTA);
}
