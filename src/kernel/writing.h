/* JSON as `orjson` writes it: compact, in UTF-8. Numbers that are not small whole ones are left to the encoder itself. */

#ifndef TOOLCRIB_WRITING_H
#define TOOLCRIB_WRITING_H

#include "stretches.h"

typedef struct {
    char *at;
    size_t used, room;
    PyObject *encode; /* writes a single value */
} Text;

/* Where so many bytes more can be written; NULL with an error set. */
static inline char *room_for(Text *text, size_t more)
{
    if (text->room - text->used < more) {
        size_t room = (text->used + more) * 2 + 4096;
        char *at = room < PY_SSIZE_T_MAX ? PyMem_Realloc(text->at, room) : NULL;
        if (!at) {
            PyErr_NoMemory();
            return NULL;
        }
        text->at = at;
        text->room = room;
    }
    return text->at + text->used;
}

static inline int write_bytes_of(Text *text, const char *from, size_t size)
{
    char *to = room_for(text, size);
    if (!to)
        return -1;
    memcpy(to, from, size);
    text->used += size;
    return 0;
}

/* Writes a value by way of the encoder, which takes no part of anybody's containers. */
static int write_by_encoder(Text *text, PyObject *leaf)
{
    PyObject *encoded = PyObject_CallOneArg(text->encode, leaf);
    int failed = !encoded || !PyBytes_CheckExact(encoded);
    if (encoded && failed)
        PyErr_SetString(PyExc_TypeError, "an encoder gives bytes");
    if (!failed)
        failed = write_bytes_of(text, PyBytes_AS_STRING(encoded), (size_t)PyBytes_GET_SIZE(encoded)) < 0;
    Py_XDECREF(encoded);
    return failed ? -1 : 0;
}

/* Whether one of eight bytes has to be escaped. */
static inline int has_odd(uint64_t eight)
{
    const uint64_t each = ~(uint64_t)0 / 255;
    uint64_t quote = eight ^ each * '"', slash = eight ^ each * '\\';
    return (((eight - each * 32) & ~eight) | ((quote - each) & ~quote) | ((slash - each) & ~slash)) & each << 7 ? 1 : 0;
}

/* Copies some of a string; which bytes have to be escaped. */
static inline Bytes copy_bytes(char *to, const char *from)
{
    Bytes all = bytes_at(from);
    memcpy(to, &all, BYTES);
    return either(either(is_byte(all, '"'), is_byte(all, '\\')), is_from(all, 0, 31));
}

/* Copies a string; whether some byte of it has to be escaped. Nearly all strings are short: no call pays for them. */
static inline int copy_string(char *to, const char *from, size_t size)
{
    if (size >= BYTES) {
        Bytes odd = copy_bytes(to + size - BYTES, from + size - BYTES);
        for (size_t place = 0; place + BYTES < size; place += BYTES)
            odd = either(odd, copy_bytes(to + place, from + place));
        return pack(odd) != 0;
    }
    uint64_t first = ~(uint64_t)0 / 255 * 'a', last = first;
    if (size >= 8) {
        memcpy(&first, from, 8);
        memcpy(&last, from + size - 8, 8);
        memcpy(to, &first, 8);
        memcpy(to + size - 8, &last, 8);
    }
    else if (size >= 4) {
        memcpy(&first, from, 4);
        memcpy(&last, from + size - 4, 4);
        memcpy(to, &first, 4);
        memcpy(to + size - 4, &last, 4);
    }
    else {
        int odd = 0;
        for (size_t place = 0; place < size; place++) {
            to[place] = from[place];
            odd |= (unsigned char)from[place] < 32 || from[place] == '"' || from[place] == '\\';
        }
        return odd;
    }
    return has_odd(first) | has_odd(last);
}

static void escape(Text *text, const char *from, size_t size)
{
    static const char DIGITS[] = "0123456789abcdef", CODES[] = "\b\t\n\f\r\"\\", LETTERS[] = "btnfr\"\\";
    char *to = text->at + text->used;
    for (const char *end = from + size; from < end; from++) {
        unsigned char c = (unsigned char)*from;
        const char *code = c < 0x20 || c == '"' || c == '\\' ? memchr(CODES, c, sizeof CODES - 1) : NULL;
        if (code) {
            *to++ = '\\';
            *to++ = LETTERS[code - CODES];
        }
        else if (c < 0x20) {
            memcpy(to, "\\u00", 4);
            to[4] = DIGITS[c >> 4];
            to[5] = DIGITS[c & 15];
            to += 6;
        }
        else
            *to++ = (char)c;
    }
    text->used = (size_t)(to - text->at);
}

/* A string between its quotation marks, and what stands before and behind it, if anything does. */
static inline int write_between(Text *text, char before, PyObject *string, char behind)
{
    Py_ssize_t size;
    const char *letters = ascii_of(string, &size);
    if (!letters && !(letters = PyUnicode_AsUTF8AndSize(string, &size))) {
        if (PyErr_ExceptionMatches(PyExc_MemoryError))
            return -1;
        PyErr_Clear(); /* the encoder says what is wrong with it */
        if ((before && write_bytes_of(text, &before, 1) < 0) || write_by_encoder(text, string) < 0)
            return -1;
        return behind ? write_bytes_of(text, &behind, 1) : 0;
    }
    char *to = room_for(text, (size_t)size + 4);
    if (!to)
        return -1;
    if (before)
        *to++ = before;
    *to++ = '"';
    text->used = (size_t)(to - text->at);
    if (copy_string(to, letters, (size_t)size)) {
        if (!room_for(text, (size_t)size * 6 + 2))
            return -1;
        escape(text, letters, (size_t)size);
    }
    else
        text->used += (size_t)size;
    to = text->at + text->used;
    *to++ = '"';
    if (behind)
        *to++ = behind;
    text->used = (size_t)(to - text->at);
    return 0;
}

static inline int write_string(Text *text, PyObject *string) { return write_between(text, 0, string, 0); }

/* A value that holds no others. */
static inline int write_leaf(Text *text, PyObject *leaf)
{
    if (PyUnicode_CheckExact(leaf))
        return write_string(text, leaf);
    if (leaf == Py_None)
        return write_bytes_of(text, "null", 4);
    if (leaf == Py_True)
        return write_bytes_of(text, "true", 4);
    if (leaf == Py_False)
        return write_bytes_of(text, "false", 5);
    int beyond = 1;
    long number = PyLong_CheckExact(leaf) ? PyLong_AsLongAndOverflow(leaf, &beyond) : 0;
    if (beyond || number < 0 || number > 999)
        return write_by_encoder(text, leaf);
    char digits[3], *first = digits + 3;
    do
        *--first = (char)('0' + number % 10);
    while (number /= 10);
    return write_bytes_of(text, first, (size_t)(digits + 3 - first));
}

#endif
