/* Schemas: what `retrieval.documents` reads of compact JSON. */

#include "json.h"

static int put_piece(Pieces *row, Piece piece)
{
    if (row->used == row->room) {
        Py_ssize_t room = row->room ? row->room * 2 : 64;
        Piece *at = PyMem_Realloc(row->at, (size_t)room * sizeof(Piece));
        if (!at) {
            PyErr_NoMemory();
            return -1;
        }
        row->at = at;
        row->room = room;
    }
    row->at[row->used++] = piece;
    return 0;
}

/* What an escape means, and how many characters it takes; no more than ASCII is read. */
static int read_escape(const char *at, const char *end, char *meant)
{
    static const char LETTERS[] = "\"\\/bfnrt", MEANT[] = "\"\\/\b\f\n\r\t";
    const char *letter = at + 1 < end ? strchr(LETTERS, at[1]) : NULL;
    if (letter && *letter) {
        *meant = MEANT[letter - LETTERS];
        return 2;
    }
    int code = 0;
    if (end - at < 6 || at[1] != 'u')
        return -1;
    for (int place = 2; place < 6; place++) {
        char c = lower_of(at[place]);
        if (!is_a(HEX, c) || c == 'x')
            return -1;
        code = code * 16 + (is_digit(c) ? c - '0' : c - 'a' + 10);
    }
    *meant = (char)code;
    return code && code < 0x80 ? 6 : -1;
}

/* Puts a string without its escapes; the memory for it has the size of the whole schema. -1: not to be read here. */
static int put_text(Inside *inside, Pieces *row, Piece text)
{
    if (has_escapes(text)) {
        char *to = inside->plain + inside->plain_used;
        const char *at = text.start, *end = at + text.size;
        if ((size_t)text.size > inside->plain_room - inside->plain_used)
            return -1;
        text.start = to;
        while (at < end) {
            int size = *at == '\\' ? read_escape(at, end, to) : (*to = *at, 1);
            if (size < 0)
                return -1;
            at += size;
            to++;
        }
        text.size = to - text.start;
        inside->plain_used += (size_t)text.size;
    }
    return put_piece(row, text);
}

enum { PROPERTIES, ITEMS, ANY_OF, ONE_OF, ALL_OF, DESCRIPTION, ENUM, KEYWORDS };

static int keyword(Piece key)
{
    switch (key.size) {
    case 4: return is_key(key, "enum") ? ENUM : KEYWORDS;
    case 5: return is_key(key, "items") ? ITEMS : is_key(key, "anyOf") ? ANY_OF : is_key(key, "oneOf") ? ONE_OF
                 : is_key(key, "allOf") ? ALL_OF : KEYWORDS;
    case 10: return is_key(key, "properties") ? PROPERTIES : KEYWORDS;
    case 11: return is_key(key, "description") ? DESCRIPTION : KEYWORDS;
    default: return KEYWORDS;
    }
}

/* Where the values of the keywords that hold words start; where the schema ends, or NULL if it is not as expected. */
static const char *read_keywords(const char *at, const char *found[KEYWORDS + 1])
{
    Piece key;
    memset(found, 0, KEYWORDS * sizeof *found);
    while (next_member(&at, &key)) {
        found[keyword(key)] = at;
        if (!(at = skip_value(at)))
            return NULL;
    }
    return at;
}

/* The words of one schema, and where the schemas inside it start. Where it ends, or NULL if it is not as expected, or an
   error is set. */
static const char *add_words(Inside *inside, const char *schema, Py_ssize_t enumerated)
{
    const char *found[KEYWORDS + 1], *at, *end = read_keywords(schema, found);
    Pieces *words = &inside->words;
    Row *below = &inside->below;
    Piece text;
    if (!end)
        return NULL;
    if ((at = found[DESCRIPTION]) && *at == '"' && (!read_escaped(at, &text) || put_text(inside, words, text) < 0))
        return NULL;
    if ((at = found[ENUM]) && *at == '[') {
        for (Py_ssize_t count = 0; has_next(&at, '[', ']'); count++) {
            if (*at == '"' && count < enumerated && (!read_escaped(at, &text) || put_text(inside, words, text) < 0))
                return NULL;
            if (!(at = skip_value(at)))
                return NULL;
        }
        if (!at)
            return NULL;
    }
    for (int which = PROPERTIES; which <= ALL_OF; which++) {
        if (!(at = found[which]))
            continue;
        if (which == PROPERTIES && *at == '{') {
            while (next_member(&at, &text))
                if (put_piece(words, text) < 0 || put(below, (void *)at) < 0 || !(at = skip_value(at)))
                    return NULL;
        }
        else if (which == ITEMS && *at == '{') {
            if (put(below, (void *)at) < 0)
                return NULL;
        }
        else if (which > ITEMS && *at == '[')
            while (has_next(&at, '[', ']'))
                if (put(below, (void *)at) < 0 || !(at = skip_value(at)))
                    return NULL;
        if (!at)
            return NULL;
    }
    return end;
}

/* The names of the parameters, and the words of the first level under them, in one go. */
static const char *add_parameters(Inside *inside, const char *at, Py_ssize_t levels, Py_ssize_t enumerated)
{
    Piece name;
    while (next_member(&at, &name)) {
        if (put_piece(&inside->names, name) < 0)
            return NULL;
        at = levels > 0 && *at == '{' ? add_words(inside, at, enumerated) : skip_value(at);
        if (!at)
            return NULL;
    }
    return at;
}

int read_inside(Inside *inside, PyObject *schema, Py_ssize_t levels, Py_ssize_t enumerated)
{
    const char *at = PyBytes_AS_STRING(schema);
    size_t size = (size_t)PyBytes_GET_SIZE(schema);
    int failed = *at != '{', met = 0;
    Piece key;
    inside->names.used = inside->words.used = inside->below.used = 0;
    inside->plain_used = 0;
    if (inside->plain_room < size && memchr(at, '\\', size)) {
        char *plain = PyMem_Realloc(inside->plain, size);
        if (!plain) {
            PyErr_NoMemory();
            return -1;
        }
        inside->plain = plain;
        inside->plain_room = size;
    }
    while (!failed && next_member(&at, &key)) {
        int parameters = keyword(key) == PROPERTIES;
        failed = parameters && met++; /* an encoder writes a key once */
        at = parameters && *at == '{' ? add_parameters(inside, at, levels, enumerated) : skip_value(at);
        failed |= !at;
    }
    failed |= !at;
    for (; !failed && --levels > 0 && inside->below.used;) {
        Row done = inside->level;
        inside->level = inside->below;
        inside->below = done;
        inside->below.used = 0;
        for (Py_ssize_t which = 0; !failed && which < inside->level.used; which++)
            if (*(const char *)inside->level.at[which] == '{')
                failed = !add_words(inside, inside->level.at[which], enumerated);
    }
    return !failed ? 1 : PyErr_Occurred() ? -1 : 0;
}

void drop_inside(Inside *inside)
{
    PyMem_Free(inside->names.at);
    PyMem_Free(inside->words.at);
    PyMem_Free(inside->level.at);
    PyMem_Free(inside->below.at);
    PyMem_Free(inside->plain);
}

static PyObject *texts_of(const Pieces *pieces)
{
    PyObject *list = PyList_New(pieces->used);
    for (Py_ssize_t at = 0; list && at < pieces->used; at++) {
        PyObject *text = PyUnicode_DecodeUTF8(pieces->at[at].start, pieces->at[at].size, NULL);
        if (text)
            PyList_SET_ITEM(list, at, text);
        else
            Py_CLEAR(list);
    }
    return list;
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
    Inside inside = {0};
    int done = read_inside(&inside, args[0], levels, enumerated);
    PyObject *names = done > 0 ? texts_of(&inside.names) : NULL, *words = names ? texts_of(&inside.words) : NULL;
    drop_inside(&inside);
    if (names && words)
        return Py_BuildValue("NN", names, words);
    Py_XDECREF(names);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}
