#include "broker/program_file.h"

#include "base/arena.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sha256.h"
#include "policy/policy.h"
#include "policy/program.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A name is looked up once; more of them than a command has are looked up again. */
#define CACHE_LIMIT 512
/* As the kernel's limit of links on one way (path_resolution(7)). */
#define LINKS_LIMIT 40
/* Larger programs are not read before a start: an exception by digest does not cover them. */
#define DIGEST_LIMIT_BYTES (256u * 1024 * 1024)

/* Programs that look at the name they were called by: one file, many programs. */
static bool is_many(const char *place)
{
	static const char *const names[] = { "busybox", "toybox", "coreutils", "rustup",
					     "mise",	"shim",	  "volta-shim" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(program_name(place), names[i]) == 0)
			return true;
	return false;
}

void program_files_begin(struct program_files *files, const struct policy *policy,
			 const char *const *variables, const char *cwd, struct arena *arena)
{
	*files = (struct program_files){ .policy = policy, .path = "", .cwd = cwd, .arena = arena };
	for (size_t i = 0; variables && variables[i]; i++)
		if (strncmp(variables[i], "PATH=", 5) == 0)
			files->path = variables[i] + 5;
	for (size_t i = 0; !variables && i < policy->variable_count; i++)
		if (strcmp(policy->variables[i].name, "PATH") == 0)
			files->path = policy->variables[i].value;
}

/* Where a path of the box lies on the host, as the view has it; NULL: not there, or private. */
static const char *place_of(const struct program_files *files, const char *path)
{
	for (int links = 0; path && links < LINKS_LIMIT; links++) {
		const struct view_path *row = view_lookup(&files->policy->view, path);
		const char *below;

		if (!row || row->class == PATH_HIDE || row->class == PATH_FILE || !row->source[0])
			return NULL;
		below = path_below(path, row->target);
		if (row->class != PATH_LINK)
			return below[0] ? arena_format(files->arena, "%s/%s",
						       row->source[1] ? row->source : "", below) :
					  row->source;
		path = path_clean(files->arena, path_parent(files->arena, row->target),
				  arena_format(files->arena, "%s%s%s", row->source,
					       below[0] ? "/" : "", below));
	}
	return NULL;
}

static bool look(const struct program_files *files, const char *path, struct program_file *file)
{
	const char *place = path ? place_of(files, path) : NULL;
	int CLEANUP_FD fd = place ? open(place, O_PATH | O_CLOEXEC) : -1;
	char link[32], real[PATH_LIMIT_BYTES];
	struct stat status;
	ssize_t length;

	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
	    !(status.st_mode & 0111))
		return false;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, real, sizeof(real));
	if (length <= 0 || (size_t)length == sizeof(real))
		return false;
	file->place = arena_copy_bytes(files->arena, real, (size_t)length);
	file->device = status.st_dev;
	file->inode = status.st_ino;
	file->found = file->place != NULL;
	return file->found;
}

/* As execvpe(3) looks: a word with a slash is a path, else the first that there is in PATH. */
static void resolve(const struct program_files *files, struct program_file *file)
{
	const char *word = file->word;

	if (!word[0])
		return;
	if (strchr(word, '/')) {
		(void)look(files, path_clean(files->arena, files->cwd, word), file);
		return;
	}
	for (const char *at = files->path; *at; at += *at == ':') {
		size_t length = strcspn(at, ":");
		const char *directory = arena_copy_bytes(files->arena, at, length);

		at += length;
		directory = directory ? path_clean(files->arena, files->cwd,
						   directory[0] ? directory : ".") :
					NULL;
		if (directory &&
		    look(files,
			 arena_format(files->arena, "%s/%s", directory[1] ? directory : "", word),
			 file))
			return;
	}
}

static struct program_file find(struct program_files *files, const char *word)
{
	struct program_file file = { .word = word }, *grown;

	for (size_t i = 0; i < files->count; i++)
		if (strcmp(files->rows[i].word, word) == 0)
			return files->rows[i];
	resolve(files, &file);
	grown = files->count < CACHE_LIMIT ?
			arena_push(files->arena, files->rows, files->count, sizeof(*grown)) :
			NULL;
	if (grown) {
		files->rows = grown;
		grown[files->count++] = file;
	}
	return file;
}

static bool is_one_file(const struct program_file *one, const struct program_file *other)
{
	return one->found && other->found && one->device == other->device &&
	       one->inode == other->inode &&
	       (!is_many(one->place) ||
		strcmp(program_name(one->word), program_name(other->word)) == 0);
}

bool program_files_match(void *context, const char *named, const char *word, bool surely)
{
	struct program_files *files = context;
	struct program_file file = find(files, word), rule;

	if (!surely && named[0] != '/' &&
	    (strcmp(program_name(word), named) == 0 ||
	     (file.found && !is_many(file.place) && strcmp(program_name(file.place), named) == 0)))
		return true;
	/* what is not there is no file of any name */
	if (!file.found)
		return !surely && strcmp(named, word) == 0;
	rule = find(files, named);
	return is_one_file(&file, &rule);
}

const char *program_files_digest(void *context, const char *word)
{
	struct program_files *files = context;
	struct program_file file = find(files, word);
	int CLEANUP_FD fd =
		file.found ? open(file.place, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW) : -1;
	unsigned char bytes[32768], digest[SHA256_BYTES];
	char text[SHA256_HEX_BYTES];
	struct sha256 hash;
	struct stat status;
	ssize_t count;
	uint64_t total = 0;

	if (fd < 0 || fstat(fd, &status) < 0 || status.st_ino != file.inode ||
	    status.st_dev != file.device || !S_ISREG(status.st_mode))
		return NULL;
	sha256_begin(&hash);
	while ((count = fd_read_all(fd, bytes, sizeof(bytes))) > 0 && total < DIGEST_LIMIT_BYTES) {
		sha256_update(&hash, bytes, (size_t)count);
		total += (uint64_t)count;
	}
	if (count != 0)
		return NULL;
	sha256_end(&hash, digest);
	sha256_hex(digest, text);
	return arena_copy(files->arena, text);
}
