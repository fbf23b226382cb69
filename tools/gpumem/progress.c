#include "progress.h"

#include "cli.h"
#include "terminal.h"

#include <stdio.h>
#include <string.h>

#define BAR_LEAST 10
#define BAR_MOST  40

struct progress progress_begin(const char *verb, bool quiet) {
    return (struct progress){.verb = verb, .quiet = quiet, .screen = cli_is_screen(stderr)};
}

static void format_time_left(double seconds, char text[32]) {
    if (seconds < 0 || seconds > 360000)
        text[0] = 0;
    else if (seconds < 60)
        snprintf(text, 32, "  %.0f s left", seconds);
    else if (seconds < 3600)
        snprintf(text, 32, "  %d min %02d s left", (int)seconds / 60, (int)seconds % 60);
    else
        snprintf(text, 32, "  %d h %02d min left", (int)seconds / 3600, (int)seconds / 60 % 60);
}

/* "loading   [######----]  60 %" */
static size_t print_bar(const struct progress *progress, double part, size_t width) {
    char bar[BAR_MOST + 1];
    size_t full = (size_t)(part * (double)width);
    memset(bar, '#', full);
    memset(bar + full, '-', width - full);
    bar[width] = 0;
    fprintf(stderr, "%-9s [%s%.*s%s%s] %3.0f %%", progress->verb, cli_paint(stderr, CLI_GREEN),
            (int)full, bar, cli_paint(stderr, CLI_PLAIN), bar + full, 100 * part);
    return 9 + 2 + width + 1 + 6;
}

/* Without room for both, the figures are more important than the bar. */
static void print_screen(struct progress *progress, double part, const char *figures, bool last) {
    size_t columns = cli_columns(stderr), length = strlen(figures);
    size_t others = 9 + 2 + 1 + 6 + 2 + length + 1;
    size_t room = columns > others ? columns - others : 0, used;
    fputc('\r', stderr);
    if (room < BAR_LEAST) {
        used = (size_t)fprintf(stderr, "%-9s %3.0f %%  %.*s", progress->verb, 100 * part,
                               columns > 18 ? (int)(columns - 18) : 0, figures);
    } else {
        used = print_bar(progress, part, room < BAR_MOST ? room : BAR_MOST);
        used += (size_t)fprintf(stderr, "  %s", figures);
    }
    /* Overwrites the rest of a longer previous line. */
    size_t rest = progress->columns > used ? progress->columns - used : 0;
    fprintf(stderr, "%*s%s", (int)rest, "", last ? "\n" : "");
    progress->columns = last ? 0 : used;
}

void progress_show(struct progress *progress, uint64_t done, uint64_t total, double seconds) {
    bool last = done == total;
    double interval = progress->screen ? 0.1 : 1;
    if (progress->quiet || (!last && seconds - progress->printed < interval))
        return;
    progress->printed = seconds;
    char some[32], all[32], rate[40], left[32] = "", figures[200];
    double part = total ? (double)done / (double)total : 1;
    cli_format_rate(done, seconds, rate);
    if (!last && done > 0)
        format_time_left(seconds * (double)(total - done) / (double)done, left);
    snprintf(figures, sizeof figures, "%s of %s  %s%s", cli_format_size(done, some),
             cli_format_size(total, all), rate, left);
    if (progress->screen)
        print_screen(progress, part, figures, last);
    else
        cli_line(stderr, "%-9s %3.0f %%  %s", progress->verb, 100 * part, figures);
    fflush(stderr);
}

void progress_end(struct progress *progress) {
    if (progress->columns > 0)
        fputc('\n', stderr);
    progress->columns = 0;
}
