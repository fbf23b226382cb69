/*
 * How lines look. On a terminal they are wrapped at words and at its width, and may have colours
 * (not with NO_COLOR, not on a dumb one); elsewhere each stays one plain line, so that it can be
 * searched. Control characters are shown as \x1b and so on wherever a line goes: names of files
 * come from anywhere, and a log is read on a terminal in the end.
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum cli_colour { CLI_PLAIN, CLI_RED, CLI_GREEN, CLI_YELLOW };

/* Prints one line and its end. What wraps goes on below the last column of a table that begins in
 * the left half, else below the first word. */
void cli_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same with its first `painted` bytes in a colour. */
void cli_line_painted(FILE *out, enum cli_colour colour, size_t painted, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* A text of several lines, each as by cli_line. */
void cli_lines(FILE *out, const char *text);

/* Whether lines may be written over: a terminal, and not a dumb one. */
bool cli_is_screen(FILE *out);
/* Columns, 0 when it is no terminal and lines are as long as they are. */
size_t cli_columns(FILE *out);
/* What turns a colour on, and CLI_PLAIN it off; "" where there are none. */
const char *cli_paint(FILE *out, enum cli_colour colour);

/* The text with what would not show as itself escaped, from malloc; NULL when out of memory. */
char *cli_escape(const char *text);

/* The length of the UTF-8 character at `text`, with its value; 0 when none begins there. */
size_t cli_utf8(const char *text, unsigned *value);

#endif
