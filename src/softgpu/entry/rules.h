/* What the prologue checks for a function. Without a rule a function needs cuInit, the lock and a
 * context without a sticky error, and is refused in host functions. */
#ifndef SG_ENTRY_RULES_H
#define SG_ENTRY_RULES_H

#include <gpumem/driver.h>

#define SG_BEFORE_INIT      (1u << 0) /* answers before cuInit */
#define SG_STICKY_OK        (1u << 1) /* answers in a poisoned context */
#define SG_IN_HOST_FUNCTION (1u << 2) /* answers in a host function */
#define SG_UNLOCKED         (1u << 3) /* touches no state: entered without the lock */
#define SG_UNCOUNTED        (1u << 4) /* "*" in a fault does not mean it: no driver fails it */
#define SG_ZERO_FIRST       (1u << 5) /* its first output, 8 bytes, becomes 0 when it is refused here */
#define SG_ALIVE            (1u << 6) /* a destroyed current context comes before its arguments */
/* Potentially unsafe during stream capture: STREAM_CAPTURE_UNSUPPORTED before any argument is
 * looked at. What names a stream, an event or a module asks by itself, because theirs comes first.
 */
#define SG_CAPTURE_UNSAFE (1u << 7)
/* Has addresses of 64 bits: INVALID_CONTEXT in a context that cuCtxCreate's first version made,
 * with `outputs` set to 0. */
#define SG_WIDE_ONLY (1u << 8)
/* Not implemented: without a current context the answer is INVALID_CONTEXT. */
#define SG_CONTEXT_FIRST (1u << 9)
/* A chapter implements it to look at the arguments as hardware does, and refuses whatever is asked
 * for; tests/coverage finds out when one of them succeeds after all. The second: but that a capture
 * makes a node of what is asked for. */
#define SG_REFUSES              (1u << 10)
#define SG_REFUSES_BUT_CAPTURES (1u << 11)

/* What comes before the look at a NULL argument. The later ones are looked at first. */
enum sg_null_when { SG_NULL_NEVER, SG_NULL_LAST, SG_NULL_BEFORE_CONTEXT, SG_NULL_BEFORE_INIT };

struct sg_rule {
    unsigned short flags;
    unsigned char outputs; /* of 8 bytes, the first ones: become 0 (SG_WIDE_ONLY) */
    /* What NULL or 0 for the first or second argument (an output, an array, a handle or a number of
     * things) answers. */
    struct {
        unsigned char argument; /* 1 or 2 */
        unsigned char when;     /* enum sg_null_when */
        unsigned short result;
    } null;
    unsigned short refusal; /* where that is not NOT_SUPPORTED, which 0 stands for */
};

extern const struct sg_rule sg_rules[GPUMEM_FN_COUNT];

#endif
