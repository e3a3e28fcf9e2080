/*
 * See log_splitter.h: a state machine that takes one byte at a time, so that it makes no difference how the stream was
 * cut into reads.
 */
#include "supervisor/log_splitter.h"

#include <stdio.h>
#include <string.h>

#define BEL    0x07
#define CANCEL 0x18
#define SUB    0x1a
#define ESCAPE 0x1b
#define DELETE 0x7f

static const char mark[] = "…";

static void put(struct log_splitter *splitter, const char *bytes, size_t size)
{
    if (splitter->cut) {
        return;
    }
    if (size > LOG_SPLITTER_LINE_MAX - splitter->size) {
        memcpy(splitter->line + splitter->marked, mark, sizeof mark - 1);
        splitter->size = splitter->marked + sizeof mark - 1;
        splitter->cut = true;
        return;
    }
    memcpy(splitter->line + splitter->size, bytes, size);
    splitter->size += size;
    if (splitter->size <= LOG_SPLITTER_LINE_MAX - (sizeof mark - 1)) {
        splitter->marked = splitter->size;
    }
}

static void spell(struct log_splitter *splitter, unsigned char byte)
{
    char spelled[5];

    put(splitter, spelled, (size_t)snprintf(spelled, sizeof spelled, "\\x%02x", byte));
}

/* What was begun will not become a character. */
static void spell_begun(struct log_splitter *splitter)
{
    for (size_t i = 0; i < splitter->begun_size; i++) {
        spell(splitter, splitter->begun[i]);
    }
    splitter->begun_size = 0;
}

/* U+0080 to U+009F, by its low byte: the 8-bit forms of ESC and a letter. */
static void take_c1(struct log_splitter *splitter, unsigned char low)
{
    switch (low) {
    case 0x9b: splitter->state = LOG_SPLITTER_CONTROL; break;
    case 0x90: /* DCS */
    case 0x98: /* SOS */
    case 0x9d: /* OSC */
    case 0x9e: /* PM */
    case 0x9f: /* APC */ splitter->state = LOG_SPLITTER_STRING; break;
    default: break;
    }
}

static void take_character(struct log_splitter *splitter, const unsigned char *bytes, size_t size)
{
    if (size == 2 && bytes[0] == 0xc2 && bytes[1] < 0xa0) {
        take_c1(splitter, bytes[1]);
    } else if (bytes[0] == ESCAPE) {
        splitter->state = LOG_SPLITTER_ESCAPE;
    } else if (bytes[0] == '\t') {
        put(splitter, " ", 1);
    } else if (bytes[0] >= ' ' && bytes[0] != DELETE) {
        put(splitter, (const char *)bytes, size);
    }
}

static void take_text(struct log_splitter *splitter, unsigned char byte)
{
    const char *begun = (const char *)splitter->begun;
    size_t length;

    splitter->begun[splitter->begun_size++] = byte;
    if (utf8_is_unfinished(begun, splitter->begun_size)) {
        return;
    }
    length = utf8_length(begun, splitter->begun_size);
    if (length == 0 && splitter->begun_size > 1) {
        splitter->begun_size--; /* the last one may begin another character */
        spell_begun(splitter);
        take_text(splitter, byte);
    } else if (length == 0) {
        spell_begun(splitter);
    } else {
        splitter->begun_size = 0;
        take_character(splitter, splitter->begun, length);
    }
}

/* True where the byte belongs to no sequence and is to be looked at as text. */
static bool take_escape(struct log_splitter *splitter, unsigned char byte)
{
    if (byte == ESCAPE || (byte >= 0x20 && byte <= 0x2f)) {
        return false; /* begins anew; or comes between ESC and its end */
    }
    splitter->state = LOG_SPLITTER_TEXT;
    if (byte == '[') {
        splitter->state = LOG_SPLITTER_CONTROL;
    } else if (byte != '\0' && strchr("]PX^_", byte) != NULL) {
        splitter->state = LOG_SPLITTER_STRING;
    }
    return byte < 0x20 || byte >= DELETE;
}

/* Likewise. Parameters, then one byte that ends it. */
static bool take_control(struct log_splitter *splitter, unsigned char byte)
{
    if (byte == ESCAPE) {
        splitter->state = LOG_SPLITTER_ESCAPE;
    } else if (byte >= 0x40 || byte == CANCEL || byte == SUB) {
        splitter->state = byte == DELETE ? LOG_SPLITTER_CONTROL : LOG_SPLITTER_TEXT;
    }
    return byte > DELETE;
}

static void take_string(struct log_splitter *splitter, unsigned char byte)
{
    bool ends = splitter->state == LOG_SPLITTER_STRING_C1 && byte == 0x9c;

    if (ends || byte == BEL || byte == CANCEL || byte == SUB) {
        splitter->state = LOG_SPLITTER_TEXT;
    } else {
        splitter->state = byte == ESCAPE ? LOG_SPLITTER_STRING_ENDS
                          : byte == 0xc2 ? LOG_SPLITTER_STRING_C1
                                         : LOG_SPLITTER_STRING;
    }
}

static void take_byte(struct log_splitter *splitter, unsigned char byte)
{
    bool text = false;

    switch (splitter->state) {
    case LOG_SPLITTER_TEXT: text = true; break;
    case LOG_SPLITTER_ESCAPE: text = take_escape(splitter, byte); break;
    case LOG_SPLITTER_CONTROL: text = take_control(splitter, byte); break;
    case LOG_SPLITTER_STRING:
    case LOG_SPLITTER_STRING_C1: take_string(splitter, byte); break;
    case LOG_SPLITTER_STRING_ENDS:
        splitter->state = LOG_SPLITTER_ESCAPE;
        text = byte != '\\' && take_escape(splitter, byte); /* anything but the string's end is a new sequence */
        if (byte == '\\') {
            splitter->state = LOG_SPLITTER_TEXT;
        }
        break;
    }
    if (text) {
        take_text(splitter, byte);
    }
}

void log_splitter_end(struct log_splitter *splitter, log_splitter_take *take, void *argument)
{
    spell_begun(splitter);
    splitter->line[splitter->size] = '\0';
    if (splitter->size > 0) {
        take(argument, splitter->line, splitter->size);
    }
    splitter->state = LOG_SPLITTER_TEXT;
    splitter->size = 0;
    splitter->marked = 0;
    splitter->cut = false;
}

void log_splitter_feed(struct log_splitter *splitter, const char *bytes, size_t size, log_splitter_take *take,
                       void *argument)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '\n') {
            log_splitter_end(splitter, take, argument);
        } else {
            take_byte(splitter, (unsigned char)bytes[i]);
        }
    }
}
