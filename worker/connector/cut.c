/* See cut.h. */
#include "worker/connector/cut.h"

#include <assert.h>
#include <string.h>

void cut_begin(struct cut *cut, bool noted)
{
    *cut = (struct cut){.state = CUT_RESOLVING, .noted = noted, .committed = CUT_NO_OFFSET};
}

/* Reading begins at `next`, with the file that starts at the committed offset. */
static enum cut_action read_on(struct cut *cut)
{
    cut->state = CUT_READING;
    return CUT_READ;
}

static enum cut_action position_at(struct cut *cut, int64_t offset)
{
    cut->state = CUT_POSITIONING;
    cut->rebuilding = false;
    cut->start = offset;
    cut->next = offset;
    return CUT_COMMIT_POSITION;
}

static enum cut_action rebuild(struct cut *cut, const struct cut_found *found)
{
    cut->rebuilding = true;
    cut->start = found->committed;
    cut->next = found->committed;
    cut->rebuild_next = found->note_next;
    return read_on(cut);
}

bool cut_ends_early(const struct cut_found *found)
{
    return found->committed != CUT_NO_OFFSET &&
           (found->committed > found->high || (found->has_note && found->note_next > found->high));
}

static enum cut_finding look_at(const struct cut_found *found)
{
    if (found->committed == CUT_NO_OFFSET) {
        return CUT_FOUND_FIRST;
    }
    if (cut_ends_early(found)) {
        return CUT_FOUND_NEW_LOG;
    }
    if (found->committed < found->low) {
        return found->has_note && found->note_next > found->low ? CUT_FOUND_TORN_FILE : CUT_FOUND_GAP;
    }
    return found->has_note ? CUT_FOUND_FILE : CUT_FOUND_POSITION;
}

enum cut_action cut_resolved(struct cut *cut, const struct cut_found *found, enum cut_finding *finding)
{
    assert(cut->state == CUT_RESOLVING);
    cut->committed = found->committed;
    *finding = look_at(found);
    switch (*finding) {
    case CUT_FOUND_FIRST: return position_at(cut, found->reset_to_end ? found->high : found->low);
    case CUT_FOUND_GAP:
    case CUT_FOUND_NEW_LOG: return position_at(cut, found->low);
    case CUT_FOUND_FILE: return rebuild(cut, found);
    case CUT_FOUND_TORN_FILE:
        (void)rebuild(cut, found);
        cut->next = found->low;
        cut->state = CUT_ASKING;
        return CUT_ASK_OBJECT;
    case CUT_FOUND_POSITION: break;
    }
    cut->start = found->committed;
    cut->next = found->committed;
    return read_on(cut);
}

enum cut_action cut_object(struct cut *cut, enum cut_object object)
{
    assert(cut->state == CUT_ASKING);
    switch (object) {
    case CUT_OBJECT_UP: return position_at(cut, cut->rebuild_next);
    case CUT_OBJECT_UNKNOWN: return position_at(cut, cut->next);
    case CUT_OBJECT_ABSENT: break;
    }
    return read_on(cut);
}

enum cut_action cut_again(const struct cut *cut)
{
    switch (cut->state) {
    case CUT_RESOLVING:
    case CUT_GONE: return CUT_NOTHING;
    case CUT_ASKING: return CUT_ASK_OBJECT;
    case CUT_POSITIONING: return CUT_COMMIT_POSITION;
    case CUT_READING: break;
    }
    switch (cut->flight) {
    case CUT_GROUNDED: break;
    case CUT_FIXING: return CUT_COMMIT_NOTE;
    case CUT_UPLOADING: return CUT_UPLOAD;
    case CUT_ADVANCING: return CUT_COMMIT_END;
    }
    return CUT_NOTHING;
}

enum cut_action cut_committed(struct cut *cut)
{
    if (cut->state == CUT_POSITIONING) {
        cut->committed = cut->start;
        return read_on(cut);
    }
    assert(cut->state == CUT_READING);
    if (cut->flight == CUT_FIXING) {
        cut->flight = CUT_UPLOADING;
        return CUT_UPLOAD;
    }
    assert(cut->flight == CUT_ADVANCING);
    cut->flight = CUT_GROUNDED;
    cut->committed = cut->flight_next;
    return CUT_NOTHING;
}

enum cut_action cut_uploaded(struct cut *cut)
{
    assert(cut->state == CUT_READING && cut->flight == CUT_UPLOADING);
    cut->flight = CUT_ADVANCING;
    return CUT_COMMIT_END;
}

enum cut_verdict cut_offer(const struct cut *cut, int64_t offset)
{
    assert(cut->state == CUT_READING);
    if (offset < cut->next) {
        return CUT_REPEAT;
    }
    return cut->rebuilding && offset >= cut->rebuild_next ? CUT_CLOSE_FIRST : CUT_TAKE;
}

bool cut_took(struct cut *cut, int64_t offset)
{
    assert(cut_offer(cut, offset) == CUT_TAKE);
    cut->next = offset + 1;
    return cut->rebuilding && cut->next == cut->rebuild_next;
}

bool cut_reached(struct cut *cut, int64_t offset)
{
    assert(cut->state == CUT_READING);
    return cut->rebuilding && offset >= cut->rebuild_next;
}

bool cut_can_close(const struct cut *cut)
{
    return cut->state == CUT_READING && cut->flight == CUT_GROUNDED;
}

/* The offset that the group has is the start of the file: nothing else is ever committed while one is being filled. */
enum cut_action cut_close(struct cut *cut, bool empty)
{
    bool fixed = cut->rebuilding;

    assert(cut_can_close(cut) && cut->committed == cut->start);
    if (cut->rebuilding) {
        cut->next = cut->rebuild_next;
    }
    assert(cut->next > cut->start);
    cut->flight_start = cut->start;
    cut->flight_next = cut->next;
    cut->start = cut->next;
    cut->rebuilding = false;
    cut->flight = empty ? CUT_ADVANCING : fixed || !cut->noted ? CUT_UPLOADING : CUT_FIXING;
    return cut_again(cut);
}

void cut_leave(struct cut *cut)
{
    cut->state = CUT_GONE;
    cut->flight = CUT_GROUNDED;
}
