#include "workspace/policy_file.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/nearest.h"
#include "base/path.h"
#include "base/sha256.h"
#include "ipc/parse.h"
#include "ipc/role.h"
#include "policy/document_pack.h"
#include "policy/outline.h"
#include "policy/preset.h"
#include "workspace/host.h"
#include "workspace/kept.h"
#include "workspace/policy_way.h"
#include "workspace/sweep_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* All managed ones of a host (policy_layers.h), and files that one person uses in turns: each by
 * its text, and by the state of its file. */
#define DOCUMENTS_KEPT 192u
/* Longer than a tick of the clock of files, and than a small step of the clock. */
#define SETTLED_S 3
#define FOLDER "documents"

static int check_owner(const struct caller *host, const char *path, const struct stat *status,
		       struct error *error)
{
	if (status->st_uid != host->uid && status->st_uid != 0)
		return error_set(error, EPERM,
				 "the policy file %s belongs to another user (uid %u); copy it to "
				 "a file of your own",
				 path, status->st_uid);
	if (status->st_mode & S_IWOTH)
		return error_set(error, EPERM,
				 "the policy file %s can be written by everybody; chmod o-w it",
				 path);
	if ((status->st_mode & S_IWGRP) && status->st_gid != host->gid)
		return error_set(error, EPERM,
				 "the policy file %s can be written by another group (gid %u); "
				 "chmod g-w it",
				 path, status->st_gid);
	return 0;
}

/* Before its owner is looked at: a directory or a device is no policy of anybody's. */
static int check_kind(const char *path, const struct stat *status, struct error *error)
{
	return S_ISREG(status->st_mode) ?
		       0 :
		       error_set(error, EINVAL, "the policy %s is no regular file", path);
}

static int read_text(int fd, const struct stat *status, struct arena *arena,
		     struct policy_file *file, struct error *error)
{
	ssize_t length;
	char *text;

	if (status->st_size > (off_t)OUTLINE_LIMIT_BYTES)
		return error_set(error, EFBIG, "the policy file %s is larger than %u bytes",
				 file->path, OUTLINE_LIMIT_BYTES);
	text = arena_allocate(arena, (size_t)status->st_size + 2);
	length = text ? fd_read_all(fd, text, (size_t)status->st_size + 1) : -ENOMEM;
	if (length < 0)
		return error_errno(error, (int)length, "the policy file %s", file->path);
	if (length != status->st_size)
		return error_set(error, EAGAIN, "the policy file %s changes while it is read",
				 file->path);
	file->text = text;
	file->length = (size_t)length;
	return 0;
}

/* A descriptor of a file that may be a policy. */
static int open_file(const struct caller *host, const char *path, struct arena *arena,
		     struct policy_file *file, struct stat *ret_status, struct error *error)
{
	struct git_way way;
	int result = policy_way_find(host, path, arena, &way, error);
	int CLEANUP_FD fd = result < 0 ? -1 :
					 fd_open_resolved(AT_FDCWD, way.real,
							  O_RDONLY | O_NOCTTY | O_NONBLOCK,
							  RESOLVE_NO_SYMLINKS);

	if (result < 0)
		return result;
	if (fd < 0 || fstat(fd, ret_status) < 0)
		return error_errno(error, fd < 0 ? fd : errno, "the policy file %s", way.real);
	file->path = way.real;
	file->links = way.links;
	file->link_count = way.link_count;
	result = check_kind(file->path, ret_status, error);
	if (result == 0)
		result = check_owner(host, file->path, ret_status, error);
	return result < 0 ? result : TAKE_FD(fd);
}

/*
 * A file that is as it was when it was read says what it said then: nobody but the kernel sets its
 * change time. False where others may, or where it changed a moment ago: twice within a tick is
 * once by the clock.
 */
static bool is_settled(int fd, const struct stat *status)
{
	int64_t now_s = (int64_t)time(NULL);

	return (int64_t)status->st_ctim.tv_sec < now_s - SETTLED_S &&
	       (int64_t)status->st_mtim.tv_sec < now_s - SETTLED_S &&
	       sweep_clock_of(fd) == SWEEP_CLOCK_KERNEL;
}

/* Of the file as it stands there, and what its paths are filled in with (NULL: none is). */
static void name_state(const struct stat *status, const char *home,
		       char name[static SHA256_HEX_BYTES])
{
	static const uint64_t version = DOCUMENT_PACK_VERSION;
	unsigned char digest[SHA256_BYTES];
	struct sha256 hash;

	sha256_begin(&hash);
	sha256_update(&hash, "state", sizeof("state"));
	sha256_update(&hash, &version, sizeof(version));
	kept_hash_file(&hash, status);
	sha256_update(&hash, home ? home : "", home ? strlen(home) + 1 : 1);
	sha256_end(&hash, digest);
	sha256_hex(digest, name);
}

/* What root keeps is for all homes; what is dangerous in one is looked at by each start. */
static const char *home_of(const struct policy_file *file, const char *home)
{
	return file->text && memchr(file->text, '~', file->length) ? home : NULL;
}

/* Of the text and what its paths are filled in with; the file's name is not kept. */
static void name_document(const struct policy_file *file, const char *home,
			  char name[static SHA256_HEX_BYTES])
{
	static const uint32_t version = DOCUMENT_PACK_VERSION;
	unsigned char digest[SHA256_BYTES];
	struct sha256 hash;

	home = home_of(file, home);
	sha256_begin(&hash);
	sha256_update(&hash, &version, sizeof(version));
	sha256_update(&hash, home ? home : "", home ? strlen(home) + 1 : 1);
	sha256_update(&hash, file->text, file->length);
	sha256_end(&hash, digest);
	sha256_hex(digest, name);
}

static int ask_outline(enum parse_kind kind, const char *text, size_t length, struct arena *arena,
		       char **ret_bytes, size_t *ret_length, struct error *error)
{
	const struct parse_order order = { kind };
	char *config = arena_allocate(arena, sizeof(order) + length);
	int CLEANUP_FD config_fd = -1;

	if (!config)
		return error_errno(error, ENOMEM, "reading the policy");
	memcpy(config, &order, sizeof(order));
	memcpy(config + sizeof(order), text, length);
	config_fd = role_config(config, sizeof(order) + length);
	if (config_fd < 0)
		return error_errno(error, config_fd, "reading the policy");
	return parse_ask(config_fd, PARSE_OUTLINE_RESULT, OUTLINE_LIMIT_RESULT_BYTES, arena,
			 ret_bytes, ret_length, error);
}

int policy_outline(enum parse_kind kind, const char *text, size_t length, struct arena *arena,
		   struct outline *ret_outline, struct error *error)
{
	char *bytes;
	int result = ask_outline(kind, text, length, arena, &bytes, &length, error);

	if (result < 0)
		return result;
	result = outline_read(bytes, length, arena, ret_outline);
	return result < 0 ? error_errno(error, result, "what bawn-parse made of the text") : 0;
}

static int read_document(const struct caller *host, const char *name, struct arena *arena,
			 struct policy_file *file, struct document_faults *faults,
			 struct error *error)
{
	const struct document_facts facts = { .file = name, .home = host->home };
	struct outline outline;
	int result =
		policy_outline(PARSE_OUTLINE, file->text, file->length, arena, &outline, error);

	if (result < 0)
		return error_context(error, "reading the policy");
	result = document_read(&outline, &facts, arena, &file->document, faults);
	if (result == -EINVAL)
		return error_set(error, EINVAL, "%s:%u:%u: %s%s", name, faults->rows[0].line,
				 faults->rows[0].column, faults->rows[0].text,
				 faults->count > 1 ? " (and more; `bawn policy check` tells all)" :
						     "");
	return result < 0 ? error_errno(error, result, "reading the policy") : 0;
}

static bool take_kept(int folder_fd, const char *key, const char *name, struct arena *arena,
		      struct policy_file *file)
{
	size_t length = 0;
	char *bytes = kept_read(folder_fd, key, DOCUMENT_PACK_LIMIT_BYTES, arena, &length);

	return bytes && document_unpack(bytes, length, name, arena, &file->document) == 0;
}

/* As it is kept, or read anew by the role. */
static int understand(const struct caller *host, const char *name, int folder_fd,
		      struct arena *arena, struct policy_file *file, struct document_faults *faults,
		      struct error *error)
{
	struct buffer CLEANUP_BUFFER packed = { 0 };
	char key[SHA256_HEX_BYTES];
	int result;

	if (folder_fd >= 0) {
		name_document(file, host->home, key);
		if (take_kept(folder_fd, key, name, arena, file))
			return 0;
	}
	result = read_document(host, name, arena, file, faults, error);
	if (result == 0 && folder_fd >= 0 && document_pack(&file->document, &packed) == 0)
		kept_write(folder_fd, key, packed.data, packed.length, DOCUMENTS_KEPT);
	return result;
}

static bool is_unchanged(int fd, const struct stat *before)
{
	struct stat status;

	return fstat(fd, &status) == 0 && status.st_size == before->st_size &&
	       status.st_ctim.tv_sec == before->st_ctim.tv_sec &&
	       status.st_ctim.tv_nsec == before->st_ctim.tv_nsec;
}

/* Of a file that has not changed since it was read, its text need not be read again. */
static int understand_file(const struct caller *host, int fd, const struct stat *status,
			   int state_fd, struct arena *arena, struct policy_file *file,
			   struct document_faults *faults, struct error *error)
{
	int CLEANUP_FD folder_fd = state_fd < 0 ? -1 : kept_open(state_fd, FOLDER);
	bool settled = folder_fd >= 0 && is_settled(fd, status);
	char name[SHA256_HEX_BYTES], key[SHA256_HEX_BYTES];
	int result;

	for (int i = 0; settled && i < 2; i++) {
		name_state(status, i ? NULL : host->home, name);
		if (take_kept(folder_fd, name, file->path, arena, file))
			return 0;
	}
	result = read_text(fd, status, arena, file, error);
	if (result == 0)
		result = understand(host, file->path, folder_fd, arena, file, faults, error);
	if (result == 0 && settled && is_unchanged(fd, status)) {
		name_document(file, host->home, key);
		name_state(status, home_of(file, host->home), name);
		(void)kept_link(folder_fd, key, name);
	}
	return result;
}

int policy_file_load(const struct caller *host, const char *path, int state_fd, struct arena *arena,
		     struct policy_file *ret_file, struct document_faults *faults,
		     struct error *error)
{
	struct policy_file file = { 0 };
	struct stat status = { 0 };
	int CLEANUP_FD fd = open_file(host, path, arena, &file, &status, error);
	int result = fd;

	faults->count = 0;
	if (fd >= 0)
		result = understand_file(host, fd, &status, state_fd, arena, &file, faults, error);
	if (result == 0)
		*ret_file = file;
	return result;
}

int policy_file_take(const struct caller *host, int fd, const char *path, int state_fd,
		     struct arena *arena, struct policy_file *ret_file,
		     struct document_faults *faults, struct error *error)
{
	struct policy_file file = { .path = path };
	struct stat status;
	int result;

	faults->count = 0;
	if (fstat(fd, &status) < 0)
		return error_errno(error, errno, "the policy file %s", path);
	result = check_kind(path, &status, error);
	if (result == 0)
		result = understand_file(host, fd, &status, state_fd, arena, &file, faults, error);
	if (result == 0)
		*ret_file = file;
	return result;
}

int policy_file_preset(const struct caller *host, const char *name, int state_fd,
		       struct arena *arena, struct policy_file *ret_file, struct error *error)
{
	struct document_faults faults;
	int CLEANUP_FD folder_fd = state_fd < 0 ? -1 : kept_open(state_fd, FOLDER);
	struct policy_file file = { 0 };
	struct preset preset;
	const char *called;
	int result;

	if (!preset_find(name, &preset)) {
		size_t count;
		const char *const *names =
			document_split(arena, document_key(DOCUMENT_PRESET)->words, &count);
		const char *nearest = nearest_word(name, names, count);

		return error_set(error, EINVAL, "no preset \"%.40s\"%s%s%s; there are: %s", name,
				 nearest ? "; the nearest is \"" : "", nearest ? nearest : "",
				 nearest ? "\"" : "", document_key(DOCUMENT_PRESET)->words);
	}
	file.text = arena_copy_bytes(arena, preset.text, preset.length);
	file.length = preset.length;
	called = arena_format(arena, "preset %s", preset.name);
	if (!file.text || !called)
		return error_errno(error, ENOMEM, "the preset %s", name);
	result = understand(host, called, folder_fd, arena, &file, &faults, error);
	if (result == 0)
		*ret_file = file;
	return result;
}

/* The preset that the file goes on from, where it names one. */
static int find_preset(const struct policy_file *file, const char **preset, struct error *error)
{
	const struct document_statement *base = document_find(&file->document, DOCUMENT_PRESET);

	if (!base)
		return 0;
	if (*preset && strcmp(*preset, base->text) != 0)
		return error_set(error, EINVAL, "%s:%u:%u: preset is %s, and --preset %s",
				 base->rule.file, base->rule.line, base->column, base->text,
				 *preset);
	*preset = base->text;
	return 0;
}

int policy_stack_make(const struct caller *host, const struct policy_file *file, const char *preset,
		      int state_fd, struct arena *arena, struct policy_stack *ret_stack,
		      struct error *error)
{
	struct policy_stack stack = { 0 };
	const struct document *documents[2];
	int result = file ? find_preset(file, &preset, error) : 0;

	if (result == 0 && preset)
		result = policy_file_preset(host, preset, state_fd, arena,
					    &stack.files[stack.count++], error);
	if (result < 0)
		return result;
	if (file)
		stack.files[stack.count++] = *file;
	for (size_t i = 0; i < stack.count; i++)
		documents[i] = &stack.files[i].document;
	if (document_join(documents, stack.count, arena, &stack.document) < 0)
		return error_errno(error, ENOMEM, "reading the policy");
	*ret_stack = stack;
	return 0;
}

int policy_stack_load(const struct caller *host, const char *path, const char *preset, int state_fd,
		      struct arena *arena, struct policy_stack *ret_stack,
		      struct document_faults *faults, struct error *error)
{
	struct policy_file file;
	int result = 0;

	faults->count = 0;
	if (path)
		result = policy_file_load(host, path, state_fd, arena, &file, faults, error);
	return result == 0 ? policy_stack_make(host, path ? &file : NULL, preset, state_fd, arena,
					       ret_stack, error) :
			     result;
}
