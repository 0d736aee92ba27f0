/* Cards: what `toolcrib.cards` shows of a tool: its first sentence (`listing`) and its signature (`retrieval.signature`). */

#include "json.h"

#define PARAMETERS 64
#define TEXT 4096    /* bytes of a signature */
#define LEVELS 3     /* schemas inside each other that are told apart */
#define SHOWN 8      /* values of an enumeration, and fields of an object */
#define OPTIONS 16   /* schemas to choose from */
#define LITERAL 60   /* characters of a value */
#define SENTENCE 1280 /* characters among which the first sentence is looked for */
#define ELLIPSIS "\xe2\x80\xa6"

static PyObject *KEYS[5];
static const char *const KEY_NAMES[5] = {"name", "source", "description", "signature", "complete"};

int fill_cards(void)
{
    for (int which = 0; which < 5; which++)
        if (!KEYS[which] && !(KEYS[which] = PyUnicode_InternFromString(KEY_NAMES[which])))
            return -1;
    return 0;
}

/* Keywords of a schema. The first ones say more than the type does. */
enum { CONST, ENUM, ANY_OF, ONE_OF, TYPE, ITEMS, PROPERTIES, REQUIRED, ADDITIONAL, WORDY, OTHER, KINDS_OF_KEYWORDS };

static int keyword(Piece key)
{
    switch (key.size) {
    case 4: return is_key(key, "type") ? TYPE : is_key(key, "enum") ? ENUM : OTHER;
    case 5: return is_key(key, "title") ? WORDY : is_key(key, "items") ? ITEMS : is_key(key, "const") ? CONST
                 : is_key(key, "anyOf") ? ANY_OF : is_key(key, "oneOf") ? ONE_OF : OTHER;
    case 7: return is_key(key, "default") ? WORDY : OTHER;
    case 8: return is_key(key, "required") ? REQUIRED : OTHER;
    case 10: return is_key(key, "properties") ? PROPERTIES : OTHER;
    case 11: return is_key(key, "description") ? WORDY : OTHER;
    case 20: return is_key(key, "additionalProperties") ? ADDITIONAL : OTHER;
    default: return OTHER;
    }
}

typedef struct {
    const char *at[KINDS_OF_KEYWORDS]; /* the values, where there are any */
    int odd;                           /* whether some keyword is not known */
} Schema;

/* Reads an object; where it ends, or NULL if it is not as expected. */
static const char *read_schema(const char *at, Schema *schema, const Watched *known)
{
    Piece key;
    memset(schema, 0, sizeof *schema);
    if (*at != '{')
        return NULL;
    while (next_member(&at, &key)) {
        int which = keyword(key);
        if (which == OTHER)
            schema->odd |= !is_one_of(known, key.start, (size_t)key.size);
        schema->at[which] = at;
        if (!(at = skip_value(at)))
            return NULL;
    }
    return at;
}

typedef struct {
    char text[TEXT];
    Py_ssize_t used;
    int exact; /* whether the schema says nothing else */
    const Watched *known;
} Writer;

/* What writes gives 0, or -1 where the reference has to write. */
static int say(Writer *writer, const char *text, Py_ssize_t size)
{
    if (size > TEXT - writer->used)
        return -1;
    memcpy(writer->text + writer->used, text, (size_t)size);
    writer->used += size;
    return 0;
}

static int say_word(Writer *writer, const char *word) { return say(writer, word, (Py_ssize_t)strlen(word)); }

/* A type's name in signatures; NULL for a type that JSON does not have. The last two have something inside. */
static const char *type_name(Piece kind, int plain)
{
    static const char *const NAMES[][2] = {{"string", "str"}, {"integer", "int"}, {"number", "float"}, {"boolean", "bool"},
                                           {"null", "null"}, {"object", "object"}, {"array", "list"}};
    for (int which = 0; which < (plain ? 5 : 7); which++)
        if (is_key(kind, NAMES[which][0]))
            return NAMES[which][1];
    return NULL;
}

static int is_ascii(const char *at, const char *end)
{
    while (at < end && !(*at & 0x80))
        at++;
    return at == end;
}

/* A value as an encoder writes it; no fractions, no large numbers and nothing with parts. */
static int say_literal(Writer *writer, const char *at)
{
    const char *end;
    Piece inside;
    if (*at == '"') {
        if (!(end = read_string(at, &inside)))
            return -1;
        if (end - at > LITERAL)
            return is_ascii(at, end) && !say(writer, at, LITERAL - 1) ? say_word(writer, ELLIPSIS) : -1;
    }
    else if (*at == 't' || *at == 'f' || *at == 'n') {
        const char *word = *at == 't' ? "true" : *at == 'f' ? "false" : "null";
        if (strncmp(at, word, strlen(word)))
            return -1;
        end = at + strlen(word);
    }
    else {
        const char *digits = at + (*at == '-');
        for (end = digits; is_digit(*end); end++)
            ;
        if (end == digits || end - digits > 15 || (*digits == '0' && (end - digits > 1 || *at == '-')))
            return -1;
    }
    if (*at != '"' && *end != ',' && *end != ']' && *end != '}')
        return -1;
    return say(writer, at, end - at);
}

static int say_enum(Writer *writer, const char *at)
{
    for (Py_ssize_t count = 0; has_next(&at, '[', ']'); count++) {
        if (count < SHOWN && ((count && say(writer, "|", 1) < 0) || say_literal(writer, at) < 0))
            return -1;
        if (count == SHOWN) {
            writer->exact = 0;
            if (say_word(writer, "|" ELLIPSIS) < 0)
                return -1;
        }
        if (!(at = skip_value(at)))
            return -1;
    }
    return at ? 0 : -1;
}

static int say_type(Writer *writer, const char *at, int level);

/* Each of the types once. */
static int say_options(Writer *writer, const char *at, int level)
{
    Py_ssize_t starts[OPTIONS], sizes[OPTIONS];
    int used = 0;
    while (has_next(&at, '[', ']')) {
        Py_ssize_t before = writer->used;
        if (used == OPTIONS || (used && say(writer, "|", 1) < 0))
            return -1;
        Py_ssize_t start = writer->used;
        if (say_type(writer, at, level) < 0 || !(at = skip_value(at)))
            return -1;
        Py_ssize_t size = writer->used - start;
        int which = 0;
        while (which < used
               && (sizes[which] != size || memcmp(writer->text + starts[which], writer->text + start, (size_t)size)))
            which++;
        if (which < used)
            writer->used = before;
        else {
            starts[used] = start;
            sizes[used++] = size;
        }
    }
    return at ? 0 : -1;
}

/* Whether a list of names has this one: 1 or 0, -1 if it is not as expected. */
static int has_name(const char *at, Piece name)
{
    int found = 0;
    if (!at || *at != '[')
        return 0;
    while (has_next(&at, '[', ']')) {
        Piece each = {0};
        if (*at == '"' && !read_string(at, &each))
            return -1;
        found |= each.start && each.size == name.size && !memcmp(each.start, name.start, (size_t)name.size);
        if (!(at = skip_value(at)))
            return -1;
    }
    return at ? found : -1;
}

static int say_object(Writer *writer, const Schema *schema, int level)
{
    const char *at = schema->at[PROPERTIES], *fields = at;
    Py_ssize_t count = 0;
    Piece name;
    if (!at || *at != '{' || at[1] == '}') {
        writer->exact &= !(schema->at[ADDITIONAL] && *schema->at[ADDITIONAL] == '{');
        return say_word(writer, "object");
    }
    for (; next_member(&at, &name); count++)
        if (!(at = skip_value(at)))
            return -1;
    if (!at)
        return -1;
    if (level >= 2 || count > SHOWN) {
        writer->exact = 0;
        return say_word(writer, "object");
    }
    for (at = fields, count = 0; next_member(&at, &name); count++) {
        int required = has_name(schema->at[REQUIRED], name);
        if (required < 0 || say_word(writer, count ? ", " : "{") < 0 || say(writer, name.start, name.size) < 0
            || say_word(writer, required ? ": " : "?: ") < 0 || say_type(writer, at, level + 1) < 0
            || !(at = skip_value(at)))
            return -1;
    }
    return say(writer, "}", 1);
}

/* A type by its name, which may be none. */
static int say_kind(Writer *writer, Piece kind, const Schema *schema, int level)
{
    if (is_key(kind, "array")) {
        const char *items = schema->at[ITEMS];
        if (!items || !strncmp(items, "null", 4))
            return say_word(writer, "list");
        return say_word(writer, "list[") < 0 || say_type(writer, items, level + 1) < 0 ? -1 : say(writer, "]", 1);
    }
    if (is_key(kind, "object") || (!kind.size && schema->at[PROPERTIES]))
        return say_object(writer, schema, level);
    if (!kind.size) {
        int more = 0;
        for (int which = 0; which < KINDS_OF_KEYWORDS; which++)
            more |= which != WORDY && schema->at[which];
        writer->exact &= !more;
        return say_word(writer, "any");
    }
    const char *name = type_name(kind, 0);
    writer->exact &= name != NULL;
    return say_word(writer, name ? name : "any");
}

static int say_type(Writer *writer, const char *at, int level)
{
    Schema schema;
    Piece kind = {0};
    if (*at != '{')
        return -1;
    if (level > LEVELS) {
        writer->exact = 0;
        return say_word(writer, "any");
    }
    if (!read_schema(at, &schema, writer->known))
        return -1;
    const char *type = schema.at[TYPE];
    writer->exact &= !schema.odd;
    if (type && *type == '"' && !read_string(type, &kind))
        return -1;
    if (schema.at[CONST])
        return say_literal(writer, schema.at[CONST]);
    if (schema.at[ENUM] && *schema.at[ENUM] == '[')
        return say_enum(writer, schema.at[ENUM]);
    for (int which = ANY_OF; which <= ONE_OF; which++)
        if (schema.at[which] && *schema.at[which] == '[')
            return say_options(writer, schema.at[which], level + 1);
    if (!type || *type != '[')
        return say_kind(writer, kind, &schema, level);
    for (int count = 0; has_next(&type, '[', ']'); count++)
        if (count == OPTIONS || !(type = read_string(type, &kind)) || (count && say(writer, "|", 1) < 0)
            || say_kind(writer, kind, &schema, level) < 0)
            return -1;
    return type ? 0 : -1;
}

typedef struct {
    Piece name;
    const char *at;    /* its schema */
    const char *plain; /* its type, if there is no more to say */
    int required;
} Parameter;

/* Reads parameters; how many, and where they end, or -1. */
static Py_ssize_t read_parameters(const char **at, Parameter *found, Writer *writer)
{
    Py_ssize_t used = 0;
    Piece name;
    while (next_member(at, &name)) {
        Schema schema;
        Piece kind = {0};
        Parameter *each = &found[used];
        if (used == PARAMETERS)
            return -1;
        *each = (Parameter){name, *at, NULL, 0};
        if (!(*at = read_schema(*at, &schema, writer->known)))
            return -1;
        if (schema.at[TYPE] && *schema.at[TYPE] == '"' && !read_string(schema.at[TYPE], &kind))
            return -1;
        if (kind.size && !schema.at[CONST] && !schema.at[ENUM] && !schema.at[ANY_OF] && !schema.at[ONE_OF]) {
            each->plain = type_name(kind, 1);
            writer->exact &= !schema.odd;
        }
        used++;
    }
    return *at ? used : -1;
}

/* Marks the parameters that are required; a list that is longer than theirs names one twice, and is not read. */
static int read_required(const char *at, Parameter *found, Py_ssize_t used)
{
    Piece name;
    if (*at != '[')
        return 0;
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

static int say_parameter(Writer *writer, const Parameter *each)
{
    if (say(writer, each->name.start, each->name.size) < 0 || say_word(writer, each->required ? ": " : "?: ") < 0)
        return -1;
    return each->plain ? say_word(writer, each->plain) : say_type(writer, each->at, 0);
}

/* Characters from here on. */
static Py_ssize_t chars_from(const Writer *writer, Py_ssize_t start)
{
    Py_ssize_t chars = 0;
    for (; start < writer->used; start++)
        chars += (writer->text[start] & 0xc0) != 0x80;
    return chars;
}

/* The parameters as a signature shows them: the required ones, and the others while they have room. */
static int say_parameters(Writer *writer, const Parameter *found, Py_ssize_t count, Py_ssize_t most)
{
    Py_ssize_t start = writer->used, said = 0, left = count;
    for (const Parameter *each = found; each < found + count; each++)
        if (each->required) {
            if ((said++ && say(writer, ", ", 2) < 0) || say_parameter(writer, each) < 0)
                return -1;
            left--;
        }
    most -= said ? chars_from(writer, start) + 2 : 0;
    for (const Parameter *each = found; each < found + count; each++) {
        Py_ssize_t before = writer->used;
        if (each->required)
            continue;
        if (said && say(writer, ", ", 2) < 0)
            return -1;
        start = writer->used;
        if (say_parameter(writer, each) < 0)
            return -1;
        most -= chars_from(writer, start) + 2;
        if (most < 0) {
            char rest[64];
            int size = PyOS_snprintf(rest, sizeof rest, "%s" ELLIPSIS " %zd more optional", said ? ", " : "", left);
            writer->used = before;
            writer->exact = 0;
            return say(writer, rest, size);
        }
        said++;
        left--;
    }
    return 0;
}

/* Writes the signature of arguments with this schema, under a name: 0, or -1 where the reference has to. */
static int say_signature(Writer *writer, PyObject *name, PyObject *schema, Py_ssize_t most)
{
    Parameter found[PARAMETERS];
    Py_ssize_t size, used = -1;
    const char *leaf = ascii_of(name, &size), *at = PyBytes_AS_STRING(schema), *required = NULL;
    const char *end = at + PyBytes_GET_SIZE(schema);
    Piece key;
    if (!leaf || say(writer, leaf, size) < 0 || say(writer, "(", 1) < 0 || *at != '{')
        return -1;
    while (next_member(&at, &key)) {
        int which = keyword(key);
        if (which == OTHER)
            writer->exact &= is_one_of(writer->known, key.start, (size_t)key.size);
        if (which == REQUIRED)
            required = at;
        if (which != PROPERTIES || *at != '{')
            at = skip_value(at);
        else if (used >= 0 || (used = read_parameters(&at, found, writer)) < 0) /* an encoder writes a key once */
            return -1;
        if (!at)
            return -1;
    }
    if (at != end)
        return -1;
    if (used >= 0 && ((required && read_required(required, found, used) < 0) || say_parameters(writer, found, used, most) < 0))
        return -1;
    return say(writer, ")", 1);
}

/* signature(name, schema, known, most) -> the signature of a schema, optional parameters while it has at most so many
   characters, and whether it tells everything; keywords that are not `known` say more. None where the reference has to
   write it. */
FAST(signature)
{
    if (count != 4 || !PyUnicode_Check(args[0]) || !PyBytes_CheckExact(args[1]))
        return PyErr_Format(PyExc_TypeError, "signature takes a name, a schema, a set of words and a bound");
    Writer writer;
    writer.used = 0;
    writer.exact = 1;
    writer.known = PyCapsule_GetPointer(args[2], WORDS);
    Py_ssize_t most = PyLong_AsSsize_t(args[3]);
    if (PyErr_Occurred())
        return NULL;
    if (say_signature(&writer, args[0], args[1], most) < 0)
        Py_RETURN_NONE;
    PyObject *text = PyUnicode_DecodeUTF8(writer.text, writer.used, NULL);
    return text ? Py_BuildValue("NO", text, writer.exact ? Py_True : Py_False) : NULL;
}

typedef struct {
    int kind;
    const void *data;
    Py_ssize_t start, end;
} Text;

static inline Py_UCS4 char_at(const Text *text, Py_ssize_t at) { return PyUnicode_READ(text->kind, text->data, at); }

static int is_among(Py_UCS4 c, const char *signs)
{
    for (; *signs; signs++)
        if (c == (unsigned char)*signs)
            return 1;
    return 0;
}

/* Whether what stands before a full stop is an abbreviation: what follows the last blank. */
static int is_abbreviated(const Text *text, Py_ssize_t stop)
{
    static const char *const KNOWN[] = {"e.g", "i.e", "etc", "vs", "cf", "approx"};
    for (size_t which = 0; which < sizeof KNOWN / sizeof *KNOWN; which++) {
        Py_ssize_t size = (Py_ssize_t)strlen(KNOWN[which]), start = stop - size, at = 0;
        if (start < text->start || (start > text->start && char_at(text, start - 1) != ' '))
            continue;
        for (; at < size; at++) {
            Py_UCS4 c = char_at(text, start + at);
            if ((c < 0x80 ? (Py_UCS4)lower_of((char)c) : c) != (unsigned char)KNOWN[which][at])
                break;
        }
        if (at == size)
            return 1;
    }
    return 0;
}

/* Writes the first sentence with one blank for any number of them; its length. No more of it is read than tells whether it
   has more characters than so many. `kind` is the text's, told apart by the compiler. */
static inline Py_ssize_t read_line(int kind, const Text *text, Py_UCS4 *line, Py_ssize_t most)
{
    Py_ssize_t size = 0;
    for (Py_ssize_t at = text->start; at < text->end; at++) {
        Py_UCS4 c = PyUnicode_READ(kind, text->data, at);
        if (Py_UNICODE_ISSPACE(c)) {
            if (c == '\n')
                break;
            if (size && line[size - 1] != ' ')
                line[size++] = ' ';
            continue;
        }
        if (c == '.' || c == '!' || c == '?') {
            if (at + 1 < text->end && Py_UNICODE_ISSPACE(PyUnicode_READ(kind, text->data, at + 1))
                && !is_abbreviated(text, at))
                break;
        }
        else if (size > most && c != ':' && c != ';' && c != ',') /* nothing before it is taken from the end */
            return size + 1;
        line[size++] = c;
    }
    size -= size && line[size - 1] == ' ';
    while (size && is_among(line[size - 1], ".!?:;,"))
        size--;
    return size;
}

/* The first sentence of a text, on one line of at most so many characters. */
static PyObject *first_sentence(PyObject *given, Py_ssize_t most)
{
    Text text = {PyUnicode_KIND(given), PyUnicode_DATA(given), 0, PyUnicode_GET_LENGTH(given)};
    Py_UCS4 line[SENTENCE + 1];
    while (text.start < text.end && Py_UNICODE_ISSPACE(char_at(&text, text.start)))
        text.start++;
    while (text.end > text.start && Py_UNICODE_ISSPACE(char_at(&text, text.end - 1)))
        text.end--;
    if (text.end - text.start > most * 8)
        text.end = text.start + most * 8;
    Py_ssize_t size = text.kind == PyUnicode_1BYTE_KIND ? read_line(PyUnicode_1BYTE_KIND, &text, line, most)
                                                        : read_line(text.kind, &text, line, most);
    if (size > most) {
        Py_ssize_t cut = most - 1, head = cut;
        if (line[cut] != ' ') {
            while (head && line[head - 1] != ' ')
                head--;
            head -= head > 0;
        }
        size = head > most / 2 ? head : cut;
        while (size && is_among(line[size - 1], " ,;:"))
            size--;
        line[size++] = 0x2026;
    }
    return PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, line, size);
}

/* Characters of a text as an encoder writes it; -1 for one that it does not write. */
static Py_ssize_t encoded_chars(PyObject *given)
{
    Text text = {PyUnicode_KIND(given), PyUnicode_DATA(given), 0, PyUnicode_GET_LENGTH(given)};
    Py_ssize_t chars = text.end + 2;
    /* Compared many at a time: most have nothing to be escaped. */
    if (text.kind == PyUnicode_1BYTE_KIND) {
        const Py_UCS1 *each = text.data;
        Py_UCS1 some = 0;
        for (Py_ssize_t at = 0; at < text.end; at++)
            some |= (Py_UCS1)((each[at] < ' ') | (each[at] == '"') | (each[at] == '\\'));
        if (!some)
            return chars;
    }
    else if (text.kind == PyUnicode_2BYTE_KIND) {
        const Py_UCS2 *each = text.data;
        Py_UCS2 some = 0;
        for (Py_ssize_t at = 0; at < text.end; at++)
            some |= (Py_UCS2)((each[at] < ' ') | (each[at] == '"') | (each[at] == '\\') | ((each[at] & 0xf800) == 0xd800));
        if (!some)
            return chars;
    }
    for (Py_ssize_t at = 0; at < text.end; at++) {
        Py_UCS4 c = char_at(&text, at);
        if (c >= 0xd800 && c <= 0xdfff)
            return -1;
        chars += c == '"' || c == '\\' || (c >= '\b' && c <= '\r' && c != '\v') ? 1 : c < ' ' ? 5 : 0;
    }
    return chars;
}

/* A name without case and separators, of ASCII. */
static PyObject *folded(const char *name, Py_ssize_t size)
{
    char letters[WORD_MAX];
    Py_ssize_t used = 0;
    for (Py_ssize_t at = 0; at < size; at++)
        if (is_wordly(name[at]))
            letters[used++] = lower_of(name[at]);
    return PyUnicode_FromStringAndSize(letters, used);
}

/* card(name, toolset, leaf, description, schema, known, signature_most, sentence_most) -> the entry of a tool, the
   characters of it in JSON, the leaf without case and separators, and whether the signature tells everything. None where
   the reference has to make it. */
FAST(card)
{
    static const char WRITTEN[] = "{\"name\":,\"source\":,\"description\":,\"signature\":,\"complete\":}";
    if (count != 8 || !PyUnicode_Check(args[0]) || !PyUnicode_Check(args[1]) || !PyUnicode_Check(args[3])
        || !PyBytes_CheckExact(args[4]))
        return PyErr_Format(PyExc_TypeError, "card takes four texts, a schema, a set of words and two bounds");
    Writer writer;
    writer.used = 0;
    writer.exact = 1;
    writer.known = PyCapsule_GetPointer(args[5], WORDS);
    Py_ssize_t most = PyLong_AsSsize_t(args[6]), line = PyLong_AsSsize_t(args[7]), size = 0, chars;
    const char *leaf = ascii_of(args[2], &size);
    if (PyErr_Occurred())
        return NULL;
    if (line < 1 || line > SENTENCE / 8)
        return PyErr_Format(PyExc_ValueError, "the bound of a sentence is another one");
    if (!leaf || size > WORD_MAX || say_signature(&writer, args[2], args[4], most) < 0)
        Py_RETURN_NONE;
    PyObject *complete = writer.exact ? Py_True : Py_False, *made = NULL;
    PyObject *sentence = first_sentence(args[3], line);
    PyObject *signed_as = sentence ? PyUnicode_DecodeUTF8(writer.text, writer.used, NULL) : NULL;
    PyObject *short_leaf = signed_as ? folded(leaf, size) : NULL, *entry = short_leaf ? PyDict_New() : NULL;
    PyObject *const values[] = {args[0], args[1], sentence, signed_as, complete};
    int failed = !entry;
    chars = (Py_ssize_t)sizeof WRITTEN - 1 + (writer.exact ? 4 : 5);
    for (int which = 0; !failed && which < 5; which++) {
        Py_ssize_t more = which < 4 ? encoded_chars(values[which]) : 0;
        chars = more < 0 || chars < 0 ? -1 : chars + more;
        failed = PyDict_SetItem(entry, KEYS[which], values[which]) < 0;
    }
    if (!failed)
        made = chars < 0 ? Py_NewRef(Py_None) : Py_BuildValue("OnOO", entry, chars, short_leaf, complete);
    Py_XDECREF(sentence);
    Py_XDECREF(signed_as);
    Py_XDECREF(short_leaf);
    Py_XDECREF(entry);
    return made;
}
