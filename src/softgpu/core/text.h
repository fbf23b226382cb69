/* Growing text: the state dump and the leak report, to which each chapter adds its lines. */
#ifndef SG_CORE_TEXT_H
#define SG_CORE_TEXT_H

#include "softgpu/core/site.h"

#include <stdbool.h>
#include <stdint.h>

struct sg_context;
struct sg_text;

void sg_text_line(struct sg_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* What the next line is about. Used only by the leak report: it adds the address or handle and
 * where it was created, and when a context ends it omits what does not belong to it. */
void sg_text_handle(struct sg_text *text, uint64_t handle, const struct sg_context *context);
void sg_text_address(struct sg_text *text, uint64_t address, struct sg_origin origin,
                     const struct sg_context *context);

/* Of what kind, an enum sg_leak_kind, the next lines of the leak report are. */
void sg_text_kind(struct sg_text *text, unsigned kind);

/* The reports of all chapters, from malloc; NULL when out of memory, "" before cuInit. With the
 * lock. */
char *sg_text_of_state(void);
/* Reports everything of the kinds whose bits are set that was made since sg_origin_last was `since`
 * (0: ever), or with `only` just what would end with that context: the lines for whose context
 * `belongs` returns true. *kinds: those that it has lines of. */
char *sg_text_of_leaks(unsigned *kinds, uint64_t since, const struct sg_context *only,
                       bool (*belongs)(const struct sg_context *only,
                                       const struct sg_context *other));
/* Logs what sg_text_of_leaks returned, if it has lines, and frees it; notes leaks of the kinds that
 * SOFTGPU_FAIL_ON names. `when` is, for example, "at exit". */
void sg_leaks_say(char *text, unsigned kinds, const char *when);

#endif
