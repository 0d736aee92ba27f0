/* Taking: definitions of a list as tools, in one walk: what was seen of them is kept, they are encoded, and where they say
   what is noted on the way, so that nobody has to read the bytes again. */

#include "definitions.h"
#include "writing.h"

#define USUAL_BYTES 640 /* half of those of a definition, and the values in it: most have less, and nothing has to move */
#define USUAL_VALUES 96

enum { NAME, DESCRIPTION, SCHEMA, ANNOTATIONS, PARTS };

/* A piece of the text by its places: the text may move while it grows. */
typedef struct {
    size_t start, end; /* nothing if both are the same */
} Span;

typedef struct {
    Span whole, parts[2][PARTS]; /* what it says itself, and what its function does */
    PyObject *names[2], *descriptions[2]; /* borrowed from what is kept; NULL for what is no string */
    int chat, other, deepest;
} Item;

typedef struct {
    Kept *kept;
    Text text;
    Py_ssize_t most;
    Item *item; /* the definition that is being read */
} Taking;

static int take_value(Taking *all, PyObject *value, int depth, int level);

static inline int is_named(PyObject *key, const char *name)
{
    Py_ssize_t size;
    const char *letters = ascii_of(key, &size);
    return letters && size == (Py_ssize_t)strlen(name) && !memcmp(letters, name, (size_t)size);
}

/* Notes what a member of the definition, or of its function, is. */
static void note(Item *item, int level, PyObject *key, PyObject *value, Span span)
{
    int which = is_named(key, "name") ? NAME : is_named(key, "description") ? DESCRIPTION
              : is_named(key, level ? "parameters" : "inputSchema") ? SCHEMA
              : is_named(key, "annotations") ? ANNOTATIONS : PARTS;
    if (which == PARTS) {
        if (!level)
            item->other |= is_named(key, "input_schema") || is_named(key, "parametersJsonSchema")
                        || is_named(key, "parameters_json_schema") || is_named(key, "parameters");
        return;
    }
    item->parts[level][which] = span;
    if (which == NAME)
        item->names[level] = PyUnicode_CheckExact(value) ? value : NULL;
    if (which == DESCRIPTION)
        item->descriptions[level] = PyUnicode_CheckExact(value) ? value : NULL;
}

/* The members of an object. `level` is 0 for a definition, 1 for its function, and -1 for everything else. */
static int take_members(Taking *all, PyObject *dict, int depth, int level)
{
    PyObject *key, *value;
    Py_ssize_t place = 0;
    char before = '{';
    while (PyDict_Next(dict, &place, &key, &value)) {
        int done = PyUnicode_CheckExact(key) ? put_leaf(&all->kept->slots, key) : 0;
        if (done <= 0)
            return done;
        if (write_between(&all->text, before, key, ':') < 0)
            return -1;
        size_t start = all->text.used;
        int chat = level == 0 && PyDict_CheckExact(value) && is_named(key, "function");
        if ((done = take_value(all, value, depth, chat ? 1 : -1)) <= 0)
            return done;
        if (chat)
            all->item->chat = 1;
        else if (level >= 0)
            note(all->item, level, key, value, (Span){start, all->text.used});
        before = ',';
    }
    return write_bytes_of(&all->text, before == '{' ? "{}" : "}", before == '{' ? 2 : 1) < 0 ? -1 : 1;
}

/* 1: taken; 0: not plain, too deep, or more than may be kept; -1: an error is set. */
static int take_value(Taking *all, PyObject *value, int depth, int level)
{
    if (PyUnicode_CheckExact(value) && all->kept->slots.used < all->most) /* as most of them are */
        return put_leaf(&all->kept->slots, value) < 0 || write_string(&all->text, value) < 0 ? -1 : 1;
    int done = keep_head(all->kept, value, depth, all->most);
    if (done <= 0)
        return done;
    if (done == LEAF)
        return write_leaf(&all->text, value) < 0 ? -1 : 1;
    if (all->item && depth > all->item->deepest)
        all->item->deepest = depth;
    if (PyDict_CheckExact(value))
        return take_members(all, value, depth + 1, level);
    char before = '[';
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(value); at++) {
        if (write_bytes_of(&all->text, &before, 1) < 0)
            return -1;
        if ((done = take_value(all, PyList_GET_ITEM(value, at), depth + 1, -1)) <= 0)
            return done;
        before = ',';
    }
    return write_bytes_of(&all->text, before == '[' ? "[]" : "]", before == '[' ? 2 : 1) < 0 ? -1 : 1;
}

/* Reads the whole list; every item has a place of its own. */
static int take_list(Taking *all, PyObject *list, Item *items)
{
    int done = keep_head(all->kept, list, 0, all->most);
    for (Py_ssize_t at = 0; done > 0 && at < PyList_GET_SIZE(list); at++) {
        all->item = &items[at];
        all->item->whole.start = all->text.used;
        done = take_value(all, PyList_GET_ITEM(list, at), 1, 0);
        all->item->whole.end = all->text.used;
    }
    return done;
}

typedef struct {
    Bounds bounds;
    Py_ssize_t named, wrapper; /* characters of a name, and of what stands around one that is no chat function */
    PyObject *make, *fields, *origin, *chat, *mcp, *silent, *traits;
} Making;

static Piece piece_of(const Text *text, Span span)
{
    return span.start == span.end ? (Piece){0} : (Piece){text->at + span.start, (Py_ssize_t)(span.end - span.start)};
}

/* A description as a text of its own, if it is not ASCII: what was noted in the given one to encode it is not kept. */
static PyObject *own_text(PyObject *given)
{
    if (!given)
        return PyUnicode_New(0, 0);
    if (PyUnicode_IS_COMPACT_ASCII(given))
        return Py_NewRef(given);
    return PyUnicode_FromKindAndData(PyUnicode_KIND(given), PyUnicode_DATA(given), PyUnicode_GET_LENGTH(given));
}

static PyObject *bytes_of(Piece piece) { return PyBytes_FromStringAndSize(piece.start, piece.size); }

/* The tool of a definition; its bytes if it has to be looked at alone; NULL with an error set. */
static PyObject *tool_of(const Text *text, const Item *item, PyObject *toolset, const Making *making)
{
    int level = item->chat;
    Piece whole = piece_of(text, item->whole), schema = piece_of(text, item->parts[level][SCHEMA]);
    Piece quoted = piece_of(text, item->parts[level][NAME]), words = piece_of(text, item->parts[level][DESCRIPTION]);
    Piece said = level ? (Piece){0} : piece_of(text, item->parts[0][ANNOTATIONS]);
    PyObject *name = item->names[level], *described = item->descriptions[level];
    if (item->deepest > making->bounds.levels || whole.size > making->bounds.bytes || (!level && item->other)
        || !schema.start || *schema.start != '{' || may_refer_elsewhere(whole.start, whole.start + whole.size) || !name
        || !is_safe(quoted, making->named) || (words.start && !described)
        || (described && PyUnicode_GET_LENGTH(described) > making->bounds.described))
        return bytes_of(whole);
    Py_ssize_t chars = level ? count_chars(whole)
                             : count_chars(schema) + (words.start ? count_chars(words) : 2) + making->wrapper
                                   + PyUnicode_GET_LENGTH(name);
    PyObject *traits = said.start ? bytes_of(said) : Py_NewRef(making->silent), *tool = NULL;
    if (traits && said.start)
        Py_SETREF(traits, PyObject_CallOneArg(making->traits, traits));
    PyObject *words_kept = traits ? own_text(described) : NULL, *schema_kept = words_kept ? bytes_of(schema) : NULL;
    PyObject *raw = schema_kept ? bytes_of(whole) : NULL, *aliases = raw ? PyTuple_New(0) : NULL;
    PyObject *number = aliases ? PyLong_FromSsize_t(chars) : NULL;
    if (number) {
        PyObject *given[] = {name, toolset, making->origin, name, words_kept, schema_kept, raw,
                             level ? making->chat : making->mcp, traits, aliases, number};
        tool = PyObject_Vectorcall(making->make, given, 0, making->fields);
    }
    Py_XDECREF(traits);
    Py_XDECREF(words_kept);
    Py_XDECREF(schema_kept);
    Py_XDECREF(raw);
    Py_XDECREF(aliases);
    Py_XDECREF(number);
    return tool;
}

/* The tools, or bytes, of all definitions; only bytes where some number is none that JSON has. */
static PyObject *tools_of(const Taking *all, const Item *items, PyObject *toolsets, const Making *making)
{
    Py_ssize_t size = PyList_GET_SIZE(toolsets);
    PyObject *found = PyList_New(size);
    for (Py_ssize_t at = 0; found && at < size; at++) {
        PyObject *toolset = at < PyList_GET_SIZE(toolsets) ? Py_NewRef(PyList_GET_ITEM(toolsets, at)) : NULL;
        PyObject *made = !toolset ? PyErr_Format(PyExc_ValueError, "the toolsets changed")
                       : all->kept->odd ? bytes_of(piece_of(&all->text, items[at].whole))
                       : tool_of(&all->text, &items[at], toolset, making);
        Py_XDECREF(toolset);
        if (made)
            PyList_SET_ITEM(found, at, made);
        else
            Py_CLEAR(found);
    }
    return found;
}

/* take(definitions, encode, most, bounds, toolsets, make, fields, told) -> what was kept of a list, whether all numbers in
   it are finite, and for each definition the tool that `make` makes of `fields`, or its bytes where it has to be looked at
   alone; None if the list is not plain. Bounds are levels, bytes, characters of a description and of a name; `told` are the
   origin, the names of both dialects, what is known of a tool that says nothing about its behaviour, what reads the
   annotations of one that does, and the characters around one that is no chat function. */
FAST(take)
{
    Making making = {.named = 0};
    Py_ssize_t most;
    if (count != 8 || !PyList_CheckExact(args[0]) || !PyTuple_CheckExact(args[3]) || !PyList_CheckExact(args[4])
        || PyList_GET_SIZE(args[4]) != PyList_GET_SIZE(args[0]) || !PyTuple_CheckExact(args[6])
        || PyTuple_GET_SIZE(args[6]) != 11 || !PyTuple_CheckExact(args[7]))
        return PyErr_Format(PyExc_TypeError, "take takes definitions, an encoder, bounds, toolsets and what makes tools");
    making.make = args[5];
    making.fields = args[6];
    if (!PyArg_ParseTuple(args[3], "nnnn", &making.bounds.levels, &making.bounds.bytes, &making.bounds.described,
                          &making.named)
        || !PyArg_ParseTuple(args[7], "OOOOOn", &making.origin, &making.chat, &making.mcp, &making.silent, &making.traits,
                             &making.wrapper)
        || ((most = PyLong_AsSsize_t(args[2])) == -1 && PyErr_Occurred()))
        return NULL;
    Taking all = {.kept = new_kept(), .text = {.encode = args[1]}, .most = most};
    Py_ssize_t size = PyList_GET_SIZE(args[0]);
    Item *items = PyMem_Calloc((size_t)size + 1, sizeof(Item));
    PyObject *found = NULL, *capsule = NULL, *result = NULL;
    int done = -1;
    if (!all.kept || !items)
        PyErr_NoMemory();
    else if (room_for(&all.text, (size_t)(size + 1) * USUAL_BYTES) && widen(&all.kept->slots, (size + 1) * USUAL_VALUES) == 0
             && (done = take_list(&all, args[0], items)) > 0) {
        int finite = !all.kept->odd;
        /* Only now may others get a turn: everything that is looked at is kept, or the text's own. */
        found = tools_of(&all, items, args[4], &making);
        if (found && (capsule = close_kept(all.kept))) {
            all.kept = NULL;
            result = PyTuple_Pack(3, capsule, finite ? Py_True : Py_False, found);
        }
    }
    if (all.kept)
        drop_kept(all.kept);
    Py_XDECREF(capsule);
    Py_XDECREF(found);
    PyMem_Free(items);
    PyMem_Free(all.text.at);
    if (!done)
        Py_RETURN_NONE;
    return result;
}
