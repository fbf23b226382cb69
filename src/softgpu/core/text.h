/* Growing text: the state dump and the leak report, to which each chapter adds its lines. */
#ifndef SG_CORE_TEXT_H
#define SG_CORE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

struct sg_context;
struct sg_text;

void sg_text_line(struct sg_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* What the next line is about. Used only by the leak report: it adds the address or handle and
 * where it was created, and when a context ends it omits what does not belong to it. */
void sg_text_handle(struct sg_text *text, uint64_t handle, const struct sg_context *context);
void sg_text_address(struct sg_text *text, uint64_t address, uint32_t site,
                     const struct sg_context *context);

/* The reports of all chapters, from malloc; NULL when out of memory, "" before cuInit. With the
 * lock. */
char *sg_text_of_state(void);
/* Reports everything, or with `only` just what would end with that context: the lines for whose
 * context `belongs` returns true. */
char *sg_text_of_leaks(const struct sg_context *only,
                       bool (*belongs)(const struct sg_context *only,
                                       const struct sg_context *other));
/* Logs what sg_text_of_leaks returned, if it has lines, and frees it. `when` is, for example, "at
 * exit". */
void sg_leaks_say(char *text, const char *when);

#endif
