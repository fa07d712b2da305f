#include "trace/ledger.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "trace/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define LAYER "ledger"
#define DAMAGED \
	"`bawn trace verify` says what is wrong; moved away, with trace/tasks, it is begun anew"

static int open_file(const struct trace_store *store)
{
	int CLEANUP_FD fd =
		openat(store->fd, TRACE_LEDGER,
		       O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	struct stat status;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_uid != getauxval(AT_EUID) ||
	    (status.st_mode & 022))
		return -EPERM;
	return TAKE_FD(fd);
}

/* Who holds a lock on the file (proc_locks(5)); 0 where nobody is found. */
static int find_holder(int fd)
{
	FILE *locks = fopen("/proc/locks", "re");
	struct stat status;
	char line[256], wanted[64];
	int holder = 0;

	if (locks && fstat(fd, &status) == 0) {
		(void)snprintf(wanted, sizeof(wanted), " %02x:%02x:%" PRIu64 " ",
			       major(status.st_dev), minor(status.st_dev), (uint64_t)status.st_ino);
		while (!holder && fgets(line, sizeof(line), locks))
			if (strstr(line, wanted) &&
			    sscanf(line, "%*d: FLOCK ADVISORY WRITE %d", &holder) != 1)
				holder = 0;
	}
	if (locks)
		(void)fclose(locks);
	return holder;
}

/* 0, -ETIMEDOUT or what flock(2) says. */
static int take_lock(int fd)
{
	uint64_t until = 0, pause_ns = 20000;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		struct timespec pause = { .tv_nsec = (long)pause_ns };

		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (!until)
			until = clock_monotonic_ns() + LEDGER_WAIT_NS;
		else if (clock_monotonic_ns() > until)
			return -ETIMEDOUT;
		(void)nanosleep(&pause, NULL);
		if (pause_ns < 2000000)
			pause_ns *= 2;
	}
	return 0;
}

static int lock(int fd, struct error *error)
{
	int result = take_lock(fd), holder;

	if (result != -ETIMEDOUT)
		return result < 0 ? error_errno(error, result, "locking the trace's ledger") : 0;
	holder = find_holder(fd);
	return error_set(error, result,
			 "the trace's ledger is locked by process %d, which does not go on; let it "
			 "(`kill -CONT %d`) or end it",
			 holder, holder);
}

static void put_id(struct json *json)
{
	unsigned char random[(LEDGER_INSTALLATION_BYTES - 1) / 2] = { 0 };
	char text[LEDGER_INSTALLATION_BYTES];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		json->buffer->failed = true;
	for (size_t i = 0; i < sizeof(random); i++)
		(void)snprintf(text + 2 * i, 3, "%02x", random[i]);
	json_string(json, "installation", text);
	json_string(json, "bawn", BAWN_VERSION);
}

/* What has to stand in it before anything else: that it was begun, or what was cut off. */
static int put_first(struct chain *ledger, const struct chain_torn *torn)
{
	struct chain_record record = { .layer = LAYER, .type = "ledger.start" };
	int result = 0;

	if (torn->bytes && ledger->records) {
		struct json *json;

		record.type = "resumed";
		json = chain_begin(ledger, &record);
		json_unsigned(json, "torn_bytes", torn->bytes);
		json_string(json, "torn_sha256", torn->sha256);
		result = chain_end(ledger);
	} else if (!ledger->records) {
		put_id(chain_begin(ledger, &record));
		result = chain_end(ledger);
	}
	return result;
}

int ledger_open(const struct trace_store *store, const struct chain_origin *origin,
		struct chain *ret_ledger, struct error *error)
{
	struct chain ledger = CHAIN_NONE;
	struct chain_torn torn;
	int fd = open_file(store);
	int result;

	if (fd < 0)
		return error_errno(error, fd, "the trace's ledger");
	result = lock(fd, error);
	if (result < 0) {
		fd_close(&fd);
		return result;
	}
	result = chain_resume(fd, CHAIN_NO_HASH, origin, &ledger, &torn);
	if (result < 0)
		return error_set(error, result, "the trace's ledger ends in no record of ours; %s",
				 DAMAGED);
	result = put_first(&ledger, &torn);
	if (result < 0) {
		chain_close(&ledger);
		return error_errno(error, result, "the trace's ledger");
	}
	*ret_ledger = ledger;
	return 0;
}

static int end_and_write(struct chain *ledger, struct error *error)
{
	int result = chain_end(ledger);

	if (result == 0)
		result = chain_flush(ledger, false);
	return result < 0 ? error_errno(error, result, "the trace's ledger cannot be written") : 0;
}

int ledger_task_start(const struct trace_store *store, const struct chain_origin *origin,
		      const char *task, char ret_hash[static SHA256_HEX_BYTES], struct error *error)
{
	const struct chain_record record = { .task = task, .layer = LAYER, .type = "task.start" };
	struct chain CLEANUP_CHAIN ledger = CHAIN_NONE;
	int result = ledger_open(store, origin, &ledger, error);

	if (result < 0)
		return result;
	(void)chain_begin(&ledger, &record);
	result = end_and_write(&ledger, error);
	if (result == 0)
		memcpy(ret_hash, ledger.last, SHA256_HEX_BYTES);
	return result;
}

int ledger_task_end(const struct trace_store *store, const struct chain_origin *origin,
		    const char *task, const char *type, uint64_t records, const char *last,
		    struct error *error)
{
	const struct chain_record record = { .task = task, .layer = LAYER, .type = type };
	struct chain CLEANUP_CHAIN ledger = CHAIN_NONE;
	int result = ledger_open(store, origin, &ledger, error);
	struct json *json;

	if (result < 0)
		return result;
	json = chain_begin(&ledger, &record);
	json_unsigned(json, "records", records);
	json_string(json, "last", records ? last : NULL);
	return end_and_write(&ledger, error);
}

int ledger_installation(const struct trace_store *store,
			char ret_id[static LEDGER_INSTALLATION_BYTES], struct error *error)
{
	static const char member[] = "\"body\":{\"installation\":\"";
	char line[2048];
	int CLEANUP_FD fd =
		openat(store->fd, TRACE_LEDGER, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t length = fd < 0 ? -errno : fd_read_all(fd, line, sizeof(line) - 1);
	const char *at;

	if (length < 0)
		return error_errno(error, (int)length, "the trace's ledger");
	line[length] = '\0';
	line[strcspn(line, "\n")] = '\0';
	at = strstr(line, member);
	if (!at ||
	    strspn(at + sizeof(member) - 1, "0123456789abcdef") != LEDGER_INSTALLATION_BYTES - 1)
		return error_set(error, EBADMSG, "the trace's ledger has no beginning of ours; %s",
				 DAMAGED);
	memcpy(ret_id, at + sizeof(member) - 1, LEDGER_INSTALLATION_BYTES - 1);
	ret_id[LEDGER_INSTALLATION_BYTES - 1] = '\0';
	return 0;
}
