/* What is kept of plain values, and what the bytes of a definition are asked. */

#ifndef TOOLCRIB_DEFINITIONS_H
#define TOOLCRIB_DEFINITIONS_H

#include "kernel.h"

/* All values in the order of a walk: a container as a mark and its length, a leaf as a reference to itself. Keys and
   leaves are immutable, so one that is the same object is the same value; containers are never trusted. Where they and
   their tables were is noted as a guess of what to fetch, and never looked into: a walk mostly waits for memory. */
typedef struct {
    Row slots, places;
    int odd; /* some number is none that JSON has */
} Kept;

Kept *new_kept(void); /* NULL without an error set */
void drop_kept(Kept *kept);
/* What Python is given of it, which owns it then; NULL with an error set. */
PyObject *close_kept(Kept *kept);

/* Keeps a leaf, or the mark and the length of a container. 0: not plain, too deep, or more than `most` slots; -1: an error
   is set. */
enum { LEAF = 1, CONTAINER };
int keep_head(Kept *kept, PyObject *value, int depth, Py_ssize_t most);

static inline int put_leaf(Row *row, PyObject *leaf) { return put(row, leaf) < 0 ? -1 : (Py_INCREF(leaf), 1); }

/* How deep, how many bytes, and how many characters of a description. */
typedef struct {
    Py_ssize_t levels, bytes, described;
} Bounds;

/* Whether a `$ref` of some kind leads out of the definition, or may. */
int may_refer_elsewhere(const char *at, const char *end);

/* Whether a name, with its quotation marks, can be shown as it is and taken for none of ours: those begin with a `t`. */
int is_safe(Piece quoted, Py_ssize_t most);

#endif
