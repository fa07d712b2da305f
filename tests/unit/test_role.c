/*
 * The edge supervisor-parse: what a role holds while it works, that nobody else holds it, and what
 * a role that is not as it should be leads to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "home.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "base/error.h"
#include "base/fd.h"
#include "ipc/message.h"
#include "ipc/parse.h"
#include "ipc/role.h"
#include "workspace/identity.h"

/* Attempts to stop the role between its jail and its end. */
#define ATTEMPTS 300

static int program(void)
{
	char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 32);
	int fd;

	assert_true(length > 0);
	path[length] = '\0';
	strcpy(strrchr(path, '/'), "/../../bawn-parse");
	fd = open(path, O_PATH | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static struct role start(int config_fd)
{
	struct role role = ROLE_NONE;
	struct error error = ERROR_NONE;
	int program_fd = program();

	if (role_start(program_fd, EDGE_SUPERVISOR_PARSE, config_fd, NULL, 0, &role, &error) != 0)
		fail_msg("%s", error.message);
	close(program_fd);
	return role;
}

/* A number in /proc/<pid>/status, -1 where there is no such line. */
static long long status_of(pid_t pid, const char *name, int base)
{
	char path[64], line[256];
	long long value = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
			value = strtoll(line + strlen(name) + 1, NULL, base);
	fclose(file);
	return value;
}

/* The order to read a git configuration, with its text. */
static int identity_config(const char *text, size_t length)
{
	static const struct parse_order order = { PARSE_IDENTITY };
	char *bytes = malloc(sizeof(order) + length);
	int fd;

	memcpy(bytes, &order, sizeof(order));
	memcpy(bytes + sizeof(order), text, length);
	fd = role_config(bytes, sizeof(order) + length);
	free(bytes);
	assert_true(fd >= 0);
	return fd;
}

/* A text that keeps the role busy for milliseconds. */
static int busy_config(void)
{
	char *text = malloc(IDENTITY_LIMIT_BYTES);
	int fd;

	memset(text, ' ', IDENTITY_LIMIT_BYTES);
	memcpy(text, "[advice]\n", 9);
	for (size_t i = 9; i + 3 <= IDENTITY_LIMIT_BYTES; i += 3)
		memcpy(text + i, "a=\n", 3);
	fd = identity_config(text, IDENTITY_LIMIT_BYTES);
	free(text);
	return fd;
}

/* Starts roles until one was stopped at work behind its filter. */
static struct role start_and_stop(int config_fd)
{
	struct role role = ROLE_NONE;

	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		role = start(config_fd);
		for (;;) {
			siginfo_t info = { 0 };

			assert_int_equal(kill(role.pid, SIGSTOP), 0);
			assert_int_equal(
				waitid(P_PID, (id_t)role.pid, &info, WSTOPPED | WEXITED | WNOWAIT),
				0);
			if (info.si_code != CLD_STOPPED)
				break;
			if (status_of(role.pid, "Seccomp", 10) == 2)
				return role;
			(void)waitid(P_PID, (id_t)role.pid, &info, WSTOPPED);
			assert_int_equal(kill(role.pid, SIGCONT), 0);
		}
		role_end(&role);
	}
	fail_msg("no role was seen at work in %d attempts", ATTEMPTS);
	return role;
}

static void read_fd(pid_t pid, const char *fd, char text[static 256])
{
	char path[300];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, fd);
	length = readlink(path, text, 255);
	text[length < 0 ? 0 : length] = '\0';
}

/* How many descriptors of a process are this object. */
static unsigned holds(pid_t pid, const char *object)
{
	char path[64], text[256];
	struct dirent *entry;
	unsigned count = 0;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	directory = opendir(path);
	while (directory && (entry = readdir(directory))) {
		read_fd(pid, entry->d_name, text);
		count += strcmp(text, object) == 0;
	}
	if (directory)
		closedir(directory);
	return count;
}

static void assert_held_by(const char *object, pid_t owner)
{
	DIR *processes = opendir("/proc");
	struct dirent *entry;

	assert_non_null(processes);
	while ((entry = readdir(processes))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && holds(pid, object) != (pid == owner))
			fail_msg("%s: process %d has %u of it", object, (int)pid,
				 holds(pid, object));
	}
	closedir(processes);
}

static void assert_descriptors(const struct role *role)
{
	static const char *const expected[] = { "/dev/null", "/dev/null", "/dev/null",
						"/memfd:bawn-config", "socket:" };
	char path[64], text[256], number[16];
	struct dirent *entry;
	unsigned count = 0;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)role->pid);
	directory = opendir(path);
	if (!directory && geteuid() != 0) {
		/* it is not dumpable: even its own user cannot look */
		assert_int_equal(errno, EACCES);
		return;
	}
	assert_non_null(directory);
	while ((entry = readdir(directory)))
		count += entry->d_name[0] != '.';
	closedir(directory);
	assert_int_equal(count, 5);
	for (unsigned i = 0; i < 5; i++) {
		snprintf(number, sizeof(number), "%u", i);
		read_fd(role->pid, number, text);
		if (strncmp(text, expected[i], strlen(expected[i])) != 0)
			fail_msg("descriptor %u is %s", i, text);
	}
	assert_held_by(text, role->pid);
	snprintf(number, sizeof(number), "%d", role->channel);
	read_fd(getpid(), number, text);
	assert_held_by(text, getpid());
}

static void role_holds_its_edge_alone(void **state)
{
	/* descriptors of the supervisor that are not close-on-exec must not get through either */
	int stray = open("/etc/passwd", O_RDONLY), config_fd = busy_config();
	struct role role;

	(void)state;
	assert_true(stray >= 0);
	assert_int_equal(dup2(stray, 200), 200);
	setenv("BAWN_SECRET", "x", 1);
	role = start_and_stop(config_fd);
	assert_int_equal(status_of(role.pid, "NoNewPrivs", 10), 1);
	assert_int_equal(status_of(role.pid, "CapEff", 16), 0);
	assert_int_equal(status_of(role.pid, "CapPrm", 16), 0);
	assert_int_equal(status_of(role.pid, "CapInh", 16), 0);
	assert_int_equal(status_of(role.pid, "Threads", 10), 1);
	assert_int_equal(status_of(role.pid, "PPid", 10), getpid());
	assert_descriptors(&role);
	assert_int_equal(kill(role.pid, SIGCONT), 0);
	role_end(&role);
	close(config_fd);
	close(stray);
	close(200);
}

static void role_has_no_environment(void **state)
{
	int config_fd = busy_config();
	struct role role;
	char path[64], byte;
	int fd;

	(void)state;
	setenv("BAWN_SECRET", "x", 1);
	role = start_and_stop(config_fd);
	snprintf(path, sizeof(path), "/proc/%d/environ", (int)role.pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		assert_int_not_equal(geteuid(), 0);
	else
		assert_int_equal(read(fd, &byte, 1), 0);
	if (fd >= 0)
		close(fd);
	(void)kill(role.pid, SIGCONT);
	role_end(&role);
	close(config_fd);
}

static void answer_is_sealed(void **state)
{
	static const char text[] = "[user]\nname = x\n[core]\neditor = y\n";
	int config_fd = identity_config(text, sizeof(text) - 1);
	struct role role = start(config_fd);
	struct message message;
	char result[64] = "";

	(void)state;
	assert_int_equal(message_receive(role.channel, &message), 0);
	assert_int_equal(message.type, IDENTITY_RESULT);
	assert_int_equal(message.length, 0);
	assert_int_equal(message.fd_count, 1);
	assert_int_equal(fcntl(message.fds[0], F_GET_SEALS),
			 F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	assert_true(pread(message.fds[0], result, sizeof(result) - 1, 0) > 0);
	assert_string_equal(result, "[user]\n\tname = \"x\"\n");
	assert_int_equal(write(message.fds[0], "x", 1), -1);
	message_close_fds(&message);
	/* and nothing else: it ends */
	assert_int_equal(message_receive(role.channel, &message), -EPIPE);
	assert_int_equal(role_wait(&role), 0);
	role_end(&role);
	close(config_fd);
}

/* Texts come and trees go, and what is out of order is the end. */
static void shell_texts_are_answered(void **state)
{
	static const struct parse_order orders[] = { { PARSE_SHELL }, { 77 } };
	const char text[] = { 2, 0, 0, 0, 'l', 's' };
	int config_fd = role_config(&orders[0], sizeof(orders[0]));
	int bad_fd = role_config(&orders[1], sizeof(orders[1])), status;
	struct role role = start(config_fd);
	struct message message;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(
			message_send(role.channel, PARSE_TEXT, text, sizeof(text), NULL, 0), 0);
		assert_int_equal(message_receive(role.channel, &message), 0);
		assert_int_equal(message.type, PARSE_TREE);
		assert_int_equal(message.fd_count, 0);
	}
	/* the text was whole already */
	assert_int_equal(message_send(role.channel, PARSE_MORE, text, sizeof(text), NULL, 0), 0);
	assert_int_equal(message_receive(role.channel, &message), -EPIPE);
	status = role_wait(&role);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status));
	role_end(&role);
	role = start(config_fd);
	fd_close(&role.channel);
	assert_int_equal(role_wait(&role), 0);
	role_end(&role);
	role = start(bad_fd);
	status = role_wait(&role);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status));
	role_end(&role);
	close(config_fd);
	close(bad_fd);
}

static void config_cannot_be_changed(void **state)
{
	int fd = role_config("abc", 3);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(ftruncate(fd, 1), -1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	close(fd);
}

static void failures_are_errors(void **state)
{
	int config_fd = role_config("", 0), text_fd = open("/etc/passwd", O_PATH | O_CLOEXEC);
	int many[ROLE_LIMIT_FDS + 1] = { 0 };
	struct error error = ERROR_NONE;
	struct role role = ROLE_NONE;
	int program_fd = program();

	(void)state;
	assert_true(role_start(text_fd, EDGE_SUPERVISOR_PARSE, config_fd, NULL, 0, &role, &error) <
		    0);
	assert_non_null(strstr(error.message, "bawn-parse"));
	assert_int_equal(role_start(program_fd, EDGE_SUPERVISOR_PARSE, -1, NULL, 0, &role, &error),
			 -EBADF);
	assert_int_equal(role_start(program_fd, EDGE_SUPERVISOR_PARSE, config_fd, many,
				    ROLE_LIMIT_FDS + 1, &role, &error),
			 -E2BIG);
	assert_int_equal(role_spawn(EDGE_SUPERVISOR_INIT, config_fd, NULL, 0, &role, &error),
			 -EINVAL);
	assert_int_equal(role.pid, -1);
	/* no child is left behind */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	role_end(&role);
	close(program_fd);
	close(config_fd);
	close(text_fd);
}

static void started_with_closed_standard_descriptors(void **state)
{
	int config_fd = identity_config("[user]\nname = x\n", 16), ends[2], status;
	pid_t child;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		struct error error = ERROR_NONE;
		struct role role = ROLE_NONE;
		struct message message;
		int program_fd = program();

		close(0);
		close(1);
		close(2);
		_exit(role_start(program_fd, EDGE_SUPERVISOR_PARSE, config_fd, NULL, 0, &role,
				 &error) < 0 ||
		      message_receive(role.channel, &message) < 0 || message.fd_count != 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(ends[0]);
	close(ends[1]);
	close(config_fd);
}

static void every_edge_has_its_words(void **state)
{
	(void)state;
	for (int i = 0; i < EDGE_COUNT; i++) {
		const struct edge_text *edge = edge_text((enum edge)i);

		/* one pair is between two roles: the supervisor makes it and keeps no end */
		assert_string_equal(edge->from, i == EDGE_PROXY_DIALER ? "PROXY" : "SUPERVISOR");
		assert_true(edge->to[0] && edge->transport[0] && edge->what[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(role_holds_its_edge_alone),
		cmocka_unit_test(role_has_no_environment),
		cmocka_unit_test(answer_is_sealed),
		cmocka_unit_test(shell_texts_are_answered),
		cmocka_unit_test(config_cannot_be_changed),
		cmocka_unit_test(failures_are_errors),
		cmocka_unit_test(started_with_closed_standard_descriptors),
		cmocka_unit_test(every_edge_has_its_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
