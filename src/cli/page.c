#include "cli/page.h"

#include "base/fd.h"
#include "base/path.h"
#include "cli/options.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* One write for many lines. */
#define PIECE_BYTES (64u * 1024)

extern char **environ;

/* "less": F ends where all fits, R shows colours and nothing else, X leaves the text behind. */
static const char *pager_command(void)
{
	const char *command = getenv("PAGER");
	const char *term = getenv("TERM");

	if (term && strcmp(term, "dumb") == 0 && !command)
		return NULL;
	if (command && (!command[0] || strcmp(command, "cat") == 0))
		return NULL;
	return command ? command : "less -FRX";
}

/* A plain word that is no program: its output would be lost. What the shell reads is its own. */
static bool is_missing(const char *command)
{
	size_t length = strcspn(command, " \t");
	const char *path = getenv("PATH");
	char name[256], file[PATH_LIMIT_BYTES];

	if (!length || length >= sizeof(name) ||
	    strcspn(command, "\"'\\$`|&;<>()={}*?[]#~!") < length)
		return false;
	memcpy(name, command, length);
	name[length] = '\0';
	if (strchr(name, '/'))
		return access(name, X_OK) < 0;
	while (path && *path) {
		size_t part = strcspn(path, ":");

		if (snprintf(file, sizeof(file), "%.*s/%s", (int)part, path, name) <
			    (int)sizeof(file) &&
		    access(file, X_OK) == 0)
			return false;
		path += part + (path[part] == ':');
	}
	return true;
}

/* The shell takes PAGER apart, as for every program that has one. */
static void start_pager(struct page *page, const char *command)
{
	char *const argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char *)(uintptr_t)command,
			       NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t pipe_signal;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return;
	(void)sigemptyset(&pipe_signal);
	(void)sigaddset(&pipe_signal, SIGPIPE);
	(void)posix_spawnattr_init(&attributes);
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	(void)posix_spawnattr_setsigdefault(&attributes, &pipe_signal);
	(void)posix_spawn_file_actions_init(&actions);
	/* without it the pager would read our own input */
	if (posix_spawn_file_actions_adddup2(&actions, ends[0], 0) == 0 &&
	    posix_spawn(&page->pager, "/bin/sh", &actions, &attributes, argv, environ) == 0) {
		page->fd = ends[1];
		ends[1] = -1;
	} else {
		page->pager = 0;
	}
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)posix_spawnattr_destroy(&attributes);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
}

void page_open(struct page *page, bool with_pager)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
	const char *command;

	*page = PAGE_NONE;
	(void)signal(SIGPIPE, SIG_IGN);
	page->is_terminal = isatty(1);
	if (!page->is_terminal)
		return;
	page->has_colour = !(no_colour && no_colour[0]) && term && strcmp(term, "dumb") != 0;
	command = with_pager ? pager_command() : NULL;
	if (command && is_missing(command)) {
		/* less need not be there; what somebody chose should be */
		if (getenv("PAGER"))
			complain("PAGER names no program that can be run; printing without it");
		command = NULL;
	}
	if (command) {
		/* ^C is for what the pager looks for, not the end of us both */
		(void)signal(SIGINT, SIG_IGN);
		start_pager(page, command);
	}
	if (!page->pager)
		(void)signal(SIGINT, SIG_DFL);
}

const char *page_colour(const struct page *page, enum page_colour colour)
{
	static const char *const sequences[] = {
		[PAGE_PLAIN] = "\033[0m", [PAGE_STRONG] = "\033[1m", [PAGE_FAINT] = "\033[2m",
		[PAGE_BAD] = "\033[31m",  [PAGE_GOOD] = "\033[32m",  [PAGE_NOTICE] = "\033[33m",
	};

	return page->has_colour ? sequences[colour] : "";
}

int page_flush(struct page *page)
{
	int result;

	if (page->text.failed)
		return -ENOMEM;
	result = page->text.length ? fd_write_all(page->fd, page->text.data, page->text.length) : 0;
	page->text.length = 0;
	return result;
}

int page_put(struct page *page)
{
	return page->text.length >= PIECE_BYTES || page->text.failed ? page_flush(page) : 0;
}

int page_close(struct page *page, int result)
{
	int status = 0;

	if (result == 0)
		result = page_flush(page);
	buffer_free(&page->text);
	if (page->pager) {
		fd_close(&page->fd);
		while (waitpid(page->pager, &status, 0) < 0 && errno == EINTR)
			;
		/* the shell's own words for what it could not run */
		if (WIFEXITED(status) && (WEXITSTATUS(status) == 126 || WEXITSTATUS(status) == 127))
			result = -ENOEXEC;
		page->pager = 0;
	}
	return result == -EPIPE ? 0 : result;
}
