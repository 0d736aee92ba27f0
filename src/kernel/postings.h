/* The postings of a segment, as the files that read them see them. */

#ifndef TOOLCRIB_POSTINGS_H
#define TOOLCRIB_POSTINGS_H

#include "kernel.h"

#define POSTINGS "toolcrib.postings"

enum { STARTS, DOCUMENTS, CODES, IMPACTS, ARRAYS };

typedef struct {
    Py_buffer arrays[ARRAYS];
    Py_ssize_t terms, rows;
    float *best; /* zero between two uses */
    float *most; /* by term: the greatest impact, once somebody has asked for it */
    int32_t *room;
    size_t room_size;
} Postings;

/* The postings of a weighted term. */
typedef struct {
    const int32_t *rows;
    const uint8_t *codes;
    Py_ssize_t size;
    float weight;
} Span;

/* Reads a tuple of a number and a weight: 0, or -1 with an error set. */
int read_span(const Postings *held, PyObject *pair, Span *span);

#endif
