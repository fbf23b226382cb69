/* Docstrings by name, "Buffer" or "Buffer.fill": docs.c is made of the package's stub by the
 * build. */
#ifndef GPUMEM_PYTHON_DOCS_H
#define GPUMEM_PYTHON_DOCS_H

struct core_doc {
    const char *name; /* NULL ends the rows */
    const char *text;
};

extern const struct core_doc core_docs[];

#endif
