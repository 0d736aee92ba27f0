/* JSON as an encoder writes it: no blanks. Behind the last byte stands a zero, which no loop passes. Whatever is not as
   expected ends the reading with NULL, and the reference reads it instead. */

#ifndef TOOLCRIB_JSON_H
#define TOOLCRIB_JSON_H

#include "kernel.h"

/* Where the string that starts here ends; escaped or not. */
static inline const char *skip_string(const char *at)
{
    const char *end = at;
    do {
        if (!(end = strchr(end + 1, '"')))
            return NULL;
        const char *before = end;
        while (before[-1] == '\\')
            before--;
        if ((end - before) % 2 == 0)
            return end + 1;
    } while (1);
}

/* The same, and the inside of the string with its escapes. */
static inline const char *read_escaped(const char *at, Piece *inside)
{
    const char *end = *at == '"' ? skip_string(at) : NULL;
    if (end)
        *inside = (Piece){at + 1, end - at - 2};
    return end;
}

static inline int has_escapes(Piece text) { return memchr(text.start, '\\', (size_t)text.size) != NULL; }

/* The same for a string without escapes; one that has some is not read. */
static inline const char *read_string(const char *at, Piece *inside)
{
    const char *end = read_escaped(at, inside);
    return end && !has_escapes(*inside) ? end : NULL;
}

/* Where the value that starts here ends, if it nests no deeper than so many levels. Brackets are only counted: the bytes
   are an encoder's. */
static inline const char *skip_within(const char *at, Py_ssize_t levels)
{
    Py_ssize_t depth = 0;
    do {
        if (*at == '"') {
            if (!(at = skip_string(at)))
                return NULL;
        }
        else if (*at == '{' || *at == '[') {
            if (++depth > levels)
                return NULL;
            at++;
        }
        else if (*at == '}' || *at == ']')
            depth--, at++;
        else if ((unsigned char)*at <= ' ') /* the end, or not an encoder's */
            return NULL;
        else if (depth)
            at++;
        else
            while (*at && *at != ',' && *at != ']' && *at != '}')
                at++;
    } while (depth > 0);
    return depth ? NULL : at;
}

static inline const char *skip_value(const char *at) { return skip_within(at, PY_SSIZE_T_MAX); }

/* Where the next member of an object, or item of a list, starts: behind its opening bracket or a comma. Sets `*at` to
   NULL if it is malformed; returns 0 at the end. */
static inline int has_next(const char **at, char open, char close)
{
    if (**at == open && (*at)[1] == close)
        *at += 2;
    else if (**at == close)
        *at += 1;
    else if (**at == open || **at == ',') {
        *at += 1;
        return 1;
    }
    else
        *at = NULL;
    return 0;
}

/* The next member of an object: its key, and where its value starts. `*at` then stands at the value. */
static inline int next_member(const char **at, Piece *key)
{
    if (!has_next(at, '{', '}'))
        return 0;
    *at = read_string(*at, key);
    if (*at && **at == ':')
        ++*at;
    else
        *at = NULL;
    return *at != NULL;
}

static inline int is_key(Piece key, const char *name)
{
    return key.size == (Py_ssize_t)strlen(name) && !memcmp(key.start, name, (size_t)key.size);
}

#endif
