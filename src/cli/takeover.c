#include "cli/takeover.h"

#include "base/error.h"
#include "broker/client.h"
#include "broker/ending.h"
#include "cli/options.h"

#include <errno.h>
#include <stdio.h>

int takeover_open(const char *state_path, const char *word, struct arena *arena,
		  struct client *ret_client, const char **ret_id)
{
	struct error error = ERROR_NONE;
	int result = client_open(state_path, arena, ret_client, &error);

	if (result == 0)
		result = client_find(ret_client, word, arena, ret_id, &error);
	if (result == 0)
		return 0;
	complain(error.message);
	return result == -ENOENT || result == -EEXIST || result == -EPERM ? 1 : 125;
}

static void tell(void *context, const char *id, const char *message)
{
	char text[ERROR_MESSAGE_BYTES + 64];

	(void)context;
	(void)snprintf(text, sizeof(text), "%s: %s", id, message ? message : "");
	if (message)
		complain(text);
	else
		printf("%s has ended\n", id);
}

int takeover_end(const struct client *client, const char *const *ids, size_t count,
		 struct ending_options *options)
{
	struct error error = ERROR_NONE;
	int left;

	options->told = tell;
	left = ending_run(client, ids, count, options, &error);
	(void)fflush(stdout);
	if (left < 0)
		complain(error.message);
	return left < 0 ? 125 : left > 0;
}
