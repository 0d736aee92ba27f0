/* Freezing: what `intake.freezing` reads of a definition's bytes, and their canonical form. */

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

enum { NAME, DESCRIPTION, SCHEMA, ANNOTATIONS, READ };

/* What a definition says on one level; where the schema stands differs. -1: not as expected. */
static int read_level(const char *at, const char *schema, Py_ssize_t levels, Piece found[READ], const char **function,
                      int *other)
{
    Piece key;
    while (next_member(&at, &key)) {
        int which = is_key(key, "name") ? NAME : is_key(key, "description") ? DESCRIPTION : is_key(key, schema) ? SCHEMA
                  : is_key(key, "annotations") ? ANNOTATIONS : READ;
        const char *start = at;
        if (!(at = skip_within(at, levels - 1)))
            return -1;
        if (which < READ)
            found[which] = (Piece){start, at - start};
        else if (is_key(key, "function"))
            *function = start;
        else
            *other |= is_key(key, "input_schema") || is_key(key, "parametersJsonSchema")
                   || is_key(key, "parameters_json_schema") || is_key(key, "parameters");
    }
    return at ? 0 : -1;
}

/* A string as a text; NULL if it is none or has escapes, or with an error set. */
static PyObject *text_of(Piece piece)
{
    Piece inside;
    if (!piece.start || !read_string(piece.start, &inside))
        return NULL;
    return PyUnicode_DecodeUTF8(inside.start, inside.size, NULL);
}

/* read_tool(encoded, levels) -> whether it is a chat function, its name, description, encoded schema and encoded
   annotations, or None for those, of a definition that is a chat function or an entry of MCP's `tools/list`; None if it
   is anything else, nests deeper than so many levels, or is not as simple as most are. */
FAST(read_tool)
{
    if (count != 2 || !PyBytes_CheckExact(args[0]))
        return PyErr_Format(PyExc_TypeError, "read_tool takes an encoded definition and a bound");
    PyObject *encoded = args[0];
    Py_ssize_t levels = PyLong_AsSsize_t(args[1]);
    if (PyErr_Occurred())
        return NULL;
    Piece found[READ] = {{0}};
    const char *function = NULL;
    int other = 0;
    if (*PyBytes_AS_STRING(encoded) != '{'
        || read_level(PyBytes_AS_STRING(encoded), "inputSchema", levels, found, &function, &other) < 0)
        Py_RETURN_NONE;
    int chat = function && *function == '{';
    if (chat) {
        const char *ignored = NULL;
        memset(found, 0, sizeof found);
        if (read_level(function, "parameters", levels, found, &ignored, &other) < 0)
            Py_RETURN_NONE;
        found[ANNOTATIONS].start = NULL;
    }
    else if (other)
        Py_RETURN_NONE;
    if (!found[SCHEMA].start || *found[SCHEMA].start != '{')
        Py_RETURN_NONE;
    PyObject *name = text_of(found[NAME]), *description = NULL, *result = NULL;
    if (name && PyUnicode_GET_LENGTH(name))
        description = found[DESCRIPTION].start ? text_of(found[DESCRIPTION]) : PyUnicode_New(0, 0);
    if (name && description) {
        Piece said = found[ANNOTATIONS];
        PyObject *annotations = said.start ? PyBytes_FromStringAndSize(said.start, said.size) : Py_NewRef(Py_None);
        if (annotations)
            result = Py_BuildValue("NOOy#N", PyBool_FromLong(chat), name, description, found[SCHEMA].start,
                                   found[SCHEMA].size, annotations);
    }
    Py_XDECREF(name);
    Py_XDECREF(description);
    if (result || PyErr_Occurred())
        return result;
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
