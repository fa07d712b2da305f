/* A yes or no of the person at the terminal, before something that cannot be undone. */
#pragma once

#include <stdbool.h>

/*
 * True where the verb may go on: --yes was given, or the person says so. Without a terminal and
 * without --yes nobody can be asked: that is said, and the answer is no. ret_status: the exit
 * status for a no.
 */
bool confirm(const char *question, bool is_given, int *ret_status);
