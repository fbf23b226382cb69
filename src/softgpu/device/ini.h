/* Reads the form of profiles: sections, and keys with values. */
#ifndef SG_DEVICE_INI_H
#define SG_DEVICE_INI_H

/* For each key; the strings are valid during the call, without blanks at their ends. 0: refused. */
typedef int (*sg_ini_line)(void *user, const char *section, const char *key, const char *value);

/*
 * Lines are `[section]`, `key = value`, empty, or begin with ; or #. A ; after a blank begins a
 * comment, too. Returns 0, or the number of the first line that is none of these or that `read`
 * refused; lines after it are not read. -1: out of host memory.
 */
int sg_ini_read(const char *text, sg_ini_line read, void *user);

#endif
