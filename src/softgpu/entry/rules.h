/* What the prologue checks for a function. Without a rule a function needs cuInit, the lock and a
 * context without a sticky error, and is refused in host functions. */
#ifndef SG_ENTRY_RULES_H
#define SG_ENTRY_RULES_H

#define SG_BEFORE_INIT      1u  /* answers before cuInit */
#define SG_STICKY_OK        2u  /* answers in a poisoned context */
#define SG_IN_HOST_FUNCTION 4u  /* answers in a host function */
#define SG_UNLOCKED         8u  /* touches no state: entered without the lock */
#define SG_UNCOUNTED        16u /* "*" in a fault does not mean it: no driver fails it */
#define SG_ZERO_FIRST       32u /* its first output, 8 bytes, becomes 0 when it is refused here */
#define SG_ALIVE            64u /* a destroyed current context comes before its arguments */

/* What comes before the look at a NULL argument; see null.def. The later ones are looked at first.
 */
enum sg_null_when { SG_NULL_NEVER, SG_NULL_LAST, SG_NULL_BEFORE_CONTEXT, SG_NULL_BEFORE_INIT };

#endif
