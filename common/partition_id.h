/*
 * A partition's id in the text form of RFC 9562, 8-4-4-4-12 hexadecimal digits, as the broker and a checkpoint spell it.
 */
#ifndef COMMON_PARTITION_ID_H
#define COMMON_PARTITION_ID_H

#include <stdbool.h>

#include "common/queen_api.h"

#define PARTITION_ID_TEXT_SIZE 36

/* False for any other text: *id is then anything. Case is ignored. */
bool partition_id_read(struct name text, struct partition_id *id);

/* PARTITION_ID_TEXT_SIZE bytes in lower case, no NUL; the byte behind them. */
char *partition_id_write(char *out, const struct partition_id *id);

#endif
