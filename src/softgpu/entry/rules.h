/* What the prologue checks for a function. Without a rule, a function needs cuInit, the lock and a
 * context without a sticky error, and is refused in host functions. */
#ifndef SG_ENTRY_RULES_H
#define SG_ENTRY_RULES_H

#include <gpumem/driver.h>

#define SG_BEFORE_INIT      (1u << 0) /* answers before cuInit */
#define SG_STICKY_OK        (1u << 1) /* answers in a poisoned context */
#define SG_IN_HOST_FUNCTION (1u << 2) /* answers in a host function */
#define SG_UNLOCKED         (1u << 3) /* touches no state: called without the lock */
#define SG_UNCOUNTED        (1u << 4) /* "*" in a fault does not include it: no driver fails it */
#define SG_ZERO_FIRST       (1u << 5) /* its first output, 8 bytes, becomes 0 if refused here */
#define SG_ALIVE            (1u << 6) /* a destroyed current context precedes its arguments */
/* Potentially unsafe during stream capture: STREAM_CAPTURE_UNSUPPORTED before any argument is
 * checked. Functions that take a stream, an event or a module check for themselves, because those
 * come first. */
#define SG_CAPTURE_UNSAFE (1u << 7)
/* Has 64-bit addresses: INVALID_CONTEXT in a context made by the first version of cuCtxCreate, with
 * `outputs` set to 0. */
#define SG_WIDE_ONLY (1u << 8)
/* Not implemented: without a current context it returns INVALID_CONTEXT. */
#define SG_CONTEXT_FIRST (1u << 9)
/* A chapter implements it to check the arguments as hardware does, and refuses every request;
 * tests/coverage detects if one succeeds after all. */
#define SG_REFUSES (1u << 10)
/* Launches a kernel. With SOFTGPU_KERNELS=0 it refuses, except that a capture makes a node of the
 * request. */
#define SG_LAUNCHES (1u << 11)

/* What is checked before a NULL argument. The later ones are checked first. */
enum sg_null_when { SG_NULL_NEVER, SG_NULL_LAST, SG_NULL_BEFORE_CONTEXT, SG_NULL_BEFORE_INIT };

struct sg_rule {
    unsigned short flags;
    unsigned char outputs; /* number of leading 8-byte outputs that are set to 0 (SG_WIDE_ONLY) */
    /* The result for NULL or 0 as the first or second argument (an output, an array, a handle or a
     * count). */
    struct {
        unsigned char argument; /* 1 or 2 */
        unsigned char when;     /* enum sg_null_when */
        unsigned short result;
    } null;
    unsigned short refusal; /* if it is not NOT_SUPPORTED, for which 0 stands */
};

extern const struct sg_rule sg_rules[GPUMEM_FN_COUNT];

#endif
