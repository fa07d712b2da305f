/*
 * A task's directory is one that an earlier task left, under a new name, and its layers are that
 * one's: a new inode costs ten times as much on ext4, which looks in turn at each that was freed in
 * the last seconds. What the task wrote is gone when it is left. What the kernel made in `work` for
 * an overlay, empty directories and an empty file, is not, since its removal takes as long as the
 * mount: such a directory is kept under a letter and '~', and tidied beside the next action
 * (box_tidy()), or by the start that finds no other.
 */
#include "isolate/internal.h"

#include "base/directory.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Of a reaper that finds our directory before it is locked; each takes it at most once. */
#define TASK_DIRECTORY_ATTEMPTS 100

#define UNTIDY '~'
/* As many wait for the next action before a start takes one: about as many as start at a time. */
#define UNTIDY_COUNT 8
/* In the directory of the task that tidies: nobody else finds it there, and it goes with that. */
#define TIDIED "tidied"

static bool is_tidy_name(const char *name)
{
	return name[0] != '.' && name[1] == '\0';
}

static bool is_untidy_name(const char *name)
{
	return name[0] != '.' && name[0] != '\0' && name[1] == UNTIDY && name[2] == '\0';
}

/* Never through a link, whoever put it there. */
static int open_below(int directory_fd, const char *path)
{
	return fd_open_beneath(directory_fd, path, O_RDONLY | O_DIRECTORY);
}

static void tidy(int task_fd)
{
	static const char *const layers[] = { PLAN_GIT_LAYERS "/0", PLAN_STAGE_LAYERS };

	for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
		int CLEANUP_FD fd = open_below(task_fd, layers[i]);

		if (fd >= 0)
			directory_remove_content(fd, "work");
	}
}

/* The first choice is one that is tidy. Another start may be quicker: then the name is gone. */
static bool take_spare(const char *spares, const char *path, bool *ret_is_untidy)
{
	struct directory CLEANUP_DIRECTORY directory;
	char untidy[] = { '\0', UNTIDY, '\0' };
	unsigned untidy_count = 0;
	const char *name;

	*ret_is_untidy = false;
	(void)directory_open(&directory, AT_FDCWD, spares, O_NOFOLLOW);
	while ((name = directory_next(&directory))) {
		if (directory.type != DT_DIR)
			continue;
		if (is_tidy_name(name) && renameat(directory.fd, name, AT_FDCWD, path) == 0)
			return true;
		if (!is_untidy_name(name))
			continue;
		untidy[0] = name[0];
		untidy_count++;
	}
	*ret_is_untidy = untidy_count >= UNTIDY_COUNT &&
			 renameat(directory.fd, untidy, AT_FDCWD, path) == 0;
	return *ret_is_untidy;
}

/* Keeps the directory for a later task, or removes it; no more than 32 of either kind are kept. */
static void leave_spare(const char *spares, const char *path, bool is_untidy)
{
	/* by the first letter of the random id; one that is there and not empty stays */
	const char spare[] = { strrchr(path, '/')[sizeof("/t-") - 1], is_untidy ? UNTIDY : '\0',
			       '\0' };
	int CLEANUP_FD fd = open(spares, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT && mkdir(spares, 0700) == 0)
		fd = open(spares, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || renameat(AT_FDCWD, path, fd, spare) < 0)
		directory_remove_tree(AT_FDCWD, path);
}

/* 0, -EAGAIN when a reaper took the new directory away, or another negative errno. */
static int lock_new_directory(const char *spares, const char *path, int *ret_fd)
{
	int CLEANUP_FD fd = -1;
	struct stat status;
	bool is_untidy, is_spare = take_spare(spares, path, &is_untidy);
	int result;

	if (!is_spare && mkdir(path, 0700) < 0)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return -EAGAIN;
	/* waits for a reaper that holds it, which takes no time; not for whoever left a spare, as
	 * that may have been stopped before it let go */
	do
		result = fd < 0 ? -1 : flock(fd, is_spare ? LOCK_EX | LOCK_NB : LOCK_EX);
	while (fd >= 0 && result < 0 && errno == EINTR);
	if (result < 0 || fstat(fd, &status) < 0) {
		result = errno == EWOULDBLOCK ? -EAGAIN : -errno;
		/* a spare one has files */
		directory_remove_tree(AT_FDCWD, path);
		return result;
	}
	if (status.st_nlink == 0)
		return -EAGAIN;
	if (is_untidy)
		tidy(fd);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/*
 * A new directory of our own, locked for as long as the task lives: who finds one that can be
 * locked has found a leftover. A reaper may take it between mkdir and flock, which the link count
 * tells; then it is made again.
 */
int task_directory_make(struct box *box, const struct plan_op *op, struct error *error)
{
	int result = -EAGAIN;

	for (int i = 0; i < TASK_DIRECTORY_ATTEMPTS && result == -EAGAIN; i++)
		result = lock_new_directory(op->source, op->target, &box->task_fd);
	if (result < 0)
		return error_errno(error, result, "making the task's directory %s", op->target);
	return 0;
}

/* What a task, or the kernel for its overlay, put on the directory itself. */
static bool reset_attributes(int fd)
{
	char names[4096];
	ssize_t length = flistxattr(fd, names, sizeof(names));

	for (ssize_t at = 0; at < length; at += (ssize_t)strlen(names + at) + 1)
		if (fremovexattr(fd, names + at) < 0)
			return false;
	return length >= 0 && fchmod(fd, 0700) == 0;
}

/* False where something of the task's stays. */
static bool clear_upper(int layers_fd)
{
	struct directory CLEANUP_DIRECTORY directory;
	int CLEANUP_FD upper = -1;

	directory_remove_content(layers_fd, "upper");
	upper = open_below(layers_fd, "upper");
	directory_begin(&directory, fcntl(upper, F_DUPFD_CLOEXEC, 0));
	return upper >= 0 && !directory_next(&directory) && directory.code == 0 &&
	       reset_attributes(upper);
}

/* What the landing keeps beside the layers (broker/landing.c) is written anew by each task. */
static bool is_for_later(const char *name)
{
	return strcmp(name, "0") == 0 || strcmp(name, "covers") == 0 ||
	       strcmp(name, "git-snapshot") == 0;
}

/* Empties the first git directory's layers for a later task, and removes the others. */
static bool clear_git(int git_fd)
{
	struct directory CLEANUP_DIRECTORY directory;
	int CLEANUP_FD layers = open_below(git_fd, "0");
	const char *name;

	if (layers < 0 || !clear_upper(layers))
		return false;
	(void)directory_open(&directory, git_fd, ".", 0);
	while ((name = directory_next(&directory)))
		if (!is_for_later(name))
			directory_remove_tree(git_fd, name);
	return directory.code == 0;
}

/* A copy has files of its own beside the layers, and all of them are the task's. */
static bool clear_stage(const struct plan *plan, int stage_fd)
{
	return !plan_find(plan, PLAN_DUPLICATE) && clear_upper(stage_fd);
}

/* The kernel's directories have mode 000, at which `rm -rf` of the state would stop. */
static void let_remove(int task_fd, const char *layers_work)
{
	static const char *const made[] = { "work", "work/incompat", "work/incompat/volatile" };
	int CLEANUP_FD fd = open_below(task_fd, layers_work);

	for (size_t i = 0; fd >= 0 && i < sizeof(made) / sizeof(made[0]); i++)
		if (!directory_let_enter(fd, made[i]))
			return;
}

static void clear_layers(const struct plan *plan, int task_fd)
{
	int CLEANUP_FD git_fd = open_below(task_fd, PLAN_GIT_LAYERS);
	int CLEANUP_FD stage_fd = open_below(task_fd, PLAN_STAGE_LAYERS);

	if (git_fd >= 0 && !clear_git(git_fd))
		directory_remove_tree(task_fd, PLAN_GIT_LAYERS);
	if (stage_fd >= 0 && !clear_stage(plan, stage_fd))
		directory_remove_tree(task_fd, PLAN_STAGE_LAYERS);
	let_remove(task_fd, PLAN_GIT_LAYERS "/0/work");
	let_remove(task_fd, PLAN_STAGE_LAYERS "/work");
}

void task_directory_leave(const struct box *box)
{
	const struct plan *plan = box->options.plan;
	const struct plan_op *op = plan_find(plan, PLAN_TASK_DIRECTORY);
	bool has_layers = plan_find(plan, PLAN_LAYERS);

	if (has_layers)
		clear_layers(plan, box->task_fd);
	/* under its lock: one that is there without is a leftover, or taken for our end */
	if (op)
		leave_spare(op->source, op->target, has_layers);
}

/* One that others take meanwhile is theirs: whoever renames it has it. */
static void tidy_spare(int spares_fd, const char *name, int task_fd)
{
	const char tidy_name[] = { name[0], '\0' };
	int CLEANUP_FD fd = -1;

	if (renameat(spares_fd, name, task_fd, TIDIED) < 0)
		return;
	fd = open_below(task_fd, TIDIED);
	if (fd >= 0)
		tidy(fd);
	if (fd < 0 || renameat(task_fd, TIDIED, spares_fd, tidy_name) < 0)
		directory_remove_tree(task_fd, TIDIED);
}

bool box_tidy(struct box *box)
{
	const struct plan_op *op =
		box->task_fd < 0 ? NULL : plan_find(box->options.plan, PLAN_TASK_DIRECTORY);
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;
	bool is_done = false;

	directory_begin(&directory, -1);
	if (op)
		(void)directory_open(&directory, AT_FDCWD, op->source, O_NOFOLLOW);
	while ((name = directory_next(&directory))) {
		if (directory.type != DT_DIR || !is_untidy_name(name))
			continue;
		if (is_done)
			return true;
		tidy_spare(directory.fd, name, box->task_fd);
		is_done = true;
	}
	return false;
}
