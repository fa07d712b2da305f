#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "home.h"

#include "base/fd.h"
#include "workspace/sweep_internal.h"
#include "workspace/tree_internal.h"
#include "workspace/tree_root.h"
#include "workspace/tree_store.h"

/* Deeper than a path can say. */
#define DEEP 5000
#define SPARSE_BYTES (1ll << 40)
#define ROUNDS 40

/* ---- a place, looked at before and after ---- */

struct world {
	struct fixture *fixture;
	struct tree_root root;
	struct tree_list list;
	struct arena arena;
	char path[4096];
	int state_fd;
};

static int make_world(void **state)
{
	struct world *world = calloc(1, sizeof(*world));

	world->fixture = fixture_new();
	world->root = TREE_ROOT_NONE;
	make(world->fixture, "place", NULL);
	make(world->fixture, "state", NULL);
	(void)snprintf(world->path, sizeof(world->path), "%s/state", world->fixture->root);
	world->state_fd = open(world->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(world->path, sizeof(world->path), "%s/place", world->fixture->root);
	*state = world;
	return 0;
}

static int remove_world(void **state)
{
	struct world *world = *state;

	tree_root_end(&world->root);
	arena_free(&world->arena);
	(void)close(world->state_fd);
	fixture_free(world->fixture);
	free(world);
	return 0;
}

static void run(const struct world *world, const char *script)
{
	char text[8192];

	(void)snprintf(text, sizeof(text), "cd '%s' && %s", world->path, script);
	assert_int_equal(system(text), 0); /* NOLINT(cert-env33-c): words of the test's own */
}

static int begin_at(struct world *world, const char *path, bool is_file)
{
	struct tree_place place = {
		.root_fd = -1, .state_fd = world->state_fd, .workspace = path, .kept = path
	};
	struct stat status;
	struct sweep_known identity;

	assert_int_equal(lstat(path, &status), 0);
	identity = (struct sweep_known){ .device = status.st_dev, .inode = status.st_ino };
	return tree_root_begin(&world->root, &place, &identity, is_file, &world->arena);
}

/* All of the survey, as if the action took its time. */
static void begin(struct world *world)
{
	assert_int_equal(begin_at(world, world->path, false), 0);
	while (tree_work(&world->root.tree))
		continue;
}

static void look(struct world *world)
{
	world->list = (struct tree_list){ 0 };
	assert_int_equal(tree_root_look(&world->root, UINT64_MAX, &world->arena, &world->list), 0);
}

static const struct change *find(const struct world *world, const char *below)
{
	size_t length = strlen(world->path);

	for (size_t i = 0; i < world->list.count; i++)
		if (strncmp(world->list.changes[i].path, world->path, length) == 0 &&
		    strcmp(world->list.changes[i].path + length, below) == 0)
			return &world->list.changes[i];
	return NULL;
}

static void assert_kind(const struct world *world, const char *below, enum change_kind kind)
{
	const struct change *change = find(world, below);

	assert_non_null(change);
	assert_int_equal(change->kind, kind);
}

static void each_change_has_its_kind(void **state)
{
	struct world *world = *state;

	run(world, "echo a > edited; echo b > gone; echo c > moved; ln -s x link; echo d > mode; "
		   "echo e > type; mkdir dir; echo f > dir/in; echo g > kept; echo h > saved");
	begin(world);
	run(world, "echo A >> edited; rm gone; mv moved there; ln -sfn y link; chmod 600 mode; "
		   "rm type; mkdir type; mv dir other; echo n > new; echo h2 > .t; mv .t saved");
	look(world);
	assert_kind(world, "/edited", CHANGE_MODIFIED);
	assert_kind(world, "/gone", CHANGE_REMOVED);
	assert_kind(world, "/there", CHANGE_RENAMED);
	assert_kind(world, "/link", CHANGE_MODIFIED);
	assert_kind(world, "/mode", CHANGE_ATTRIBUTES);
	assert_kind(world, "/type", CHANGE_REPLACED);
	assert_kind(world, "/other", CHANGE_RENAMED);
	assert_kind(world, "/new", CHANGE_CREATED);
	assert_kind(world, "/saved", CHANGE_MODIFIED);
	assert_int_equal(world->list.count, 9);
	assert_string_equal(find(world, "/edited")->before->sha256,
			    "87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7");
	assert_true(find(world, "/edited")->after->sha256[0]);
	/* what is told is not told again */
	assert_int_equal(begin_at(world, world->path, false), 0);
	look(world);
	assert_int_equal(world->list.count, 0);
}

static void a_time_that_is_set_back_hides_nothing(void **state)
{
	struct world *world = *state;

	run(world, "echo aaa > f; touch -d @1 f; echo x > t; touch -d @1 t");
	begin(world);
	run(world, "printf bbb | dd of=f conv=notrunc status=none; touch -d @1 f; touch -d @2 t");
	look(world);
	assert_kind(world, "/f", CHANGE_MODIFIED);
	assert_kind(world, "/t", CHANGE_ATTRIBUTES);
}

static void a_place_that_is_a_file_is_looked_at_alone(void **state)
{
	struct world *world = *state;

	char path[4200];

	run(world, "echo a > one; echo b > two");
	(void)snprintf(path, sizeof(path), "%s/one", world->path);
	assert_int_equal(begin_at(world, path, true), 0);
	while (tree_work(&world->root.tree))
		continue;
	run(world, "echo A > one; echo B > two; echo C > three");
	look(world);
	/* its end lets go of the path */
	tree_root_end(&world->root);
	assert_int_equal(world->list.count, 1);
	assert_kind(world, "/one", CHANGE_MODIFIED);
}

static void another_object_is_refused(void **state)
{
	struct world *world = *state;
	struct tree_place place = { .workspace = world->path, .state_fd = world->state_fd };
	const struct sweep_known other = { .device = 1, .inode = 1 };
	char path[4200];

	assert_int_equal(tree_root_begin(&world->root, &place, &other, false, &world->arena),
			 -ESTALE);
	assert_int_equal(world->root.fd, -1);
	run(world, "mkdir real; ln -s real link");
	(void)snprintf(path, sizeof(path), "%s/link", world->path);
	assert_int_equal(begin_at(world, path, false), -ELOOP);
}

/* ---- hostile trees ---- */

static void make_deep(const char *path, unsigned depth)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (unsigned i = 0; i < depth; i++) {
		int next;

		assert_int_equal(mkdirat(fd, "d", 0755), 0);
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		(void)close(fd);
		fd = next;
	}
	(void)close(fd);
}

static void special_files_are_told_and_never_opened(void **state)
{
	struct world *world = *state;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	run(world, "echo x > was; mkdir shut");
	begin(world);
	run(world, "mkfifo fifo; rm was; mkfifo was; ln -s /etc/shadow link; ln -s loop loop; "
		   "truncate -s 1099511627776 sparse; echo x > shut/in; chmod 0 shut; "
		   "echo x > \"$(printf 'new\\nline')\"; echo x > \"$(printf '\\377\\376')\"");
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/socket", world->path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	(void)close(fd);
	look(world);
	assert_string_equal(find(world, "/fifo")->after->type, "fifo");
	assert_string_equal(find(world, "/socket")->after->type, "socket");
	assert_kind(world, "/was", CHANGE_REPLACED);
	assert_string_equal(find(world, "/was")->after->sha256, "");
	assert_string_equal(find(world, "/link")->after->type, "link");
	/* too large to be read: told without a digest */
	assert_int_equal(find(world, "/sparse")->after->bytes, SPARSE_BYTES);
	assert_string_equal(find(world, "/sparse")->after->sha256, "");
	assert_kind(world, "/new\nline", CHANGE_CREATED);
	assert_kind(world, "/\377\376", CHANGE_CREATED);
	assert_kind(world, "/shut", CHANGE_ATTRIBUTES);
	run(world, "chmod 700 shut");
}

static void a_deep_tree_ends_and_is_told_as_cut(void **state)
{
	struct world *world = *state;

	begin(world);
	make_deep(world->path, DEEP);
	look(world);
	assert_kind(world, "/d", CHANGE_CREATED);
	assert_non_null(world->list.cut);
	/* and as something that was there before */
	begin(world);
	run(world, "echo x > new");
	look(world);
	assert_kind(world, "/new", CHANGE_CREATED);
	assert_true(world->list.count <= CHANGE_LIMIT);
	/* what is too deep for nftw(3) */
	run(world, "rm -rf d");
}

static void much_in_one_directory_is_one_row(void **state)
{
	struct world *world = *state;

	begin(world);
	run(world, "mkdir many few; (cd many && seq 1000 | xargs touch); (cd few && touch 1 2 3)");
	look(world);
	assert_kind(world, "/many", CHANGE_CREATED);
	assert_int_equal(find(world, "/many")->below, 1000);
	assert_null(find(world, "/many/1"));
	assert_kind(world, "/few/3", CHANGE_CREATED);
	assert_int_equal(world->list.count, 5);
}

struct exchange {
	int fd;
	atomic_bool is_over;
};

/* A directory and a link out of the place change names. */
static void *exchange(void *argument)
{
	struct exchange *exchange = argument;

	while (!atomic_load(&exchange->is_over))
		(void)syscall(SYS_renameat2, exchange->fd, "real", exchange->fd, "link",
			      RENAME_EXCHANGE);
	return NULL;
}

static void an_exchanger_leads_no_look_outside(void **state)
{
	struct world *world = *state;
	struct exchange race = { .is_over = false };
	pthread_t thread;
	char digest[SHA256_HEX_BYTES] =
		"4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865";

	/* "1\n" outside, which nobody may have read */
	make(world->fixture, "outside/f", "1\n");
	run(world, "mkdir real; echo inside > real/f; ln -s ../outside link");
	race.fd = open(world->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(pthread_create(&thread, NULL, exchange, &race), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		begin(world);
		run(world, "for d in real link; do test -L $d || echo more > $d/f; done");
		look(world);
		for (size_t j = 0; j < world->list.count; j++) {
			const struct change *change = &world->list.changes[j];

			assert_true(!change->after || strcmp(change->after->sha256, digest) != 0);
			assert_true(!change->before || strcmp(change->before->sha256, digest) != 0);
		}
		arena_reset(&world->arena);
		tree_root_end(&world->root);
	}
	atomic_store(&race.is_over, true);
	(void)pthread_join(thread, NULL);
	(void)close(race.fd);
}

static void a_digest_is_of_the_object_that_was_looked_at(void **state)
{
	struct world *world = *state;
	unsigned char digest[SHA256_BYTES];
	struct tree_entry entry;
	struct stat status;
	int fd;

	run(world, "echo a > f; ln -s f link; mkfifo fifo");
	fd = open(world->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fstatat(fd, "f", &status, 0), 0);
	entry = (struct tree_entry){ .inode = status.st_ino,
				     .size = (uint64_t)status.st_size,
				     .changed_ns = sweep_stamp_ns(&status),
				     .mode = status.st_mode };
	assert_true(tree_digest(fd, "f", &entry, digest));
	assert_false(tree_digest(fd, "link", &entry, digest));
	assert_false(tree_digest(fd, "fifo", &entry, digest));
	assert_false(tree_digest(fd, "../place/f", &entry, digest));
	assert_false(tree_digest(fd, "none", &entry, digest));
	run(world, "echo b > f");
	assert_false(tree_digest(fd, "f", &entry, digest));
	(void)close(fd);
}

/* ---- pictures ---- */

static struct stat object(uint64_t inode, mode_t mode)
{
	return (struct stat){ .st_dev = 7, .st_ino = inode, .st_mode = mode, .st_size = 3 };
}

static void fill(struct tree_picture *picture)
{
	static const char *const names[] = { "b", "a", "", "c\n", "\377" };
	struct stat top = object(1, S_IFDIR | 0755), sub = object(2, S_IFDIR | 0755);

	tree_picture_enter(picture, "", &top, 0);
	tree_picture_add(picture, "sub", &sub, 0);
	for (unsigned i = 0; i < 5; i++) {
		struct stat file = object(10 + i, S_IFREG | 0644);

		if (names[i][0])
			tree_picture_add(picture, names[i], &file, i == 4 ? TREE_BORN : 0);
	}
	tree_picture_enter(picture, "sub", &sub, TREE_VAGUE);
	assert_int_equal(picture->code, 0);
}

static void names_are_found_in_a_picture(void **state)
{
	struct tree_picture picture = { 0 }, empty = { 0 };
	unsigned char digest[SHA256_BYTES] = "digest";
	uint32_t entry;

	(void)state;
	assert_int_equal(tree_picture_by_path(&empty, ""), TREE_NONE);
	tree_picture_free(&empty);
	fill(&picture);
	assert_int_equal(tree_picture_by_path(&picture, "sub"), 1);
	assert_int_equal(tree_picture_by_path(&picture, "su"), TREE_NONE);
	assert_int_equal(tree_picture_by_inode(&picture, 7, 2), 1);
	assert_int_equal(tree_picture_by_inode(&picture, 8, 2), TREE_NONE);
	entry = tree_picture_find(&picture, 0, "a");
	assert_int_equal(picture.entries[entry].inode, 11);
	assert_int_equal(tree_picture_find(&picture, 0, "aa"), TREE_NONE);
	assert_int_equal(tree_picture_find(&picture, 1, "a"), TREE_NONE);
	assert_null(tree_picture_digest(&picture, entry));
	tree_picture_set_digest(&picture, entry, digest);
	assert_memory_equal(tree_picture_digest(&picture, entry), digest, sizeof(digest));
	/* the names of the last folder come again */
	tree_picture_again(&picture);
	assert_int_equal(picture.entry_count, 5);
	tree_picture_free(&picture);
}

static void what_does_not_fit_is_no_picture(void **state)
{
	struct tree_picture picture = { 0 };
	struct stat top = object(1, S_IFDIR | 0755), file = object(2, S_IFREG | 0644);

	(void)state;
	tree_picture_enter(&picture, "", &top, 0);
	for (unsigned i = 0; i <= 2 * TREE_LIMIT_NAMES && !picture.code; i++)
		tree_picture_add(&picture, "n", &file, 0);
	assert_int_equal(picture.code, -E2BIG);
	tree_picture_free(&picture);
	for (unsigned i = 0; i <= 2 * TREE_LIMIT_FOLDERS && !picture.code; i++)
		tree_picture_enter(&picture, "f", &top, 0);
	assert_int_equal(picture.code, -E2BIG);
	tree_picture_free(&picture);
}

/* Each byte of it is changed once, and each length is tried. */
static void a_torn_picture_is_none(void **state)
{
	struct world *world = *state;
	struct tree_picture picture = { 0 }, loaded = { 0 };
	char bytes[8192], workspace[PATH_LIMIT_BYTES];
	size_t length;
	int fd;

	fill(&picture);
	assert_int_equal(tree_picture_save(&picture, "/w", world->state_fd, "p"), 0);
	fd = openat(world->state_fd, "p", O_RDWR | O_CLOEXEC);
	length = (size_t)read(fd, bytes, sizeof(bytes));
	assert_true(length > 0 && length < sizeof(bytes));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_true(tree_picture_is_kept(&picture, fd, true));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_true(tree_picture_workspace(fd, workspace));
	assert_string_equal(workspace, "/w");
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(tree_picture_load(fd, &loaded), 0);
	assert_int_equal(loaded.entry_count, 5);
	assert_int_not_equal(tree_picture_find(&loaded, 0, "c\n"), TREE_NONE);
	tree_picture_free(&loaded);
	for (size_t i = 0; i < length; i++) {
		bytes[i] ^= 0x41;
		assert_int_equal(pwrite(fd, bytes + i, 1, (off_t)i), 1);
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		assert_int_equal(tree_picture_load(fd, &loaded), -EBADMSG);
		bytes[i] ^= 0x41;
		assert_int_equal(pwrite(fd, bytes + i, 1, (off_t)i), 1);
	}
	for (size_t i = length; i-- > 0;) {
		assert_int_equal(ftruncate(fd, (off_t)i), 0);
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		assert_int_equal(tree_picture_load(fd, &loaded), -EBADMSG);
	}
	(void)close(fd);
	tree_picture_free(&picture);
}

static void the_store_has_the_last_of_a_workspace(void **state)
{
	struct world *world = *state;
	struct tree_picture picture = { 0 }, loaded = { 0 };
	int fd;

	assert_int_equal(tree_store_open(world->state_fd, world->path), -ENOENT);
	fill(&picture);
	assert_int_equal(tree_store_save(&picture, world->state_fd, world->path), 0);
	fd = tree_store_open(world->state_fd, world->path);
	assert_true(fd >= 0);
	assert_int_equal(tree_picture_load(fd, &loaded), 0);
	assert_int_equal(loaded.folder_count, 2);
	(void)close(fd);
	assert_true(tree_store_open(world->state_fd, "/other") < 0);
	tree_picture_free(&picture);
	tree_picture_free(&loaded);
}

/* What was before a change is known of the task before, too. */
static void an_earlier_look_tells_what_was_before(void **state)
{
	struct world *world = *state;

	run(world, "echo a > f; echo b > g");
	begin(world);
	run(world, "echo c > f");
	look(world);
	tree_keep(&world->root.tree);
	tree_root_end(&world->root);
	/* touched before any survey */
	assert_int_equal(begin_at(world, world->path, false), 0);
	tree_picture_free(&world->root.tree.before);
	world->root.tree.phase = TREE_IDLE;
	run(world, "echo d > f; rm g");
	look(world);
	assert_kind(world, "/f", CHANGE_MODIFIED);
	assert_kind(world, "/g", CHANGE_REMOVED);
	assert_true(find(world, "/f")->before->sha256[0]);
}

int main(void)
{
#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, make_world, remove_world)
	const struct CMUnitTest tests[] = {
		WITH_WORLD(each_change_has_its_kind),
		WITH_WORLD(a_time_that_is_set_back_hides_nothing),
		WITH_WORLD(a_place_that_is_a_file_is_looked_at_alone),
		WITH_WORLD(another_object_is_refused),
		WITH_WORLD(special_files_are_told_and_never_opened),
		WITH_WORLD(a_deep_tree_ends_and_is_told_as_cut),
		WITH_WORLD(much_in_one_directory_is_one_row),
		WITH_WORLD(an_exchanger_leads_no_look_outside),
		WITH_WORLD(a_digest_is_of_the_object_that_was_looked_at),
		cmocka_unit_test(names_are_found_in_a_picture),
		cmocka_unit_test(what_does_not_fit_is_no_picture),
		WITH_WORLD(a_torn_picture_is_none),
		WITH_WORLD(the_store_has_the_last_of_a_workspace),
		WITH_WORLD(an_earlier_look_tells_what_was_before),
	};

	return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
