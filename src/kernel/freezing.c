/* Freezing: what `intake.freezing` reads of a definition's bytes, and their canonical form. */

#include "definitions.h"
#include "json.h"

#include <stdlib.h>

/* items(encoded) -> the items of an encoded list, each encoded; None if it is not as an encoder writes it. */
PyObject *items(PyObject *module, PyObject *encoded)
{
    if (!PyBytes_CheckExact(encoded))
        return PyErr_Format(PyExc_TypeError, "items takes an encoded list");
    const char *at = PyBytes_AS_STRING(encoded);
    PyObject *found = PyList_New(0);
    while (found && has_next(&at, '[', ']')) {
        const char *start = at;
        if (!(at = skip_value(at)))
            break;
        if (append(found, PyBytes_FromStringAndSize(start, at - start)) < 0)
            Py_CLEAR(found);
    }
    if (!found || (at && at == PyBytes_AS_STRING(encoded) + PyBytes_GET_SIZE(encoded)))
        return found;
    Py_DECREF(found);
    Py_RETURN_NONE;
}

/* digest(raws, seed) -> a number that tells these bytes from others, in this order; the seed keeps others from guessing how. */
FAST(digest)
{
    if (count != 2 || !PyList_CheckExact(args[0]))
        return PyErr_Format(PyExc_TypeError, "digest takes a list of bytes and a seed");
    uint64_t seed = PyLong_AsUnsignedLongLongMask(args[1]), whole = seed;
    if (PyErr_Occurred())
        return NULL;
    for (Py_ssize_t which = 0; which < PyList_GET_SIZE(args[0]); which++) {
        PyObject *raw = PyList_GET_ITEM(args[0], which);
        if (!PyBytes_CheckExact(raw))
            return PyErr_Format(PyExc_TypeError, "digest takes bytes");
        const char *at = PyBytes_AS_STRING(raw), *end = at + PyBytes_GET_SIZE(raw);
        char last[32] = {0};
        /* Four at a time, none of which has to wait for another. */
        uint64_t lanes[4] = {hash_start(seed, (size_t)(end - at)), seed + 1, seed + 2, seed + 3};
        for (; end - at >= 32; at += 32)
            for (int lane = 0; lane < 4; lane++)
                lanes[lane] = hash_step(seed, lanes[lane], letters_at(at + 8 * lane, 8));
        memcpy(last, at, (size_t)(end - at));
        for (int lane = 0; lane < 4; lane++)
            whole = hash_step(seed, whole, hash_step(seed, lanes[lane], letters_at(last + 8 * lane, 8)));
    }
    return PyLong_FromUnsignedLongLong(whole);
}

enum { NAME, DESCRIPTION, SCHEMA, ANNOTATIONS, READ };

/* Where a definition says what; `inner` is what its chat function does, if it is one. */
typedef struct {
    Piece outer[READ], inner[READ];
    int chat, other;
} Definition;

/* What a definition says on one level, the outer one if `whole` is given; where the schema stands differs. Where it ends,
   or NULL if it is not as expected. */
static const char *read_level(const char *at, const char *schema, Py_ssize_t levels, Piece found[READ], Definition *whole)
{
    Piece key;
    while (next_member(&at, &key)) {
        int which = is_key(key, "name") ? NAME : is_key(key, "description") ? DESCRIPTION : is_key(key, schema) ? SCHEMA
                  : is_key(key, "annotations") ? ANNOTATIONS : READ;
        const char *start = at;
        if (whole && *at == '{' && is_key(key, "function")) {
            if (levels < 2 || whole->chat++ || !(at = read_level(at, "parameters", levels - 1, whole->inner, NULL)))
                return NULL;
            continue;
        }
        if (!(at = skip_within(at, levels - 1)))
            return NULL;
        if (which < READ)
            found[which] = (Piece){start, at - start};
        else if (whole)
            whole->other |= is_key(key, "input_schema") || is_key(key, "parametersJsonSchema")
                         || is_key(key, "parameters_json_schema") || is_key(key, "parameters");
    }
    return at;
}

/* A string as a text; NULL if it is none or has escapes, or with an error set. */
static PyObject *text_of(Piece piece)
{
    Piece inside;
    if (!piece.start || !read_string(piece.start, &inside))
        return NULL;
    return PyUnicode_DecodeUTF8(inside.start, inside.size, NULL);
}

int may_refer_elsewhere(const char *at, const char *end)
{
    static const char *const KEYS[] = {"$ref\"", "$dynamicRef\""};
    while ((at = memchr(at, '$', (size_t)(end - at)))) {
        for (int which = 0; which < 2; which++) {
            size_t size = strlen(KEYS[which]);
            if (!strncmp(at, KEYS[which], size) && strncmp(at + size, ":\"#", 3))
                return 1;
        }
        at++;
    }
    return 0;
}

int is_safe(Piece quoted, Py_ssize_t most)
{
    if (!quoted.start || *quoted.start != '"' || quoted.size < 3 || quoted.size - 2 > most)
        return 0;
    const char *at = quoted.start + 1, *end = quoted.start + quoted.size - 1, *first = at;
    for (; at < end; at++)
        if (!is_wordly(*at) && *at != '_' && *at != '-')
            return 0;
    while (first < end && !is_wordly(*first))
        first++;
    return lower_of(*first) != 't';
}

static int read_bounds(Bounds *bounds, PyObject *const *args)
{
    bounds->levels = PyLong_AsSsize_t(args[0]);
    bounds->bytes = PyErr_Occurred() ? 0 : PyLong_AsSsize_t(args[1]);
    bounds->described = PyErr_Occurred() ? 0 : PyLong_AsSsize_t(args[2]);
    return PyErr_Occurred() ? -1 : 0;
}

/* What one definition says, as `read_tool` tells it; NULL if Python has to look, or with an error set. */
static PyObject *tell(PyObject *raw, Piece whole, const Definition *read, const Bounds *bounds)
{
    const Piece *found = read->chat ? read->inner : read->outer;
    Piece said = read->chat ? (Piece){0} : found[ANNOTATIONS], words = found[DESCRIPTION];
    if (whole.size > bounds->bytes || (!read->chat && read->other) || !found[SCHEMA].start || *found[SCHEMA].start != '{'
        || may_refer_elsewhere(whole.start, whole.start + whole.size))
        return NULL;
    PyObject *name = text_of(found[NAME]), *description = NULL, *result = NULL;
    if (name && PyUnicode_GET_LENGTH(name))
        description = words.start ? text_of(words) : PyUnicode_New(0, 0);
    if (description && PyUnicode_GET_LENGTH(description) <= bounds->described) {
        Py_ssize_t chars = read->chat ? count_chars(whole) - PyUnicode_GET_LENGTH(name)
                                      : count_chars(found[SCHEMA]) + (words.start ? count_chars(words) : 2);
        PyObject *kept = raw ? Py_NewRef(raw) : PyBytes_FromStringAndSize(whole.start, whole.size);
        PyObject *schema = PyBytes_FromStringAndSize(found[SCHEMA].start, found[SCHEMA].size);
        PyObject *annotations = said.start ? PyBytes_FromStringAndSize(said.start, said.size) : Py_NewRef(Py_None);
        PyObject *number = PyLong_FromSsize_t(chars);
        if (kept && schema && annotations && number)
            result = PyTuple_Pack(7, kept, read->chat ? Py_True : Py_False, name, description, schema, annotations, number);
        Py_XDECREF(kept);
        Py_XDECREF(schema);
        Py_XDECREF(annotations);
        Py_XDECREF(number);
    }
    Py_XDECREF(name);
    Py_XDECREF(description);
    return result;
}

/* read_tool(encoded, levels, bytes, described) -> the bytes of a definition, whether it is a chat function, its name,
   description, encoded schema, encoded annotations or None, and its characters: as a chat function all but those of the
   name, else those of schema and description. None if it is no definition in the shape of chat or of MCP's `tools/list`,
   nests deeper than so many levels, has more bytes or a longer description, may refer elsewhere, or is not as simple as
   most are. */
FAST(read_tool)
{
    Bounds bounds;
    if (count != 4 || !PyBytes_CheckExact(args[0]))
        return PyErr_Format(PyExc_TypeError, "read_tool takes an encoded definition and three bounds");
    if (read_bounds(&bounds, args + 1) < 0)
        return NULL;
    const char *start = PyBytes_AS_STRING(args[0]), *end = start + PyBytes_GET_SIZE(args[0]);
    Definition read = {.chat = 0};
    PyObject *told = NULL;
    if (*start == '{' && read_level(start, "inputSchema", bounds.levels, read.outer, &read) == end)
        told = tell(args[0], (Piece){start, end - start}, &read, &bounds);
    if (told || PyErr_Occurred())
        return told;
    Py_RETURN_NONE;
}

/* A value of a definition. */
typedef struct {
    Piece key, value;
    int32_t first, next;   /* place of the first value in it, and of the next one beside it; 0 for none */
    uint8_t open, ordered; /* its bracket, if it has one; whether its bytes are in canonical order */
} Node;

typedef struct {
    Piece key;
    int32_t place;
} Member;

typedef struct {
    Node *nodes;
    size_t used, room;
    Member *members; /* of the objects that are being written */
    size_t members_used, members_room;
    char *to;
} Tree;

static int compare_keys(const void *first, const void *second)
{
    Piece one = ((const Member *)first)->key, other = ((const Member *)second)->key;
    int order = memcmp(one.start, other.start, (size_t)(one.size < other.size ? one.size : other.size));
    return order ? order : one.size < other.size ? -1 : one.size > other.size;
}

/* Reads a value and everything in it: its place; 0 if it is not as expected or too deep, -1 with an error set. */
static int32_t read_node(Tree *tree, const char **at, Piece key, long levels)
{
    if (tree->used >= tree->room) {
        size_t room = tree->room ? tree->room * 2 : 128;
        Node *nodes = room < INT32_MAX ? PyMem_Realloc(tree->nodes, room * sizeof(Node)) : NULL;
        if (!nodes) {
            PyErr_NoMemory();
            return -1;
        }
        tree->nodes = nodes;
        tree->room = room;
    }
    int32_t own = (int32_t)tree->used++, last = 0;
    const char *start = *at;
    Node node = {.key = key, .ordered = 1};
    if (*start != '{' && *start != '[') {
        if (!(*at = skip_value(start)))
            return 0;
    }
    else {
        Member before = {{0}, 0}, held = {{0}, 0};
        if (!levels)
            return 0;
        node.open = (uint8_t)*start;
        while (node.open == '{' ? next_member(at, &held.key) : has_next(at, '[', ']')) {
            int32_t child = read_node(tree, at, held.key, levels - 1);
            if (child <= 0)
                return child;
            node.ordered &= tree->nodes[child].ordered;
            if (last) {
                tree->nodes[last].next = child;
                node.ordered &= node.open == '[' || compare_keys(&before, &held) < 0;
            }
            else
                node.first = child;
            before = held;
            last = child;
        }
        if (!*at)
            return 0;
    }
    node.value = (Piece){start, *at - start};
    tree->nodes[own] = node;
    return own;
}

static void sort_members(Member *members, size_t size)
{
    if (size > 16) {
        qsort(members, size, sizeof(Member), compare_keys);
        return;
    }
    for (size_t at = 1; at < size; at++) {
        Member moved = members[at];
        size_t place = at;
        for (; place && compare_keys(&moved, &members[place - 1]) < 0; place--)
            members[place] = members[place - 1];
        members[place] = moved;
    }
}

static int put_members(Tree *tree, int32_t place)
{
    for (; place; place = tree->nodes[place].next) {
        if (tree->members_used == tree->members_room) {
            size_t room = tree->members_room ? tree->members_room * 2 : 64;
            Member *members = PyMem_Realloc(tree->members, room * sizeof(Member));
            if (!members) {
                PyErr_NoMemory();
                return -1;
            }
            tree->members = members;
            tree->members_room = room;
        }
        tree->members[tree->members_used++] = (Member){tree->nodes[place].key, place};
    }
    return 0;
}

static void write_bytes(Tree *tree, const char *from, Py_ssize_t size)
{
    memcpy(tree->to, from, (size_t)size);
    tree->to += size;
}

/* Writes a value in canonical order: it takes as many bytes as it had. */
static int write_node(Tree *tree, int32_t place)
{
    Node node = tree->nodes[place];
    if (node.ordered) {
        write_bytes(tree, node.value.start, node.value.size);
        return 0;
    }
    size_t start = tree->members_used;
    if (put_members(tree, node.first) < 0)
        return -1;
    size_t end = tree->members_used;
    if (node.open == '{')
        sort_members(tree->members + start, end - start);
    *tree->to++ = (char)node.open;
    for (size_t which = start; which < end; which++) {
        Member member = tree->members[which];
        if (which > start)
            *tree->to++ = ',';
        if (node.open == '{') /* the key stands between its quotation marks, with a colon behind them */
            write_bytes(tree, member.key.start - 1, member.key.size + 3);
        if (write_node(tree, member.place) < 0)
            return -1;
    }
    *tree->to++ = node.open == '{' ? '}' : ']';
    tree->members_used = start;
    return 0;
}

static void write_length(Tree *tree, Py_ssize_t length)
{
    for (int shift = 56; shift >= 0; shift -= 8)
        *tree->to++ = (char)((uint64_t)length >> shift & 255);
}

/* canonical(head, encoded, levels) -> the head, and the JSON with sorted keys, each behind its length in eight bytes;
   None if it is not as an encoder writes it, has escapes in its keys, or nests deeper than so many levels. */
FAST(canonical)
{
    if (count != 3 || !PyBytes_CheckExact(args[0]) || !PyBytes_CheckExact(args[1]))
        return PyErr_Format(PyExc_TypeError, "canonical takes a head, an encoded value and a bound");
    long levels = PyLong_AsLong(args[2]);
    if (PyErr_Occurred())
        return NULL;
    if (levels < 0 || levels > 200)
        return PyErr_Format(PyExc_ValueError, "the bound is 0 to 200");
    Tree tree = {.used = 1}; /* no value has the place 0 */
    Py_ssize_t head = PyBytes_GET_SIZE(args[0]), size = PyBytes_GET_SIZE(args[1]);
    const char *at = PyBytes_AS_STRING(args[1]), *end = at + size;
    PyObject *result = NULL;
    int32_t root = read_node(&tree, &at, (Piece){0}, levels);
    if (root > 0 && at == end && (result = PyBytes_FromStringAndSize(NULL, head + size + 16))) {
        tree.to = PyBytes_AS_STRING(result);
        write_length(&tree, head);
        write_bytes(&tree, PyBytes_AS_STRING(args[0]), head);
        write_length(&tree, size);
        if (write_node(&tree, root) < 0 || tree.to != PyBytes_AS_STRING(result) + head + size + 16)
            Py_CLEAR(result); /* no memory, or not an encoder's bytes after all */
    }
    PyMem_Free(tree.nodes);
    PyMem_Free(tree.members);
    if (result || PyErr_Occurred())
        return result;
    Py_RETURN_NONE;
}
