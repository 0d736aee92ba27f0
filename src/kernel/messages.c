/* Messages of MCP, each read in one go: a call of a tool as a client sends it (`gateway.calls`), and the answer to it as
   a server does (`sources.link`). Both come from strangers: nothing in them is taken for granted, and whatever is unusual
   is left to Python, which reads it again from the start and says what is wrong with it. Behind the last byte stands a
   zero, which no loop passes. */

#include "json.h"

#define DIGITS_MAX 18 /* of a whole number: any of so many has room in 64 bits */
#define EIGHT(byte) (0x0101010101010101u * (byte))

static const char LETTERS[] = "\"\\bfnrt", MEANT[] = "\"\\\b\f\n\r\t"; /* escapes, as an encoder writes them */

/* The members that matter: of the parameters, and of the arguments of whatever calls another tool. */
enum { ARGUMENTS, NAME, KEYS, STEPS = 2 };
static const char *const SPELT[KEYS] = {"\"arguments\"", "\"name\""};
static PyObject *TEXTS[KEYS]; /* the same as keys */

typedef struct {
    const char *at, *end;
    Py_ssize_t room; /* objects and lists that may still be opened */
    int blanks;      /* whether there were any between the signs */
    PyObject *found[STEPS][KEYS]; /* held by the objects that they are members of */
    Piece arguments[STEPS];
} Reader;

int fill_messages(void)
{
    TEXTS[ARGUMENTS] = PyUnicode_InternFromString("arguments");
    TEXTS[NAME] = PyUnicode_InternFromString("name");
    return TEXTS[ARGUMENTS] && TEXTS[NAME] ? 0 : -1;
}

static void skip_blanks(Reader *reader)
{
    for (char c; (c = *reader->at) == ' ' || c == '\n' || c == '\r' || c == '\t'; reader->at++)
        reader->blanks = 1;
}

/* The first byte from here on that is a quote, a backslash, a control character or beyond ASCII; eight at a time. */
static const char *skip_letters(const char *at, const char *end)
{
    for (uint64_t eight; end - at >= 8; at += 8) {
        memcpy(&eight, at, 8);
        uint64_t quotes = (eight ^ EIGHT('"')) - EIGHT(1), slashes = (eight ^ EIGHT('\\')) - EIGHT(1);
        if ((eight | quotes | slashes | (eight - EIGHT(' '))) & EIGHT(0x80))
            break;
    }
    while (*at != '"' && *at != '\\' && (signed char)*at >= ' ')
        at++;
    return at;
}

/* Whether another item follows, which the reader then stands at; it started behind the opening bracket. -1: neither an
   item nor the end. */
static int next_item(Reader *reader, char close, int *begun)
{
    skip_blanks(reader);
    if (*reader->at == close) {
        reader->at++;
        return 0;
    }
    if (*begun) {
        if (*reader->at != ',')
            return -1;
        reader->at++;
        skip_blanks(reader);
        if (*reader->at == close)
            return -1;
    }
    return *begun = 1;
}

/* From the end of a key to its value. */
static int pass_colon(Reader *reader)
{
    skip_blanks(reader);
    if (*reader->at != ':')
        return -1;
    reader->at++;
    skip_blanks(reader);
    return 0;
}

static const char *skip_digits(const char *at)
{
    while (is_digit(*at))
        at++;
    return at;
}

/* The end of a number without its fraction and exponent. */
static const char *skip_whole(const char *at)
{
    const char *digits = at + (*at == '-'), *end = skip_digits(digits);
    return end == digits || (*digits == '0' && end > digits + 1) ? NULL : end;
}

/* The whole number that the reader stands at, if it has not too many digits and is no negative zero: 0, or -1. */
static int read_whole(Reader *reader, long long *meant)
{
    const char *at = reader->at, *end = skip_whole(at);
    int negative = *at == '-';
    if (!end || end - at > DIGITS_MAX || *end == '.' || lower_of(*end) == 'e')
        return -1;
    for (*meant = 0, at += negative; at < end; at++)
        *meant = *meant * 10 + (*at - '0');
    if (negative && !*meant)
        return -1;
    *meant = negative ? -*meant : *meant;
    reader->at = end;
    return 0;
}

static int skip_word(Reader *reader, const char *word)
{
    size_t size = strlen(word);
    if (strncmp(reader->at, word, size))
        return -1;
    reader->at += size;
    return 0;
}

/* What nothing is made of: it is only made sure that it is JSON. */

static int check_value(Reader *reader);

static int check_text(Reader *reader)
{
    if (*reader->at != '"')
        return -1;
    const char *at = skip_letters(reader->at + 1, reader->end);
    for (; *at != '"'; at = skip_letters(at, reader->end)) {
        if ((signed char)*at < 0)
            at++;
        else if (*at != '\\')
            return -1;
        else if (at[1] == 'u') {
            for (int place = 2; place < 6; place++)
                if (!is_digit(at[place]) && !(lower_of(at[place]) >= 'a' && lower_of(at[place]) <= 'f'))
                    return -1;
            if (lower_of(at[2]) == 'd' && at[3] >= '8') /* half of a pair: Python looks for the other */
                return -1;
            at += 6;
        }
        else if (at[1] == '/' || (at[1] && strchr(LETTERS, at[1])))
            at += 2;
        else
            return -1;
    }
    reader->at = at + 1;
    return 0;
}

static int check_number(Reader *reader)
{
    const char *at = skip_whole(reader->at);
    if (at && *at == '.')
        at = skip_digits(at + 1) > at + 1 ? skip_digits(at + 1) : NULL;
    if (at && lower_of(*at) == 'e') {
        at += at[1] == '+' || at[1] == '-' ? 2 : 1;
        at = skip_digits(at) > at ? skip_digits(at) : NULL;
    }
    reader->at = at ? at : reader->at;
    return at ? 0 : -1;
}

/* The next member of an object: 1 with its key, as it is spelt, at its value; 0 at the end; or -1. */
static int check_member(Reader *reader, Piece *key, int *begun)
{
    int more = next_item(reader, '}', begun);
    if (more <= 0)
        return more;
    key->start = reader->at + 1;
    if (check_text(reader) < 0)
        return -1;
    key->size = reader->at - key->start - 1;
    return pass_colon(reader) < 0 ? -1 : 1;
}

static int check_container(Reader *reader)
{
    int in_object = *reader->at == '{', begun = 0, more;
    Piece key;
    if (--reader->room < 0)
        return -1;
    reader->at++;
    while ((more = in_object ? check_member(reader, &key, &begun) : next_item(reader, ']', &begun)) > 0)
        if (check_value(reader) < 0)
            return -1;
    reader->room++;
    return more;
}

static int check_value(Reader *reader)
{
    switch (*reader->at) {
    case '"': return check_text(reader);
    case '{':
    case '[': return check_container(reader);
    case 't': return skip_word(reader, "true");
    case 'f': return skip_word(reader, "false");
    case 'n': return skip_word(reader, "null");
    default: return check_number(reader);
    }
}

/* A call. What makes a value returns NULL without an error for what is left to Python. */

static PyObject *read_value(Reader *reader, int step);

static PyObject *without_escapes(const char *at, const char *end)
{
    char *plain = PyMem_Malloc((size_t)(end - at)), *to = plain;
    if (!plain)
        return PyErr_NoMemory();
    for (; at < end; at++)
        *to++ = *at == '\\' ? at++, MEANT[strchr(LETTERS, *at) - LETTERS] : *at;
    PyObject *text = PyUnicode_DecodeUTF8(plain, to - plain, NULL);
    PyMem_Free(plain);
    return text;
}

static PyObject *read_text(Reader *reader)
{
    const char *start = reader->at + 1, *at = skip_letters(start, reader->end);
    int escapes = 0, others = 0;
    for (; *at != '"'; at = skip_letters(at, reader->end)) {
        if ((signed char)*at < 0)
            others = 1, at++;
        else if (*at == '\\' && at[1] && strchr(LETTERS, at[1]))
            escapes = 1, at += 2;
        else
            return NULL;
    }
    reader->at = at + 1;
    if (escapes)
        return without_escapes(start, at);
    if (others)
        return PyUnicode_DecodeUTF8(start, at - start, NULL);
    PyObject *text = PyUnicode_New(at - start, 127);
    if (text)
        memcpy(PyUnicode_DATA(text), start, (size_t)(at - start));
    return text;
}

/* Puts the member that the reader stands at into its object: 0, or -1. No key comes twice. */
static int read_member(Reader *reader, PyObject *object, int step)
{
    Py_ssize_t before = PyDict_GET_SIZE(object);
    PyObject *key = NULL, *value = NULL;
    int which = step < STEPS ? ARGUMENTS : KEYS;
    while (which < KEYS && skip_word(reader, SPELT[which]) < 0)
        which++;
    if (which < KEYS)
        key = Py_NewRef(TEXTS[which]);
    else if (*reader->at == '"')
        key = read_text(reader);
    if (key && !pass_colon(reader)) {
        const char *start = reader->at;
        value = read_value(reader, which == ARGUMENTS ? step + 1 : STEPS);
        if (which == ARGUMENTS)
            reader->arguments[step] = (Piece){start, reader->at - start};
        if (which < KEYS)
            reader->found[step][which] = value;
    }
    int failed = !value || PyDict_SetItem(object, key, value) < 0 || PyDict_GET_SIZE(object) == before;
    Py_XDECREF(key);
    Py_XDECREF(value);
    return failed ? -1 : 0;
}

static PyObject *read_container(Reader *reader, int step)
{
    int is_object = *reader->at == '{', begun = 0, more;
    PyObject *found = is_object ? PyDict_New() : PyList_New(0);
    if (!found)
        return NULL;
    more = --reader->room < 0 ? -1 : 1;
    reader->at++;
    while (more > 0 && (more = next_item(reader, is_object ? '}' : ']', &begun)) > 0)
        if ((is_object ? read_member(reader, found, step) : append(found, read_value(reader, STEPS))) < 0)
            more = -1;
    if (more < 0)
        Py_CLEAR(found);
    return found;
}

/* A value; `step` says how far on the way to the arguments it stands. */
static PyObject *read_value(Reader *reader, int step)
{
    long long whole;
    switch (*reader->at) {
    case '"': return read_text(reader);
    case '{':
    case '[': return read_container(reader, step);
    case 't': return skip_word(reader, "true") ? NULL : Py_NewRef(Py_True);
    case 'f': return skip_word(reader, "false") ? NULL : Py_NewRef(Py_False);
    case 'n': return skip_word(reader, "null") ? NULL : Py_NewRef(Py_None);
    default: return read_whole(reader, &whole) ? NULL : PyLong_FromLongLong(whole);
    }
}

static int is_name(PyObject *value) { return value && PyUnicode_CheckExact(value); }
static int is_object(PyObject *value) { return value && PyDict_CheckExact(value); }

/* The id and the parameters of a request that calls a tool, if it is that and nothing else: 0, or -1. */
static int read_request(Reader *reader, Py_ssize_t id_most, PyObject **id, PyObject **params)
{
    int begun = 0, has_method = 0, has_version = 0, more = *reader->at == '{' ? 1 : -1;
    long long whole;
    Piece key;
    reader->at++;
    while (more > 0 && (more = check_member(reader, &key, &begun)) > 0) {
        int good = 0;
        if (is_key(key, "method"))
            good = !has_method++ && !skip_word(reader, "\"tools/call\"");
        else if (is_key(key, "jsonrpc"))
            good = !has_version++ && !skip_word(reader, "\"2.0\"");
        else if (is_key(key, "params") && !*params && *reader->at == '{')
            good = (*params = read_container(reader, 0)) != NULL;
        else if (is_key(key, "id") && !*id && *reader->at == '"')
            good = (*id = read_text(reader)) && PyUnicode_GET_LENGTH(*id) <= id_most;
        else if (is_key(key, "id") && !*id && !read_whole(reader, &whole))
            good = (*id = PyLong_FromLongLong(whole)) != NULL;
        more = good ? 1 : -1;
    }
    return more < 0 || reader->at != reader->end || reader->blanks || !has_method || !has_version || !*id || !*params
               ? -1 : 0;
}

/* Whether the parameters are those of a usual call, and whether `wrapper` is called to call another tool. */
static int is_usual(Reader *reader, PyObject *wrapper, int *wrapped)
{
    PyObject **call = reader->found[0], **inner = reader->found[1];
    if (!is_name(call[NAME]) || !PyUnicode_GET_LENGTH(call[NAME]) || !is_object(call[ARGUMENTS]))
        return 0;
    *wrapped = PyUnicode_Compare(call[NAME], wrapper) == 0;
    return !*wrapped ||
           (PyDict_GET_SIZE(call[ARGUMENTS]) == KEYS && is_name(inner[NAME]) && is_object(inner[ARGUMENTS]));
}

/* The call that a client's message is: its id, its parameters, and of the tool that it is meant for the name, the
   arguments and these as bytes, and whether it was called through `wrapper`. Nothing for any other message. */
FAST(read_call)
{
    if (count != 5 || !PyBytes_CheckExact(args[0]) || !PyUnicode_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "read_call(data, wrapper, id_most, room, most)");
        return NULL;
    }
    const char *data = PyBytes_AS_STRING(args[0]);
    Py_ssize_t id_most = PyLong_AsSsize_t(args[2]), most = PyLong_AsSsize_t(args[4]);
    Reader reader = {.at = data, .end = data + PyBytes_GET_SIZE(args[0]), .room = PyLong_AsSsize_t(args[3])};
    if (PyErr_Occurred())
        return NULL;
    PyObject *id = NULL, *params = NULL, *encoded = NULL, *read = NULL;
    int wrapped = 0;
    if (!read_request(&reader, id_most, &id, &params) && is_usual(&reader, args[1], &wrapped)) {
        PyObject **call = reader.found[wrapped];
        Piece spelt = reader.arguments[wrapped];
        if (spelt.size <= most && (encoded = PyBytes_FromStringAndSize(spelt.start, spelt.size)))
            read = PyTuple_Pack(6, id, params, call[NAME], call[ARGUMENTS], encoded, wrapped ? Py_True : Py_False);
    }
    Py_XDECREF(id);
    Py_XDECREF(params);
    Py_XDECREF(encoded);
    if (read || (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)))
        return read;
    PyErr_Clear();
    Py_RETURN_NONE;
}

/* An answer. */

/* A result: 0 if it says at most once, and plainly, whether it is an error and that it is complete. */
static int check_result(Reader *reader, int *failed)
{
    int begun = 0, said = 0, told = 0, more;
    Piece key;
    if (*reader->at != '{')
        return -1;
    reader->at++;
    while ((more = check_member(reader, &key, &begun)) > 0) {
        const char *value = reader->at;
        if (has_escapes(key) || check_value(reader) < 0)
            return -1;
        if (is_key(key, "isError")) {
            if (said++ || (*value != 't' && *value != 'f'))
                return -1;
            *failed = *value == 't';
        }
        else if (is_key(key, "resultType") && (told++ || strncmp(value, "\"complete\"", 10)))
            return -1;
    }
    return more;
}

/* The answer that a server's message is: the id, the result as it came, and whether it is an error of the tool. Nothing
   for any other message. */
FAST(read_answer)
{
    if (count != 2 || !PyBytes_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "read_answer(data, levels)");
        return NULL;
    }
    const char *data = PyBytes_AS_STRING(args[0]);
    Reader reader = {.at = data, .end = data + PyBytes_GET_SIZE(args[0]), .room = PyLong_AsSsize_t(args[1])};
    if (PyErr_Occurred())
        return NULL;
    int begun = 0, failed = 0, has_id = 0, has_version = 0, more = *data == '{' ? 1 : -1;
    long long id = 0;
    Piece key, result = {NULL, 0};
    reader.at++;
    while (more > 0 && (more = check_member(&reader, &key, &begun)) > 0) {
        const char *value = reader.at;
        if (is_key(key, "id") && !has_id++)
            more = read_whole(&reader, &id) < 0 ? -1 : 1;
        else if (is_key(key, "jsonrpc") && !has_version++)
            more = skip_word(&reader, "\"2.0\"") < 0 ? -1 : 1;
        else if (is_key(key, "result") && !result.start && !check_result(&reader, &failed))
            result = (Piece){value, reader.at - value};
        else
            more = -1;
    }
    if (!more)
        skip_blanks(&reader);
    if (more || reader.at != reader.end || !has_id || !has_version || !result.start)
        Py_RETURN_NONE;
    PyObject *number = PyLong_FromLongLong(id), *encoded = PyBytes_FromStringAndSize(result.start, result.size);
    PyObject *read = number && encoded ? PyTuple_Pack(3, number, encoded, failed ? Py_True : Py_False) : NULL;
    Py_XDECREF(number);
    Py_XDECREF(encoded);
    return read;
}

/* The lines of whole lines, without those that are blank. */
SINGLE(lines)
{
    if (!PyBytes_CheckExact(given)) {
        PyErr_SetString(PyExc_TypeError, "lines(data)");
        return NULL;
    }
    PyObject *found = PyList_New(0);
    const char *at = PyBytes_AS_STRING(given), *end = at + PyBytes_GET_SIZE(given), *stop;
    for (; found && at < end; at = stop + 1) {
        stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        const char *start = at;
        while (start < stop && Py_ISSPACE(*start))
            start++;
        if (start < stop && append(found, PyBytes_FromStringAndSize(at, stop - at)) < 0)
            Py_CLEAR(found);
    }
    return found;
}

/* The body of an HTTP request of which all is known but the length of it: what stands before that and behind it. Nothing
   if that is not exactly what came, or if the body is longer than `most`. */
FAST(body)
{
    if (count != 5 || !PyBytes_CheckExact(args[0]) || !PyBytes_CheckExact(args[1]) || !PyBytes_CheckExact(args[2])) {
        PyErr_SetString(PyExc_TypeError, "body(data, before, after, digits, most)");
        return NULL;
    }
    const char *at = PyBytes_AS_STRING(args[0]), *end = at + PyBytes_GET_SIZE(args[0]);
    Py_ssize_t before = PyBytes_GET_SIZE(args[1]), after = PyBytes_GET_SIZE(args[2]), length = 0;
    Py_ssize_t digits = PyLong_AsSsize_t(args[3]), most = PyLong_AsSsize_t(args[4]);
    if (PyErr_Occurred())
        return NULL;
    if (end - at < before || memcmp(at, PyBytes_AS_STRING(args[1]), (size_t)before))
        Py_RETURN_NONE;
    const char *number = at + before;
    for (at = number; is_digit(*at) && at - number < digits; at++)
        length = length * 10 + (*at - '0');
    if (at == number || end - at != after + length || length > most ||
        memcmp(at, PyBytes_AS_STRING(args[2]), (size_t)after))
        Py_RETURN_NONE;
    return PyBytes_FromStringAndSize(at + after, length);
}
