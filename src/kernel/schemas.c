/* Schemas: what `retrieval.documents` and `retrieval.signature` read of compact JSON. */

#include "kernel.h"

/* A stretch of JSON as an encoder writes it: no blanks. Behind the last byte stands a zero, which no loop passes.
   Whatever is not as expected ends the reading with NULL, and the reference reads it instead. */
typedef struct {
    const char *start;
    Py_ssize_t size;
} Piece;

/* Where the string that starts here ends; escaped or not. */
static const char *skip_string(const char *at)
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

/* The same, and the inside of the string; one with escapes is not read. */
static const char *read_string(const char *at, Piece *inside)
{
    const char *end = *at == '"' ? skip_string(at) : NULL;
    if (!end || memchr(at, '\\', (size_t)(end - at)))
        return NULL;
    *inside = (Piece){at + 1, end - at - 2};
    return end;
}

/* Where the value that starts here ends. Brackets are only counted: the bytes are an encoder's. */
static const char *skip_value(const char *at)
{
    Py_ssize_t depth = 0;
    do {
        if (*at == '"') {
            if (!(at = skip_string(at)))
                return NULL;
        }
        else if (*at == '{' || *at == '[')
            depth++, at++;
        else if (*at == '}' || *at == ']')
            depth--, at++;
        else if ((unsigned char)*at <= ' ') /* the end, or not an encoder's */
            return NULL;
        else if (depth)
            at++;
        else
            while (*at && !strchr(",]}", *at))
                at++;
    } while (depth > 0);
    return depth ? NULL : at;
}

/* Where the next member of an object, or item of a list, starts: behind its opening bracket or a comma. Sets `*at` to
   NULL if it is malformed; returns 0 at the end. */
static int has_next(const char **at, char open, char close)
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
static int next_member(const char **at, Piece *key)
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

static int is_key(Piece key, const char *name)
{
    return key.size == (Py_ssize_t)strlen(name) && !memcmp(key.start, name, (size_t)key.size);
}

static int append_text(PyObject *list, Piece text)
{
    return append(list, PyUnicode_DecodeUTF8(text.start, text.size, NULL));
}

enum { PROPERTIES, ITEMS, ANY_OF, ONE_OF, ALL_OF, DESCRIPTION, ENUM, KEYWORDS };

/* Where the values of the keywords that hold words start. */
static int read_keywords(const char *at, const char *found[KEYWORDS])
{
    static const char *const NAMES[] = {"properties", "items", "anyOf", "oneOf", "allOf", "description", "enum"};
    Piece key;
    memset(found, 0, KEYWORDS * sizeof *found);
    while (next_member(&at, &key)) {
        for (int which = 0; which < KEYWORDS; which++)
            if (is_key(key, NAMES[which]))
                found[which] = at;
        if (!(at = skip_value(at)))
            return -1;
    }
    return at ? 0 : -1;
}

/* The words of one schema, and where the schemas inside it start. -1: not as expected, or an error is set. */
static int add_words(const char *schema, PyObject *words, Row *below, Py_ssize_t enumerated)
{
    const char *found[KEYWORDS], *at;
    Piece text;
    if (read_keywords(schema, found) < 0)
        return -1;
    if ((at = found[DESCRIPTION]) && *at == '"' && (!read_string(at, &text) || append_text(words, text) < 0))
        return -1;
    if ((at = found[ENUM]) && *at == '[') {
        for (Py_ssize_t count = 0; has_next(&at, '[', ']'); count++) {
            if (*at == '"' && count < enumerated && (!read_string(at, &text) || append_text(words, text) < 0))
                return -1;
            if (!(at = skip_value(at)))
                return -1;
        }
        if (!at)
            return -1;
    }
    for (int which = PROPERTIES; which <= ALL_OF; which++) {
        if (!(at = found[which]))
            continue;
        if (which == PROPERTIES && *at == '{') {
            while (next_member(&at, &text))
                if (append_text(words, text) < 0 || put(below, (void *)at) < 0 || !(at = skip_value(at)))
                    return -1;
        }
        else if (which == ITEMS && *at == '{') {
            if (put(below, (void *)at) < 0)
                return -1;
        }
        else if (which > ITEMS && *at == '[')
            while (has_next(&at, '[', ']'))
                if (put(below, (void *)at) < 0 || !(at = skip_value(at)))
                    return -1;
        if (!at)
            return -1;
    }
    return 0;
}

/* inside(schema, levels, enumerated) -> names of the parameters, and the words under them, level by level; None if the
   encoded schema is not as expected. */
FAST(inside)
{
    if (count != 3 || !PyBytes_CheckExact(args[0]))
        return PyErr_Format(PyExc_TypeError, "inside takes an encoded schema and two bounds");
    Py_ssize_t levels = PyLong_AsSsize_t(args[1]), enumerated = PyLong_AsSsize_t(args[2]);
    if (PyErr_Occurred())
        return NULL;
    const char *schema = PyBytes_AS_STRING(args[0]), *found[KEYWORDS];
    Row level = {0}, below = {0};
    PyObject *names = PyList_New(0), *words = PyList_New(0);
    int failed = !names || !words || *schema != '{' || read_keywords(schema, found) < 0;
    if (!failed && found[PROPERTIES] && *found[PROPERTIES] == '{') {
        const char *at = found[PROPERTIES];
        Piece name;
        while (!failed && next_member(&at, &name))
            failed = append_text(names, name) < 0 || put(&level, (void *)at) < 0 || !(at = skip_value(at));
        failed |= !at;
    }
    for (; !failed && levels > 0 && level.used; levels--) {
        below.used = 0;
        for (Py_ssize_t at = 0; !failed && at < level.used; at++)
            if (*(const char *)level.at[at] == '{')
                failed = add_words(level.at[at], words, &below, enumerated) < 0;
        Row done = level;
        level = below;
        below = done;
    }
    PyMem_Free(level.at);
    PyMem_Free(below.at);
    if (!failed)
        return Py_BuildValue("NN", names, words);
    Py_XDECREF(names);
    Py_XDECREF(words);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

#define PARAMETERS 64

typedef struct {
    Piece name;
    PyObject *type; /* borrowed from the table of types */
    int required;
} Parameter;

/* The type of a parameter of which nothing else is to be said, borrowed; NULL if there is more. */
static PyObject *simple_type(const char *at, const Watched *simple, PyObject *types)
{
    Piece key, kind = {0};
    if (*at != '{')
        return NULL;
    while (next_member(&at, &key)) {
        if (!is_one_of(simple, key.start, (size_t)key.size))
            return NULL;
        if (is_key(key, "type") && (*at != '"' || !read_string(at, &kind)))
            return NULL;
        if (!(at = skip_value(at)))
            return NULL;
    }
    PyObject *name = at && kind.start ? PyUnicode_DecodeUTF8(kind.start, kind.size, "replace") : NULL;
    PyObject *type = name ? PyDict_GetItemWithError(types, name) : NULL;
    Py_XDECREF(name);
    return type;
}

static Py_ssize_t read_parameters(const char *at, Parameter *found, const Watched *simple, PyObject *types)
{
    Py_ssize_t used = 0;
    Piece name;
    while (next_member(&at, &name)) {
        if (used == PARAMETERS)
            return -1;
        found[used] = (Parameter){name, simple_type(at, simple, types), 0};
        if (!found[used++].type || !(at = skip_value(at)))
            return -1;
    }
    return at ? used : -1;
}

/* Marks the parameters that are required; a list that is longer than theirs names one twice, and is not read. */
static int read_required(const char *at, Parameter *found, Py_ssize_t used)
{
    Piece name;
    for (Py_ssize_t named = 0; has_next(&at, '[', ']'); named++) {
        Py_ssize_t which = 0;
        if (named == used || !(at = read_string(at, &name)))
            return -1;
        while (which < used
               && !(found[which].name.size == name.size && !memcmp(found[which].name.start, name.start, (size_t)name.size)))
            which++;
        if (which == used)
            return -1;
        found[which].required = 1;
    }
    return at ? 0 : -1;
}

/* The parameters as a signature shows them, the required ones first; the length, or -1 if not all fit. */
static Py_ssize_t write_parameters(char *to, Py_ssize_t room, const Parameter *found, Py_ssize_t count)
{
    Py_ssize_t used = 0;
    for (int required = 1; required >= 0; required--)
        for (const Parameter *each = found; each < found + count; each++) {
            Py_ssize_t size;
            const char *type = each->required == required ? ascii_of(each->type, &size) : NULL;
            if (each->required != required)
                continue;
            if (!type || used + each->name.size + size + 7 > room) /* with what stands before, between and behind */
                return -1;
            if (used)
                used += (memcpy(to + used, ", ", 2), 2);
            for (Py_ssize_t at = 0; at < each->name.size; at++)
                if ((unsigned char)(to[used++] = each->name.start[at]) >= 0x80)
                    return -1;
            memcpy(to + used, required ? ": " : "?: ", required ? 2 : 3);
            used += required ? 2 : 3;
            memcpy(to + used, type, (size_t)size);
            used += size;
        }
    return used;
}

/* signature(name, schema, known, simple, types, most) -> the signature of a schema that has none but `known` keywords and
   whose parameters have none but `simple` ones, if it has at most so many characters; None for any other. */
FAST(signature)
{
    if (count != 6 || !PyUnicode_Check(args[0]) || !PyBytes_CheckExact(args[1]) || !PyDict_CheckExact(args[4]))
        return PyErr_Format(PyExc_TypeError, "signature takes a name, a schema, two sets of words, types and a bound");
    const Watched *known = PyCapsule_GetPointer(args[2], WORDS), *simple = PyCapsule_GetPointer(args[3], WORDS);
    Py_ssize_t most = PyLong_AsSsize_t(args[5]), used = 0;
    if (PyErr_Occurred())
        return NULL;
    Parameter found[PARAMETERS];
    PyObject *parameters = NULL;
    char text[2048];
    const char *at = PyBytes_AS_STRING(args[1]), *properties = NULL, *required = NULL;
    Piece key;
    while (*at == '{' || *at == ',' || *at == '}') {
        if (!next_member(&at, &key))
            break;
        if (!is_one_of(known, key.start, (size_t)key.size))
            Py_RETURN_NONE;
        if (is_key(key, "properties"))
            properties = at;
        else if (is_key(key, "required"))
            required = at;
        if (!(at = skip_value(at)))
            Py_RETURN_NONE;
    }
    most = most < (Py_ssize_t)sizeof text ? most : (Py_ssize_t)sizeof text;
    if (at && !*at && properties && *properties == '{') {
        Py_ssize_t size = read_parameters(properties, found, simple, args[4]);
        if (size >= 0 && (!required || (*required == '[' && read_required(required, found, size) == 0))
            && (used = write_parameters(text, most, found, size)) >= 0)
            parameters = PyUnicode_FromStringAndSize(text, used);
        if (parameters) {
            PyObject *written = PyUnicode_FromFormat("%U(%U)", args[0], parameters);
            Py_DECREF(parameters);
            return written;
        }
    }
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}
