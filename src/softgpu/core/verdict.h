/* What counts against the process at its end; entry/verdict.h describes the consequences.
 * Thread-safe. */
#ifndef SG_CORE_VERDICT_H
#define SG_CORE_VERDICT_H

#include <stdbool.h>

/* A setting is invalid; `text` says which, and what is accepted. cuInit fails from now on. */
void sg_verdict_wrong(const char *text);
bool sg_verdict_is_wrong(void);
/* Objects were leaked. */
void sg_verdict_leak(void);
bool sg_verdict_is_leak(void);

/* A checker has found an error. */
void sg_verdict_hazard(void);
bool sg_verdict_is_hazard(void);

#endif
