/*
 * Expat hands over tags and runs of text; here they become elements. Texts are kept for the open elements of a small
 * number of levels only: what lies deeper isn't S3's.
 */
#include "common/s3_xml.h"

#include <expat.h>
#include <limits.h>
#include <string.h>

#include "common/byte_buffer.h"

#define DEPTH_MAX 8

struct reading {
    XML_Parser parser;
    s3_xml_element *element;
    void *argument;
    struct byte_buffer path;
    size_t lengths[DEPTH_MAX]; /* of the path before each open element */
    struct byte_buffer texts[DEPTH_MAX];
    size_t depth; /* of open elements, those too deep to keep among them */
};

static void XMLCALL start_element(void *user, const XML_Char *name, const XML_Char **attributes)
{
    struct reading *reading = user;
    size_t depth = reading->depth++;

    (void)attributes;
    if (depth >= DEPTH_MAX) {
        return;
    }
    reading->lengths[depth] = reading->path.size;
    byte_buffer_add_format(&reading->path, "%s%s", depth > 0 ? "/" : "", name);
    byte_buffer_clear(&reading->texts[depth]);
}

static void XMLCALL add_text(void *user, const XML_Char *text, int size)
{
    struct reading *reading = user;

    if (reading->depth > 0 && reading->depth <= DEPTH_MAX) {
        byte_buffer_add(&reading->texts[reading->depth - 1], text, (size_t)size);
    }
}

static void XMLCALL end_element(void *user, const XML_Char *name)
{
    struct reading *reading = user;
    size_t depth = --reading->depth;

    (void)name;
    if (depth >= DEPTH_MAX) {
        return;
    }
    struct byte_buffer *text = &reading->texts[depth];
    byte_buffer_add(text, "", 0);
    reading->element(reading->argument, reading->path.bytes, text->bytes, text->size);
    reading->path.size = reading->lengths[depth];
    byte_buffer_add(&reading->path, "", 0);
}

static void XMLCALL refuse_document_type(void *user, const XML_Char *name, const XML_Char *system_id,
                                         const XML_Char *public_id, int has_internal_subset)
{
    const struct reading *reading = user;

    (void)name;
    (void)system_id;
    (void)public_id;
    (void)has_internal_subset;
    XML_StopParser(reading->parser, XML_FALSE);
}

bool s3_xml_read(const char *bytes, size_t size, s3_xml_element *element, void *argument)
{
    while (size > 0 && strchr(" \t\r\n", *bytes) != NULL && *bytes != '\0') {
        bytes++;
        size--;
    }
    struct reading reading = {.element = element, .argument = argument};
    reading.parser = XML_ParserCreate(NULL);
    if (size > INT_MAX || reading.parser == NULL) {
        XML_ParserFree(reading.parser);
        return false;
    }
    XML_SetUserData(reading.parser, &reading);
    XML_SetElementHandler(reading.parser, start_element, end_element);
    XML_SetCharacterDataHandler(reading.parser, add_text);
    XML_SetStartDoctypeDeclHandler(reading.parser, refuse_document_type);
    bool whole = XML_Parse(reading.parser, bytes, (int)size, XML_TRUE) == XML_STATUS_OK;
    XML_ParserFree(reading.parser);
    byte_buffer_free(&reading.path);
    for (size_t i = 0; i < DEPTH_MAX; i++) {
        byte_buffer_free(&reading.texts[i]);
    }
    return whole;
}

void s3_xml_add_text(struct byte_buffer *out, const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        switch (*at) {
        case '&': byte_buffer_add_text(out, "&amp;"); break;
        case '<': byte_buffer_add_text(out, "&lt;"); break;
        case '>': byte_buffer_add_text(out, "&gt;"); break;
        case '"': byte_buffer_add_text(out, "&quot;"); break;
        default: byte_buffer_add(out, at, 1);
        }
    }
}
