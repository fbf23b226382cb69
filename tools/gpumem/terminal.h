/*
 * Formatting of lines. On a terminal they are wrapped between words at its width, and may have
 * colours (not with NO_COLOR, not on a dumb one); elsewhere each is one plain line, so that it can
 * be searched. Control characters are always shown as \x1b and so on: file names can contain
 * anything, and a log is eventually read on a terminal.
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum cli_colour { CLI_PLAIN, CLI_RED, CLI_GREEN, CLI_YELLOW };

/* Prints a line and a newline. Wrapped text continues below the last column of a table that begins
 * in the left half, else below the first word. */
void cli_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same with its first `painted` bytes in a colour. */
void cli_line_painted(FILE *out, enum cli_colour colour, size_t painted, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* A text of several lines, each as by cli_line. */
void cli_lines(FILE *out, const char *text);

/* Whether lines may be overwritten: a terminal that is not dumb. */
bool cli_is_screen(FILE *out);
/* The number of columns; 0 if it is not a terminal and lines are not wrapped. */
size_t cli_columns(FILE *out);
/* The sequence that turns a colour on, or with CLI_PLAIN off; "" without colours. */
const char *cli_paint(FILE *out, enum cli_colour colour);

/* The text with unprintable characters escaped, malloc'ed; NULL when out of memory. */
char *cli_escape(const char *text);

/* The length of the UTF-8 character at `text`, and its value; 0 if none begins there. */
size_t cli_utf8(const char *text, unsigned *value);

#endif
