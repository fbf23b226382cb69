#include "softgpu/entry/rules.h"

const struct sg_rule sg_rules[GPUMEM_FN_COUNT] = {
#define SG_RULE(symbol, ...) [GPUMEM_FN_##symbol] = {__VA_ARGS__},
#include "softgpu/entry/rules.def"
};
