/*
 * The commands that have a file of their own in this folder. Each is a program that runs to its end and frees what it
 * held: none of it is called by the running pool.
 */
#ifndef SUPERVISOR_COMMANDS_COMMANDS_H
#define SUPERVISOR_COMMANDS_COMMANDS_H

#include "supervisor/command.h"

extern const struct command command_run;
extern const struct command command_check;
extern const struct command command_status;
extern const struct command command_windows;
extern const struct command command_cat;
extern const struct command command_verify;
extern const struct command command_ddl;
extern const struct command command_connect;
extern const struct command command_policy;
extern const struct command command_recover;

#endif
