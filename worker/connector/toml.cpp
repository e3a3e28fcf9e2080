/*
 * See toml.h. toml++ is used as a header and reports what is wrong in its result, so that it doesn't throw; what the
 * standard library throws (memory) is caught at the door.
 */
#include "worker/connector/toml.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <sstream>
#include <string>
#include <string_view>

#undef TOML_HEADER_ONLY
#undef TOML_SHARED_LIB
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS  0
/* What it would abort for is input that it then finds wrong by itself. */
#define TOML_ASSERT(condition) static_cast<void>(0)
#include <toml++/toml.h>

namespace {

struct too_deep {};

void *allocate(size_t count, size_t size)
{
    void *memory = std::calloc(count > 0 ? count : 1, size);
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    return memory;
}

void set_text(char **text, size_t *size, std::string_view from)
{
    *text = static_cast<char *>(allocate(from.size() + 1, 1));
    std::memcpy(*text, from.data(), from.size());
    *size = from.size();
}

template <typename Time> void set_time(struct toml_value *value, const Time &time)
{
    std::ostringstream text;
    text << time;
    value->type = TOML_TIME;
    set_text(&value->text, &value->text_size, text.str());
}

void convert(struct toml_value *value, const toml::node &node, int depth);

void convert_table(struct toml_value *value, const toml::table &table, int depth)
{
    value->type = TOML_TABLE;
    value->items = static_cast<struct toml_value *>(allocate(table.size(), sizeof *value->items));
    for (auto &&[key, node] : table) {
        struct toml_value *item = &value->items[value->count++];
        set_text(&item->key, &item->key_size, key.str());
        convert(item, node, depth + 1);
        if (key.source().begin.line > 0) {
            item->line = key.source().begin.line;
        }
    }
}

void convert_array(struct toml_value *value, const toml::array &array, int depth)
{
    value->type = TOML_ARRAY;
    value->items = static_cast<struct toml_value *>(allocate(array.size(), sizeof *value->items));
    for (const toml::node &node : array) {
        convert(&value->items[value->count++], node, depth + 1);
    }
}

void convert(struct toml_value *value, const toml::node &node, int depth)
{
    if (depth > TOML_DEPTH_MAX) {
        throw too_deep();
    }
    value->line = node.source().begin.line;
    if (const auto *table = node.as_table()) {
        convert_table(value, *table, depth);
    } else if (const auto *array = node.as_array()) {
        convert_array(value, *array, depth);
    } else if (const auto *text = node.as_string()) {
        value->type = TOML_STRING;
        set_text(&value->text, &value->text_size, text->get());
    } else if (const auto *integer = node.as_integer()) {
        value->type = TOML_INTEGER;
        value->integer = integer->get();
    } else if (const auto *number = node.as_floating_point()) {
        value->type = TOML_FLOAT;
        value->number = number->get();
    } else if (const auto *boolean = node.as_boolean()) {
        value->type = TOML_BOOLEAN;
        value->boolean = boolean->get();
    } else if (const auto *date = node.as_date()) {
        set_time(value, date->get());
    } else if (const auto *time = node.as_time()) {
        set_time(value, time->get());
    } else if (const auto *date_time = node.as_date_time()) {
        set_time(value, date_time->get());
    }
}

/* Behind the string that begins at `at`: all four kinds. A string that never ends is the parser's to refuse. */
size_t skip_string(std::string_view document, size_t at)
{
    char quote = document[at];
    bool long_form = at + 2 < document.size() && document[at + 1] == quote && document[at + 2] == quote;
    size_t closing = long_form ? 3 : 1;
    size_t run = 0;

    for (at += closing; at < document.size(); at++) {
        if (document[at] == '\\' && quote == '"') {
            at++;
            run = 0;
        } else if (document[at] != quote) {
            if (document[at] == '\n' && !long_form) {
                return at;
            }
            run = 0;
        } else if (++run == closing) {
            return at + 1;
        }
    }
    return document.size();
}

/* Behind the comment, string or byte that stands at `at`. */
size_t skip_token(std::string_view document, size_t at)
{
    if (document[at] == '"' || document[at] == '\'') {
        return skip_string(document, at);
    }
    if (document[at] == '#') {
        size_t end = document.find('\n', at);
        return end == std::string_view::npos ? document.size() : end;
    }
    return at + 1;
}

bool refuse(std::string_view document, size_t at, const char *what, struct error *error)
{
    unsigned line = 1;
    unsigned column = 1;

    for (size_t i = 0; i < at; i++) {
        bool ends = document[i] == '\n';
        line += ends;
        column = ends ? 1 : column + 1;
    }
    (void)error_set(error, QS_ERROR_INPUT, "line %u, column %u: %s", line, column, what);
    return false;
}

/* What toml++ itself would stumble over. It bounds how deep arrays and inline tables go, but not the parts of a dotted
 * key, each of which is a table in a table: enough of them end the process when they are torn down. And letters beyond
 * ASCII outside of strings, which no key may have, take its tables where they say nothing can be (3.3). */
bool check_tokens(std::string_view document, struct error *error)
{
    size_t at = document.substr(0, 3) == "\xef\xbb\xbf" ? 3 : 0;
    int dots = 0;

    while (at < document.size()) {
        char byte = document[at];
        if (static_cast<unsigned char>(byte) >= 0x80) {
            return refuse(document, at, "a character that is only allowed in strings and comments", error);
        }
        dots = std::strchr("\n=,{}[]", byte) != nullptr ? 0 : dots + (byte == '.');
        if (dots >= TOML_DEPTH_MAX) {
            return refuse(document, at, "a key of too many parts", error);
        }
        at = skip_token(document, at);
    }
    return true;
}

struct toml_value *parse(std::string_view document, struct error *error)
{
    toml::parse_result result = toml::parse(document);

    if (!result) {
        std::string what(result.error().description());
        (void)error_set(error, QS_ERROR_INPUT, "line %u, column %u: %s", result.error().source().begin.line,
                        result.error().source().begin.column, what.c_str());
        return nullptr;
    }
    auto *root = static_cast<struct toml_value *>(allocate(1, sizeof(struct toml_value)));
    try {
        convert(root, result.table(), 0);
    } catch (...) {
        toml_free(root);
        throw;
    }
    return root;
}

void free_inside(struct toml_value *value)
{
    for (size_t i = 0; i < value->count; i++) {
        free_inside(&value->items[i]);
    }
    std::free(value->items);
    std::free(value->key);
    std::free(value->text);
}

} // namespace

struct toml_value *toml_parse(const char *bytes, size_t size, struct error *error)
{
    std::string_view document(size > 0 ? bytes : "", size);

    if (size > TOML_SIZE_MAX) {
        (void)error_set(error, QS_ERROR_INPUT, "%zu bytes, expected at most %u", size, TOML_SIZE_MAX);
        return nullptr;
    }
    try {
        return check_tokens(document, error) ? parse(document, error) : nullptr;
    } catch (const too_deep &) {
        (void)error_set(error, QS_ERROR_INPUT, "values in values, expected no more than %d deep", TOML_DEPTH_MAX);
    } catch (...) {
        (void)error_set(error, QS_ERROR_NO_MEMORY, "out of memory");
    }
    return nullptr;
}

void toml_free(struct toml_value *document)
{
    if (document != nullptr) {
        free_inside(document);
        std::free(document);
    }
}

const struct toml_value *toml_find(const struct toml_value *table, const char *key)
{
    size_t size = std::strlen(key);

    for (size_t i = 0; i < table->count && table->type == TOML_TABLE; i++) {
        if (table->items[i].key_size == size && std::memcmp(table->items[i].key, key, size) == 0) {
            return &table->items[i];
        }
    }
    return nullptr;
}

const char *toml_type_name(enum toml_type type)
{
    switch (type) {
    case TOML_TABLE: return "a table";
    case TOML_ARRAY: return "an array";
    case TOML_STRING: return "a string";
    case TOML_INTEGER: return "an integer";
    case TOML_FLOAT: return "a number";
    case TOML_BOOLEAN: return "true or false";
    case TOML_TIME: return "a date or time";
    }
    return "?";
}
