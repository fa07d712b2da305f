/*
 * bawn-sign is started and has its key open before the ledger is locked, so that others wait for
 * one message and its answer alone. Only making a key happens under the lock as a whole: of two
 * that find none, one makes it.
 */
#include "trace/sign.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "ipc/message.h"
#include "ipc/role.h"
#include "trace/store.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND_NS 1000000000ull

#define PUBLIC "public"
#define PUBLIC_NEW "public.new"
#define HEAD_NEW "head.new"

bool sign_is_due(const struct trace_store *store)
{
	uint64_t now = clock_wall_ns(), then;
	struct stat status;

	if (fstatat(store->fd, TRACE_HEAD, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return true;
	then = (uint64_t)status.st_mtim.tv_sec * SECOND_NS + (uint64_t)status.st_mtim.tv_nsec;
	/* one of the future: the clock was set back */
	return then > now || now - then >= SIGN_AGE_NS;
}

/* The directory of the keys, made where it is missing. */
static int open_keys(const struct trace_store *store, struct error *error)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int CLEANUP_FD fd = -1;
	struct stat status;

	if (mkdirat(store->fd, TRACE_KEY, 0700) < 0 && errno != EEXIST)
		return error_errno(error, errno, "making trace/key");
	fd = openat(store->fd, TRACE_KEY, flags);
	if (fd < 0 || fstat(fd, &status) < 0)
		return error_errno(error, errno, "trace/key");
	if (status.st_uid != geteuid() || (status.st_mode & 077))
		return error_set(
			error, EPERM,
			"trace/key is not the caller's own, or open to others (chmod 700)");
	return TAKE_FD(fd);
}

static int start(enum sign_kind kind, int keys_fd, struct role *ret_role, struct error *error)
{
	const char byte = (char)kind;
	int CLEANUP_FD config_fd = role_config(&byte, 1);

	if (config_fd < 0)
		return error_errno(error, config_fd, "starting bawn-sign");
	return role_spawn(EDGE_SUPERVISOR_SIGN, config_fd, &keys_fd, keys_fd >= 0 ? 1 : 0, ret_role,
			  error);
}

/* Why there is no answer: it has ended already, or must not go on. */
static int no_answer(struct role *role, const char *what, struct error *error)
{
	int status;

	(void)kill(role->pid, SIGKILL);
	status = role_wait(role);
	if (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status))
		return error_set(error, EBADMSG, "bawn-sign failed in its step %d",
				 WEXITSTATUS(status));
	return error_set(error, EBADMSG, "bawn-sign gave no good answer: %s", what);
}

static int receive(struct role *role, uint32_t type, size_t length, struct message *ret_message,
		   struct error *error)
{
	struct pollfd answer = { .fd = role->channel, .events = POLLIN };
	int result;

	do
		result = poll(&answer, 1, SIGN_WAIT_MS);
	while (result < 0 && errno == EINTR);
	if (result <= 0)
		return no_answer(role, "time is up", error);
	result = message_receive(role->channel, ret_message);
	if (result < 0)
		return no_answer(role, error_text(result), error);
	message_close_fds(ret_message);
	if (ret_message->type == SIGN_FAILED)
		return error_set(
			error, EKEYREJECTED, "%.*s",
			(int)strnlen((const char *)ret_message->bytes, ret_message->length),
			(const char *)ret_message->bytes);
	if (ret_message->type != type || ret_message->length != length)
		return no_answer(role, "it is another one", error);
	return 0;
}

/* Replaces a file of ours as a whole, or leaves it as it is. */
/* The public key beside the private one: of whichever is there now. */
static int keep_public(int keys_fd, const unsigned char public[static SIGN_PUBLIC_BYTES])
{
	char wanted[SIGN_PEM_BYTES], found[SIGN_PEM_BYTES];
	int CLEANUP_FD fd = openat(keys_fd, PUBLIC, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : fd_read_all(fd, found, sizeof(found));

	sign_pem(public, wanted);
	if (length == (ssize_t)strlen(wanted) && memcmp(found, wanted, (size_t)length) == 0)
		return 0;
	return fd_replace(keys_fd, PUBLIC, PUBLIC_NEW, wanted, strlen(wanted));
}

static bool has_key(int keys_fd)
{
	return faccessat(keys_fd, SIGN_KEY, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Gives the new key its name; never in the place of another. */
static int name_key(int keys_fd)
{
	if (syscall(SYS_renameat2, keys_fd, SIGN_KEY_NEW, keys_fd, SIGN_KEY, RENAME_NOREPLACE) <
		    0 &&
	    /* file systems without it; the ledger's lock keeps other makers away */
	    ((errno != EINVAL && errno != ENOSYS) ||
	     renameat(keys_fd, SIGN_KEY_NEW, keys_fd, SIGN_KEY) < 0))
		return -errno;
	return fsync(keys_fd) < 0 ? -errno : 0;
}

static int make_key(int keys_fd, struct error *error)
{
	struct role CLEANUP_ROLE role = ROLE_NONE;
	struct message message;
	int result = start(SIGN_KIND_MAKE, keys_fd, &role, error);

	if (result == 0)
		result = receive(&role, SIGN_MADE, SIGN_PUBLIC_BYTES, &message, error);
	if (result == 0) {
		result = name_key(keys_fd);
		if (result == 0)
			result = keep_public(keys_fd, message.bytes);
		if (result < 0)
			(void)error_errno(error, result, "making trace/key/sign");
	}
	if (result < 0)
		(void)unlinkat(keys_fd, SIGN_KEY_NEW, 0);
	return result;
}

/* The ledger, locked, with all that it has to begin with written. */
static int open_ledger(const struct trace_store *store, const struct chain_origin *origin,
		       struct chain *ret_ledger, struct error *error)
{
	int result = ledger_open(store, origin, ret_ledger, error);

	if (result == 0)
		result = chain_flush(ret_ledger, false);
	return result < 0 && !error->code ?
		       error_errno(error, result, "the trace's ledger cannot be written") :
		       result;
}

static int ensure_key(const struct trace_store *store, const struct chain_origin *origin,
		      int keys_fd, struct error *error)
{
	struct chain CLEANUP_CHAIN ledger = CHAIN_NONE;
	int result;

	if (has_key(keys_fd))
		return 0;
	result = open_ledger(store, origin, &ledger, error);
	return result < 0 || has_key(keys_fd) ? result : make_key(keys_fd, error);
}

static void put_fields(const struct sign_claim *claim, unsigned char ret_bytes[SIGN_HEAD_BYTES])
{
	memcpy(ret_bytes, claim->installation, SIGN_INSTALLATION_BYTES);
	memcpy(ret_bytes + SIGN_AT_SEQ, &claim->seq, sizeof(claim->seq));
	memcpy(ret_bytes + SIGN_AT_HASH, claim->hash, SIGN_HASH_BYTES);
}

static int ask(struct role *role, struct sign_claim *claim, struct error *error)
{
	unsigned char request[SIGN_HEAD_BYTES];
	struct message message;
	int result;

	put_fields(claim, request);
	result = message_send(role->channel, SIGN_HEAD, request, sizeof(request), NULL, 0);
	if (result < 0)
		return no_answer(role, error_text(result), error);
	result = receive(role, SIGN_SIGNATURE, SIGN_PUBLIC_BYTES + SIGN_SIGNATURE_BYTES, &message,
			 error);
	if (result < 0)
		return result;
	memcpy(claim->public, message.bytes, SIGN_PUBLIC_BYTES);
	memcpy(claim->signature, message.bytes + SIGN_PUBLIC_BYTES, SIGN_SIGNATURE_BYTES);
	return 0;
}

static void hex(const unsigned char *bytes, size_t length, char *ret_text)
{
	for (size_t i = 0; i < length; i++)
		(void)snprintf(ret_text + 2 * i, 3, "%02x", bytes[i]);
}

static int append(struct chain *ledger, const struct sign_claim *claim)
{
	const struct chain_record record = { .layer = "ledger", .type = "head" };
	char key[SHA256_HEX_BYTES], text[2 * SIGN_SIGNATURE_BYTES + 1];
	unsigned char digest[SHA256_BYTES];
	struct sha256 hash;
	struct json *json;
	int result;

	sha256_begin(&hash);
	sha256_update(&hash, claim->public, SIGN_PUBLIC_BYTES);
	sha256_end(&hash, digest);
	sha256_hex(digest, key);
	json = chain_begin(ledger, &record);
	json_string(json, "key", key);
	hex(claim->public, SIGN_PUBLIC_BYTES, text);
	json_string(json, "public", text);
	json_unsigned(json, "signed_seq", claim->seq);
	json_string(json, "signed_hash", claim->hash);
	hex(claim->signature, SIGN_SIGNATURE_BYTES, text);
	json_string(json, "signature", text);
	result = chain_end(ledger);
	return result < 0 ? result : chain_flush(ledger, false);
}

static int keep_head(const struct trace_store *store, const struct sign_claim *claim)
{
	char line[SIGN_LINE_BYTES], text[SIGN_LINE_BYTES + 1];

	sign_line(claim, line);
	(void)snprintf(text, sizeof(text), "%s\n", line);
	return fd_replace(store->fd, TRACE_HEAD, HEAD_NEW, text, strlen(text));
}

/* With the ledger locked. */
static int sign(const struct trace_store *store, struct signing *signing, struct chain *ledger,
		struct sign_claim *ret_claim, struct error *error)
{
	struct sign_claim claim = { .seq = ledger->next_seq - 1 };
	int result = ledger_installation(store, claim.installation, error);

	if (result < 0)
		return result;
	memcpy(claim.hash, ledger->last, sizeof(claim.hash));
	result = ask(&signing->role, &claim, error);
	if (result < 0)
		return result;
	result = append(ledger, &claim);
	if (result < 0)
		return error_errno(error, result, "the trace's ledger cannot be written");
	*ret_claim = claim;
	result = keep_public(signing->keys_fd, claim.public);
	if (result < 0)
		return error_errno(error, result, "writing trace/key/public");
	result = keep_head(store, &claim);
	return result < 0 ? error_errno(error, result, "writing trace/head") : 0;
}

int sign_start(const struct trace_store *store, const struct chain_origin *origin,
	       struct signing *ret_signing, struct error *error)
{
	struct signing CLEANUP_SIGNING signing = SIGNING_NONE;
	int result;

	signing.keys_fd = open_keys(store, error);
	result = signing.keys_fd < 0 ? signing.keys_fd :
				       ensure_key(store, origin, signing.keys_fd, error);
	if (result == 0)
		result = start(SIGN_KIND_HEAD, signing.keys_fd, &signing.role, error);
	if (result < 0)
		return result;
	*ret_signing = signing;
	signing = SIGNING_NONE;
	return 0;
}

int sign_finish(const struct trace_store *store, const struct chain_origin *origin,
		struct signing *signing, struct sign_claim *ret_claim, struct error *error)
{
	struct chain CLEANUP_CHAIN ledger = CHAIN_NONE;
	struct message message;
	int result = receive(&signing->role, SIGN_READY, 0, &message, error);

	if (result == 0)
		result = open_ledger(store, origin, &ledger, error);
	return result < 0 ? result : sign(store, signing, &ledger, ret_claim, error);
}

void sign_drop(struct signing *signing)
{
	role_end(&signing->role);
	fd_close(&signing->keys_fd);
}

int sign_head(const struct trace_store *store, const struct chain_origin *origin,
	      struct sign_claim *ret_claim, struct error *error)
{
	struct signing CLEANUP_SIGNING signing = SIGNING_NONE;
	int result = sign_start(store, origin, &signing, error);

	return result < 0 ? result : sign_finish(store, origin, &signing, ret_claim, error);
}

int sign_public(const struct trace_store *store, unsigned char ret_public[static SIGN_PUBLIC_BYTES],
		struct error *error)
{
	char text[SIGN_PEM_BYTES];
	int CLEANUP_FD fd = store->fd < 0 ? -ENOENT :
					    fd_open_beneath(store->fd, TRACE_KEY "/" PUBLIC,
							    O_RDONLY | O_NONBLOCK);
	ssize_t length = fd < 0 ? fd : fd_read_all(fd, text, sizeof(text));

	if (length == -ENOENT)
		return error_set(error, ENOENT,
				 "there is no key yet; `bawn trace head` makes one and signs");
	if (length < 0)
		return error_errno(error, (int)length, "trace/key/public");
	if (sign_pem_read(text, (size_t)length, ret_public) < 0)
		return error_set(error, EBADMSG,
				 "trace/key/public is no Ed25519 key; `bawn trace head` writes it "
				 "anew");
	return 0;
}

int sign_check_begin(struct sign_checker *ret_checker, struct error *error)
{
	return start(SIGN_KIND_CHECK, -1, &ret_checker->role, error);
}

static int check_some(struct sign_checker *checker, const struct sign_claim *claims, size_t count,
		      bool *ret_good, struct error *error)
{
	unsigned char request[SIGN_LIMIT_CLAIMS * SIGN_CLAIM_BYTES];
	struct message message;
	int result;

	for (size_t i = 0; i < count; i++) {
		unsigned char *at = request + i * SIGN_CLAIM_BYTES;

		memcpy(at, claims[i].public, SIGN_PUBLIC_BYTES);
		put_fields(&claims[i], at + SIGN_PUBLIC_BYTES);
		memcpy(at + SIGN_PUBLIC_BYTES + SIGN_HEAD_BYTES, claims[i].signature,
		       SIGN_SIGNATURE_BYTES);
	}
	result = message_send(checker->role.channel, SIGN_CLAIMS, request, count * SIGN_CLAIM_BYTES,
			      NULL, 0);
	if (result < 0)
		return no_answer(&checker->role, error_text(result), error);
	result = receive(&checker->role, SIGN_VERDICTS, count, &message, error);
	for (size_t i = 0; result == 0 && i < count; i++)
		ret_good[i] = message.bytes[i] == 1;
	return result;
}

int sign_check(struct sign_checker *checker, const struct sign_claim *claims, size_t count,
	       bool *ret_good, struct error *error)
{
	for (size_t done = 0; done < count;) {
		size_t next = count - done < SIGN_LIMIT_CLAIMS ? count - done : SIGN_LIMIT_CLAIMS;
		int result = check_some(checker, claims + done, next, ret_good + done, error);

		if (result < 0)
			return result;
		done += next;
	}
	return 0;
}

void sign_check_end(struct sign_checker *checker)
{
	role_end(&checker->role);
}
