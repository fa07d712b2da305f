#include "ipc/parse.h"

#include "base/arena.h"
#include "base/error.h"
#include "ipc/message.h"
#include "ipc/role.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The role takes about 1 ms; on a machine that swaps it may take a thousand times that. */
#define ANSWER_TIMEOUT_MS 10000
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static int bad_answer(struct role *role, const char *what, struct error *error)
{
	int status;

	/* it has ended already, or must not go on */
	(void)kill(role->pid, SIGKILL);
	status = role_wait(role);
	if (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status))
		return error_set(error, EBADMSG, "bawn-parse failed in its step %d",
				 WEXITSTATUS(status));
	return error_set(error, EBADMSG, "bawn-parse gave no good answer: %s", what);
}

/* The memfd that came: sealed and small. */
static int read_result(int fd, size_t limit_bytes, struct arena *arena, char **ret_bytes,
		       size_t *ret_length)
{
	struct stat status;
	char *bytes;

	if ((fcntl(fd, F_GET_SEALS) & SEALS) != SEALS || fstat(fd, &status) < 0 ||
	    status.st_size > (off_t)limit_bytes)
		return -EBADMSG;
	bytes = arena_allocate(arena, (size_t)status.st_size + 1);
	if (!bytes)
		return -ENOMEM;
	if (pread(fd, bytes, (size_t)status.st_size, 0) != status.st_size)
		return -EBADMSG;
	*ret_bytes = bytes;
	*ret_length = (size_t)status.st_size;
	return 0;
}

int parse_ask(int config_fd, uint32_t type, size_t limit_bytes, struct arena *arena,
	      char **ret_bytes, size_t *ret_length, struct error *error)
{
	struct role CLEANUP_ROLE role = ROLE_NONE;
	struct pollfd answer = { .events = POLLIN };
	struct message message;
	int result = role_spawn(EDGE_SUPERVISOR_PARSE, config_fd, NULL, 0, &role, error);

	if (result < 0)
		return result;
	answer.fd = role.channel;
	do
		result = poll(&answer, 1, ANSWER_TIMEOUT_MS);
	while (result < 0 && errno == EINTR);
	if (result <= 0)
		return bad_answer(&role, "time is up", error);
	result = message_receive(role.channel, &message);
	if (result < 0)
		return bad_answer(&role, error_text(result), error);
	result = message.type == type && message.length == 0 && message.fd_count == 1 ?
			 read_result(message.fds[0], limit_bytes, arena, ret_bytes, ret_length) :
			 -EBADMSG;
	message_close_fds(&message);
	return result < 0 ? bad_answer(&role, error_text(result), error) : 0;
}
