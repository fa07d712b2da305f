#include "cli/confirm.h"

#include "cli/options.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

/* The first line that the person types; longer ones are no. */
static bool read_yes(void)
{
	char line[16];
	size_t length = 0;

	for (;;) {
		char byte;
		ssize_t count = read(STDIN_FILENO, &byte, 1);

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return false;
		if (byte == '\n')
			break;
		if (length < sizeof(line) - 1)
			line[length++] = byte;
	}
	line[length] = '\0';
	return strcasecmp(line, "y") == 0 || strcasecmp(line, "yes") == 0;
}

bool confirm(const char *question, bool is_given, int *ret_status)
{
	if (is_given)
		return true;
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
		complain("there is no terminal to ask at; --yes says that it is meant");
		*ret_status = 2;
		return false;
	}
	(void)fprintf(stderr, "%s [y/N] ", question);
	(void)fflush(stderr);
	if (read_yes())
		return true;
	complain("nothing was done");
	*ret_status = 1;
	return false;
}
