/* What gpumem doctor found, of the machine and of files. */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include <stdbool.h>

enum verdict { GOOD, NOTE, BAD };
extern const char *const doctor_verdicts[]; /* "ok", "note", "bad" */
/* A line of a table. */
void doctor_line(enum verdict verdict, const char *topic, const char *text);

/* Examines programs, libraries and wheels. Returns the exit status. */
int doctor_files(char **files, int count, bool as_json);

#endif
