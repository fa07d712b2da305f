#include "broker/program_file.h"

#include "base/arena.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sha256.h"
#include "broker/path_access.h"
#include "policy/classify.h"
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

/* A path of the box while its names are gone through, as the kernel does there. */
struct way {
	const struct program_files *files;
	const char *cwd;
	const char *at;	  /* of the box, clean, without links */
	const char *rest; /* what is to be gone through yet */
	unsigned links;
	struct stat status; /* of what `at` is on the host */
	const char *place;  /* and where that is; NULL: made in the box, or not known */
};

static bool follow(struct way *way, const char *text)
{
	if (way->links++ == LINKS_LIMIT)
		return false;
	way->rest = arena_format(way->files->arena, "%s/%s", text, way->rest);
	if (text[0] == '/')
		way->at = "/";
	return way->rest && strlen(way->rest) < PATH_LIMIT_BYTES;
}

/* What of the host is shown there; false: nothing is known of it. */
static bool show(struct way *way, const char *next, const char **ret_link)
{
	const struct view_path *row = view_lookup(&way->files->policy->view, next);
	struct arena *arena = way->files->arena;
	char text[PATH_LIMIT_BYTES];
	const char *below;
	ssize_t length;

	way->place = NULL;
	*ret_link = path_process_link(next, way->cwd);
	/* a directory on the way to what is shown, or an area of the box's own */
	if (*ret_link || !row)
		return true;
	if (row->class == PATH_HIDE || row->class == PATH_FILE)
		return false;
	below = path_below(next, row->target);
	if (row->class == PATH_LINK) {
		*ret_link = row->source;
		return !below[0];
	}
	if (!row->source[0])
		return false;
	way->place =
		below[0] ? arena_format(arena, "%s/%s", row->source[1] ? row->source : "", below) :
			   row->source;
	if (!way->place || lstat(way->place, &way->status) < 0)
		return false;
	if (!S_ISLNK(way->status.st_mode))
		return true;
	length = readlink(way->place, text, sizeof(text));
	if (length <= 0 || (size_t)length == sizeof(text))
		return false;
	*ret_link = arena_copy_bytes(arena, text, (size_t)length);
	return *ret_link != NULL;
}

static bool step(struct way *way, size_t length)
{
	const char *name = way->rest, *link, *next;
	struct arena *arena = way->files->arena;

	way->rest += length;
	if (length == 1 && name[0] == '.')
		return true;
	way->place = NULL;
	if (length == 2 && name[0] == '.' && name[1] == '.') {
		way->at = path_parent(arena, way->at);
		return way->at != NULL;
	}
	next = arena_format(arena, "%s/%.*s", way->at[1] ? way->at : "", (int)length, name);
	if (!next || strlen(next) >= PATH_LIMIT_BYTES || !show(way, next, &link))
		return false;
	if (link)
		return follow(way, link);
	way->at = next;
	return true;
}

static bool look(const struct program_files *files, const char *path, struct program_file *file)
{
	struct way way = { .files = files, .cwd = file->cwd, .at = file->cwd, .rest = path };

	if (!path || !path[0])
		return false;
	if (path[0] == '/')
		way.at = "/";
	if (!way.at)
		return false;
	while (*way.rest) {
		size_t length = strspn(way.rest, "/");

		way.rest += length;
		length = strcspn(way.rest, "/");
		if (length && !step(&way, length))
			return false;
	}
	if (!way.place || !S_ISREG(way.status.st_mode) || !(way.status.st_mode & 0111))
		return false;
	file->place = way.place;
	file->device = way.status.st_dev;
	file->inode = way.status.st_ino;
	file->found = true;
	return true;
}

/* As execvpe(3) looks: a word with a slash is a path, else the first that there is in PATH. */
static void resolve(const struct program_files *files, struct program_file *file)
{
	const char *word = file->word;

	if (!word[0])
		return;
	if (strchr(word, '/')) {
		(void)look(files, word, file);
		return;
	}
	for (const char *at = files->path; *at; at += *at == ':') {
		size_t length = strcspn(at, ":");
		const char *directory = arena_copy_bytes(files->arena, at, length);

		at += length;
		if (directory &&
		    look(files,
			 arena_format(files->arena, "%s/%s", directory[0] ? directory : ".", word),
			 file))
			return;
	}
}

static struct program_file find(struct program_files *files, const char *word, const char *cwd)
{
	struct program_file file = { .word = word, .cwd = cwd }, *grown;

	for (size_t i = 0; i < files->count; i++)
		if (strcmp(files->rows[i].word, word) == 0 && files->rows[i].cwd == cwd)
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

static bool is_that_from(struct program_files *files, const char *named, const char *word,
			 const char *cwd, bool surely)
{
	struct program_file file = find(files, word, cwd), rule;

	if (!surely && named[0] != '/' &&
	    (strcmp(program_name(word), named) == 0 ||
	     (file.found && !is_many(file.place) && strcmp(program_name(file.place), named) == 0)))
		return true;
	/* what is not there is no file of any name */
	if (!file.found)
		return !surely && strcmp(named, word) == 0;
	rule = find(files, named, files->cwd);
	return is_one_file(&file, &rule);
}

bool program_files_match(void *context, const char *named, const char *word, bool surely)
{
	struct program_files *files = context;
	const struct classify *classify = files->classify;
	bool moves = classify && strchr(word, '/') && word[0] != '/';
	bool is_that = is_that_from(files, named, word, files->cwd, surely);

	if (moves && surely && classify->cwd_unknown)
		return false;
	for (size_t i = 0; moves && i < classify->cwd_count && is_that == surely; i++)
		is_that = is_that_from(files, named, word, classify->cwds[i], surely);
	return is_that;
}

const char *program_files_digest(void *context, const char *word)
{
	struct program_files *files = context;
	const struct classify *classify = files->classify;
	struct program_file file = find(files, word, files->cwd);
	bool moved = classify && (classify->cwd_count > 1 || classify->cwd_unknown);
	int CLEANUP_FD fd =
		file.found && !(moved && strchr(word, '/') && word[0] != '/') ?
			open(file.place, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW) :
			-1;
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
