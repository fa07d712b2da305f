/*
 * Blobs and bawn-pack. The role is found beside the program that starts it: the test puts a copy
 * there, or none, or one that fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "home.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "trace/blob.h"
#include "trace/mask.h"
#include "trace/store.h"

#define TOKEN  \
	"ghp_" \
	"aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"

struct place {
	struct fixture *fixture;
	struct trace_store store;
	int directory;
};

static char beside[4096], built[4096];

static void find_programs(void)
{
	char own[4000];
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);

	assert_true(length > 0);
	own[length] = '\0';
	*strrchr(own, '/') = '\0';
	snprintf(beside, sizeof(beside), "%s/bawn-pack", own);
	snprintf(built, sizeof(built), "%s/../../bawn-pack", own);
}

static void put_program(const char *from)
{
	char bytes[65536];
	int CLEANUP_FD in = -1, CLEANUP_FD out = -1;
	ssize_t count;

	(void)unlink(beside);
	if (!from)
		return;
	in = open(from, O_RDONLY | O_CLOEXEC);
	out = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	assert_true(in >= 0 && out >= 0);
	while ((count = read(in, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(out, bytes, (size_t)count), count);
}

static int set_up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	struct error error = ERROR_NONE;

	find_programs();
	put_program(built);
	place->fixture = fixture_new();
	(void)fchmod(place->fixture->state_fd, 0700);
	if (trace_store_open(place->fixture->state_fd, &place->store, &error) < 0 ||
	    blob_directory(&place->store, "t-1", true, &place->directory, &error) < 0)
		fail_msg("%s", error.message);
	*state = place;
	return 0;
}

static int tear_down(void **state)
{
	struct place *place = *state;

	put_program(NULL);
	close(place->directory);
	trace_store_close(&place->store);
	fixture_free(place->fixture);
	free(place);
	return 0;
}

/* Names in the directory. */
static unsigned entries(const struct place *place)
{
	int fd = openat(place->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fdopendir(fd);
	struct dirent *entry;
	unsigned count = 0;

	assert_non_null(directory);
	while ((entry = readdir(directory)))
		count += entry->d_name[0] != '.' || strncmp(entry->d_name, ".new", 4) == 0;
	closedir(directory);
	return count;
}

static int file_of(const struct place *place, const void *bytes, size_t length)
{
	int fd = openat(place->fixture->state_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, bytes, length), 0);
	return fd;
}

static void seal(const struct place *place, const struct mask *mask, const void *bytes,
		 size_t length, struct blob *ret_blob)
{
	int CLEANUP_FD fd = file_of(place, bytes, length);
	struct error error = ERROR_NONE;

	if (blob_seal(place->directory, NULL, mask, fd, ret_blob, &error) < 0)
		fail_msg("%s", error.message);
}

static char *get(const struct place *place, const char *name, size_t length)
{
	struct blob_reader CLEANUP_BLOB_READER reader;
	struct error error = ERROR_NONE;
	char *bytes = malloc(length + 1);
	size_t used = 0;
	ssize_t count;

	reader = BLOB_READER_NONE;
	if (blob_open(place->directory, name, length, &reader, &error) < 0)
		fail_msg("%s", error.message);
	while ((count = blob_read(&reader, bytes + used, length + 1 - used)) > 0)
		used += (size_t)count;
	assert_int_equal(count, 0);
	assert_int_equal(used, length);
	return bytes;
}

static void hash_text(const void *bytes, size_t length, char text[static SHA256_HEX_BYTES])
{
	unsigned char digest[SHA256_BYTES];
	struct sha256 hash;

	sha256_begin(&hash);
	sha256_update(&hash, bytes, length);
	sha256_end(&hash, digest);
	sha256_hex(digest, text);
}

/* Lines that compress, or noise that does not. */
static char *text_of(size_t length, bool is_noise)
{
	char *text = malloc(length + 64);
	uint64_t seed = 88172645463325252ull;

	for (size_t i = 0; i < length;) {
		seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
		if (is_noise) {
			memcpy(text + i, &seed, 8);
			i += 8;
		} else {
			i += (size_t)sprintf(text + i, "line %u of %zu: all is well\n",
					     (unsigned)(seed % 100), i);
		}
	}
	return text;
}

static void test_prepared(void **state)
{
	struct place *place = *state;
	struct error error = ERROR_NONE;
	int prepared = blob_prepare(place->directory);
	const char *texts[] = { "some output\n", "some output\n", "another\n" };

	if (prepared == -EOPNOTSUPP)
		skip();
	assert_true(prepared >= 0);
	for (size_t i = 0; i < 3; i++) {
		int CLEANUP_FD fd = file_of(place, texts[i], strlen(texts[i]));
		struct blob blob;

		assert_int_equal(blob_seal(place->directory, &prepared, NULL, fd, &blob, &error),
				 0);
		/* the first takes it; what is kept already leaves the next one alone */
		assert_true(i == 1 ? prepared >= 0 : prepared == -1);
		if (i == 0)
			prepared = blob_prepare(place->directory);
		assert_int_equal(blob_check(place->directory, blob.name, blob.kept_bytes, &error),
				 BLOB_WHOLE);
	}
	assert_int_equal(entries(place), 2);
}

/* What is behind these bytes is compressed in another frame. */
#define LARGE_BYTES (8u * 1024 * 1024)

static void test_round_trip(void **state)
{
	static const size_t sizes[] = {
		0,	1,	 4096,	      BLOB_PACK_BYTES - 1, BLOB_PACK_BYTES, 300000,
		262144, 3000001, LARGE_BYTES, LARGE_BYTES + 1,	   9000000
	};
	struct place *place = *state;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int noise = 0; noise < 2; noise++) {
			char *text = text_of(sizes[i], noise), *again, wanted[SHA256_HEX_BYTES];
			unsigned before = entries(place);
			struct blob blob, same;

			hash_text(text, sizes[i], wanted);
			seal(place, NULL, text, sizes[i], &blob);
			assert_string_equal(blob.sha256, wanted);
			assert_string_equal(blob.name, wanted);
			assert_int_equal(blob.bytes, sizes[i]);
			assert_int_equal(blob.kept_bytes, sizes[i]);
			assert_int_equal(blob.masked, 0);
			assert_int_equal(blob.unpacked.code, 0);
			assert_true(blob.is_packed == (sizes[i] >= BLOB_PACK_BYTES && !noise));
			assert_true(blob.is_packed ? blob.stored_bytes < sizes[i] / 2 :
						     blob.stored_bytes == sizes[i]);
			again = get(place, blob.name, sizes[i]);
			assert_memory_equal(text, again, sizes[i]);
			free(again);
			/* written once */
			assert_true(entries(place) <= before + 1);
			before = entries(place);
			seal(place, NULL, text, sizes[i], &same);
			assert_string_equal(same.name, blob.name);
			assert_true(same.is_packed == blob.is_packed);
			assert_int_equal(same.stored_bytes, blob.stored_bytes);
			assert_int_equal(entries(place), before);
			assert_int_equal(blob_check(place->directory, blob.name, sizes[i],
						    &(struct error){ 0 }),
					 BLOB_WHOLE);
			free(text);
		}
}

static void test_put(void **state)
{
	static const char text[] = "small: " TOKEN " and more";
	static const unsigned char key[MASK_KEY_BYTES] = { 7 };
	struct mask CLEANUP_MASK mask = MASK_NONE;
	struct place *place = *state;
	struct error error = ERROR_NONE;
	char wanted[SHA256_HEX_BYTES], *kept;
	struct blob blob;

	mask_begin(&mask, key);
	assert_int_equal(blob_put(place->directory, &mask, text, sizeof(text) - 1, &blob, &error),
			 0);
	hash_text(text, sizeof(text) - 1, wanted);
	assert_string_equal(blob.sha256, wanted);
	assert_string_not_equal(blob.name, wanted);
	assert_int_equal(blob.masked, 1);
	kept = get(place, blob.name, blob.kept_bytes);
	kept[blob.kept_bytes] = '\0';
	assert_non_null(strstr(kept, "small: [masked:github:"));
	assert_non_null(strstr(kept, "] and more"));
	free(kept);
}

/*
 * Secrets anywhere, across the chunks of reading too: both hashes are right, and no secret is
 * kept.
 */
static void test_masked(void **state)
{
	static const size_t places[] = { 0, 1000, 131050, 262080, 262144 - 1, 524280, 899900 };
	static const unsigned char key[MASK_KEY_BYTES] = { 7 };
	struct mask CLEANUP_MASK mask = MASK_NONE;
	struct place *place = *state;
	const size_t length = 900000;

	mask_begin(&mask, key);
	for (int noise = 0; noise < 2; noise++)
		for (size_t first = 0; first < sizeof(places) / sizeof(places[0]); first++) {
			char *text = text_of(length, false), *kept;
			char wanted[SHA256_HEX_BYTES], hash[SHA256_HEX_BYTES];
			struct blob blob;

			if (noise) {
				char *bytes = text_of(length, true);

				/* what does not get smaller is masked all the same */
				memcpy(text + 2000, bytes, 120000);
				memcpy(text + 265000, bytes, 250000);
				memcpy(text + 530000, bytes, 360000);
				free(bytes);
			}
			for (size_t i = first; i < sizeof(places) / sizeof(places[0]); i++) {
				text[places[i] ? places[i] - 1 : 0] = ' ';
				memcpy(text + places[i] + !places[i], TOKEN, sizeof(TOKEN) - 1);
				text[places[i] + !places[i] + sizeof(TOKEN) - 1] = ' ';
			}
			hash_text(text, length, wanted);
			seal(place, &mask, text, length, &blob);
			assert_string_equal(blob.sha256, wanted);
			assert_int_equal(blob.bytes, length);
			assert_int_equal(blob.masked, sizeof(places) / sizeof(places[0]) - first);
			kept = get(place, blob.name, blob.kept_bytes);
			hash_text(kept, blob.kept_bytes, hash);
			assert_string_equal(blob.name, hash);
			assert_null(memmem(kept, blob.kept_bytes, TOKEN, sizeof(TOKEN) - 1));
			assert_non_null(memmem(kept, blob.kept_bytes, "[masked:github:", 15));
			free(kept);
			free(text);
		}
}

static void test_without_the_role(void **state)
{
	static const char *const broken[] = { NULL, "/bin/false", "/bin/true", "/bin/cat" };
	struct place *place = *state;

	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		char *text = text_of(200000 + i, false), *again;
		struct blob blob;

		put_program(broken[i]);
		seal(place, NULL, text, 200000 + i, &blob);
		assert_false(blob.is_packed);
		assert_int_not_equal(blob.unpacked.code, 0);
		assert_non_null(strstr(blob.unpacked.message, "bawn-pack"));
		assert_int_equal(blob.stored_bytes, 200000 + i);
		again = get(place, blob.name, 200000 + i);
		assert_memory_equal(text, again, 200000 + i);
		free(again);
		free(text);
	}
}

static void write_file(const struct place *place, const char *name, const char *suffix,
		       const void *bytes, size_t length)
{
	char path[128];
	int CLEANUP_FD fd = -1;

	snprintf(path, sizeof(path), "%s%s", name, suffix);
	(void)unlinkat(place->directory, path, 0);
	fd = openat(place->directory, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, bytes, length), 0);
}

static enum blob_state check(const struct place *place, const char *name, uint64_t limit)
{
	struct error error = ERROR_NONE;

	return blob_check(place->directory, name, limit, &error);
}

static void test_changed_and_missing(void **state)
{
	struct place *place = *state;
	char *text = text_of(300000, false), path[128], byte;
	struct blob packed, plain;
	int fd;

	seal(place, NULL, text, 300000, &packed);
	seal(place, NULL, text, 100, &plain);
	assert_true(packed.is_packed);
	/* a byte of either */
	write_file(place, plain.name, "", "something else", 14);
	assert_int_equal(check(place, plain.name, BLOB_LIMIT_BYTES), BLOB_CHANGED);
	snprintf(path, sizeof(path), "%s.zst", packed.name);
	fd = openat(place->directory, path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(fd, &byte, 1, 2000), 1);
	byte ^= 0x20;
	assert_int_equal(pwrite(fd, &byte, 1, 2000), 1);
	assert_int_equal(check(place, packed.name, BLOB_LIMIT_BYTES), BLOB_CHANGED);
	byte ^= 0x20;
	assert_int_equal(pwrite(fd, &byte, 1, 2000), 1);
	assert_int_equal(check(place, packed.name, BLOB_LIMIT_BYTES), BLOB_WHOLE);
	/* longer than its record says, shorter, cut, and no frame at all */
	assert_int_equal(check(place, packed.name, 299999), BLOB_CHANGED);
	assert_int_equal(ftruncate(fd, (off_t)packed.stored_bytes - 10), 0);
	assert_int_equal(check(place, packed.name, 300000), BLOB_CHANGED);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(check(place, packed.name, 300000), BLOB_CHANGED);
	close(fd);
	write_file(place, packed.name, ".zst", "no frame", 8);
	assert_int_equal(check(place, packed.name, 300000), BLOB_CHANGED);
	/* what is no file */
	assert_int_equal(blob_remove(place->directory, packed.name), 0);
	assert_int_equal(check(place, packed.name, 300000), BLOB_MISSING);
	assert_int_equal(blob_remove(place->directory, packed.name), -ENOENT);
	assert_int_equal(symlinkat("/etc/passwd", place->directory, packed.name), 0);
	assert_int_equal(check(place, packed.name, 300000), BLOB_CHANGED);
	assert_int_equal(blob_remove(place->directory, packed.name), 0);
	assert_int_equal(mkfifoat(place->directory, packed.name, 0600), 0);
	assert_int_equal(check(place, packed.name, 300000), BLOB_CHANGED);
	assert_int_equal(check(place, "../../../etc/passwd", 300000), BLOB_CHANGED);
	free(text);
}

/* Without the role a compressed blob cannot be told; it is neither changed nor missing. */
static void test_unreadable(void **state)
{
	struct place *place = *state;
	char *text = text_of(300000, false);
	struct blob blob;

	seal(place, NULL, text, 300000, &blob);
	put_program(NULL);
	assert_int_equal(check(place, blob.name, 300000), BLOB_UNREADABLE);
	put_program("/bin/false");
	assert_int_equal(check(place, blob.name, 300000), BLOB_UNREADABLE);
	free(text);
}

/* 64 KiB that want to be 1 GiB: the reader gets what its record says and no more. */
static void test_bomb(void **state)
{
	struct place *place = *state;
	/* a frame of run-length blocks, 128 KiB of zeros each (RFC 8878, 3.1.1.2) */
	unsigned char *frame = malloc(6 + 4 * 16384);
	size_t used = 0;
	char name[SHA256_HEX_BYTES];
	struct rusage usage;

	memcpy(frame, (unsigned char[]){ 0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58 },
	       6); /* window 2 MiB */
	used = 6;
	for (unsigned i = 0; i < 8192; i++) {
		uint32_t head = (0x20000u << 3) | (1u << 1) | (i == 8191);

		frame[used++] = (unsigned char)head;
		frame[used++] = (unsigned char)(head >> 8);
		frame[used++] = (unsigned char)(head >> 16);
		frame[used++] = 0;
	}
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	write_file(place, name, ".zst", frame, used);
	assert_int_equal(check(place, name, 1000), BLOB_CHANGED);
	assert_int_equal(check(place, name, BLOB_LIMIT_BYTES), BLOB_CHANGED);
	assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
#ifndef __SANITIZE_ADDRESS__
	assert_true(usage.ru_maxrss < 64 * 1024);
#endif
	/* one that wants a window of 2 GiB */
	frame[5] = 0xa8;
	write_file(place, name, ".zst", frame, used);
	assert_int_equal(check(place, name, BLOB_LIMIT_BYTES), BLOB_CHANGED);
	free(frame);
}

/* A disk with no room: the reason is told, nothing is left, and what was there stays. */
static void test_no_room(void **state)
{
	const struct rlimit small = { 150000, RLIM_INFINITY },
			    all = { RLIM_INFINITY, RLIM_INFINITY };
	struct place *place = *state;
	char *text = text_of(300000, true);
	int CLEANUP_FD fd = file_of(place, text, 300000);
	struct error error = ERROR_NONE;
	unsigned before = entries(place);
	struct blob blob;

	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(blob_seal(place->directory, NULL, NULL, fd, &blob, &error), -EFBIG);
	assert_non_null(strstr(error.message, "300000 bytes"));
	assert_int_equal(blob_put(place->directory, NULL, text, 200000, &blob, &error), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
	assert_int_equal(entries(place), before);
	assert_int_equal(blob_seal(place->directory, NULL, NULL, fd, &blob, &error), 0);
	free(text);
}

static void test_places(void **state)
{
	struct place *place = *state;
	struct error error = ERROR_NONE;
	int fd;

	assert_int_equal(blob_directory(&place->store, "../x", true, &fd, &error), -EINVAL);
	assert_int_equal(blob_directory(&place->store, "", true, &fd, &error), -EINVAL);
	assert_int_equal(blob_directory(&place->store, "other", false, &fd, &error), -ENOENT);
	/* what one that was killed left */
	write_file(place, ".new-0123456789abcdef", "", "half", 4);
	assert_int_equal(entries(place), 1);
	assert_int_equal(blob_directory(&place->store, "t-1", true, &fd, &error), 0);
	assert_int_equal(entries(place), 0);
	close(fd);
	assert_int_equal(unlinkat(place->store.fd, "blobs/t-1", AT_REMOVEDIR), 0);
	assert_int_equal(symlinkat("/tmp", place->store.fd, "blobs/t-1"), 0);
	assert_int_equal(blob_directory(&place->store, "t-1", true, &fd, &error), -ENOTDIR);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_round_trip),
		TEST(test_prepared),
		TEST(test_put),
		TEST(test_masked),
		TEST(test_without_the_role),
		TEST(test_changed_and_missing),
		TEST(test_unreadable),
		TEST(test_bomb),
		TEST(test_no_room),
		TEST(test_places),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
