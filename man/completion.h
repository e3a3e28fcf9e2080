/* What a shell offers behind `queen-s3 <TAB>`, from the table of commands. */
#ifndef MAN_COMPLETION_H
#define MAN_COMPLETION_H

#include <stdio.h>

void completion_bash(FILE *out);
void completion_zsh(FILE *out);

#endif
