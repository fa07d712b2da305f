/*
 * bawn-sign: the only program that sees the private key of the trace (ipc/sign.h). It opens the
 * key by the directory that was handed to it, jails itself, and then makes a key, signs one
 * ledger's head, or, in a process that never had a key, checks signatures.
 *
 * Its exit status is its report: the number of the step that failed (kernel/jail.h, and below).
 */
#include "base/error.h"
#include "base/fd.h"
#include "ipc/message.h"
#include "ipc/role.h"
#include "ipc/sign.h"
#include "kernel/jail.h"
#include "trace/ed25519.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum step {
	STEP_DONE,
	STEP_KIND = JAIL_STEPS,
	STEP_MEMORY,
	STEP_KEY,
	STEP_REQUEST,
	STEP_SIGNATURE,
	STEP_SEND,
};

/* Before its end the file has all that it is. */
#define KEY "trace/key/" SIGN_KEY

/* "bawn-head-v1\n", three fields with their newlines. */
#define TEXT_LIMIT_BYTES 160

/* code: of an errno; 0: none */
static enum step refuse(enum step step, const char *text, int code)
{
	char message[ERROR_MESSAGE_BYTES];

	(void)snprintf(message, sizeof(message), "%s%s%s", text, code ? ": " : "",
		       code ? error_text(code) : "");
	(void)message_send(ROLE_CHANNEL, SIGN_FAILED, message, strlen(message), NULL, 0);
	return step;
}

static enum step send(uint32_t type, const void *bytes, size_t length)
{
	return message_send(ROLE_CHANNEL, type, bytes, length, NULL, 0) < 0 ? STEP_SEND : STEP_DONE;
}

/* Before a key is opened: the jail does the same again, but only afterwards. */
static enum step hide(void)
{
	const struct rlimit none = { 0, 0 };

	return setrlimit(RLIMIT_CORE, &none) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ?
		       STEP_MEMORY :
		       STEP_DONE;
}

static enum step lock_memory(struct ed25519_secret **ret_secret)
{
	int result = ed25519_begin(ret_secret);

	if (result == -ENOMEM)
		return refuse(
			STEP_MEMORY,
			"memory for the key cannot be locked: 64 KiB are needed (`ulimit -l`)", 0);
	return result < 0 ? refuse(STEP_MEMORY, "libcrypto cannot be used", 0) : STEP_DONE;
}

/* The key takes the place of the directory, which is out of reach then. */
static enum step keep_key(int fd)
{
	return dup3(fd, ROLE_FIRST, O_CLOEXEC) < 0 ? STEP_KEY : STEP_DONE;
}

static enum step open_key(void)
{
	int fd = openat(ROLE_FIRST, SIGN_KEY, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat status;

	if (fd < 0 && errno == ELOOP)
		return refuse(STEP_KEY, KEY " is a link, which is not followed", 0);
	if (fd < 0 || fstat(fd, &status) < 0)
		return refuse(STEP_KEY, KEY, errno);
	if (!S_ISREG(status.st_mode))
		return refuse(STEP_KEY, KEY " is not a file", 0);
	if (status.st_uid != geteuid())
		return refuse(STEP_KEY, KEY " is another user's", 0);
	if (status.st_mode & 077)
		return refuse(STEP_KEY,
			      KEY " is open to others: who has read it can sign. Moved away, a new "
				  "one is made; or chmod 600",
			      0);
	return keep_key(fd);
}

static enum step make_file(void)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(ROLE_FIRST, SIGN_KEY_NEW, flags, 0600);

	/* left behind by one that died before its key had its name */
	if (fd < 0 && errno == EEXIST && unlinkat(ROLE_FIRST, SIGN_KEY_NEW, 0) == 0)
		fd = openat(ROLE_FIRST, SIGN_KEY_NEW, flags, 0600);
	if (fd < 0 || fchmod(fd, 0600) < 0)
		return refuse(STEP_KEY, "making " KEY, errno);
	return keep_key(fd);
}

static enum step write_key(struct ed25519_secret *secret)
{
	const char *pem;
	int result = ed25519_make(secret, &pem);

	if (result == 0)
		result = fd_write_all(ROLE_FIRST, pem, ED25519_PEM_BYTES);
	if (result == 0 && fsync(ROLE_FIRST) < 0)
		result = -errno;
	return result < 0 ? refuse(STEP_KEY, "writing " KEY, result) : STEP_DONE;
}

static enum step read_key(struct ed25519_secret *secret)
{
	ssize_t length = fd_read_all(ROLE_FIRST, ed25519_room(secret), ED25519_PEM_BYTES + 1);

	if (length < 0)
		return refuse(STEP_KEY, KEY, (int)length);
	if (length == 0)
		return refuse(STEP_KEY, KEY " is empty; moved away, a new one is made", 0);
	if (ed25519_take(secret, (size_t)length) < 0)
		return refuse(STEP_KEY,
			      KEY " is no Ed25519 key (PEM of PKCS #8, not encrypted); moved away, "
				  "a new one is made",
			      0);
	return STEP_DONE;
}

static enum step load_key(struct ed25519_secret *secret, struct evp_pkey_st **ret_key,
			  unsigned char ret_public[static ED25519_PUBLIC_BYTES])
{
	*ret_key = ed25519_load(secret, ret_public);
	return *ret_key ? STEP_DONE : refuse(STEP_KEY, "libcrypto has no Ed25519", 0);
}

static bool is_hex(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!(text[i] >= '0' && text[i] <= '9') && !(text[i] >= 'a' && text[i] <= 'f'))
			return false;
	return true;
}

/* The text that is signed, of SIGN_HEAD_BYTES of fields. Its length; 0: they are none of a head. */
static size_t format_head(const unsigned char *fields, char text[static TEXT_LIMIT_BYTES])
{
	char installation[SIGN_INSTALLATION_BYTES + 1] = "", hash[SIGN_HASH_BYTES + 1] = "";
	uint64_t seq;
	int length;

	memcpy(installation, fields, SIGN_INSTALLATION_BYTES);
	memcpy(&seq, fields + SIGN_AT_SEQ, sizeof(seq));
	memcpy(hash, fields + SIGN_AT_HASH, SIGN_HASH_BYTES);
	if (!is_hex(installation, SIGN_INSTALLATION_BYTES) || !is_hex(hash, SIGN_HASH_BYTES))
		return 0;
	length = snprintf(text, TEXT_LIMIT_BYTES, "bawn-head-v1\n%s\n%" PRIu64 "\n%s\n",
			  installation, seq, hash);
	return length > 0 && length < TEXT_LIMIT_BYTES ? (size_t)length : 0;
}

static enum step make(struct ed25519_secret *secret)
{
	unsigned char public[SIGN_PUBLIC_BYTES];
	struct evp_pkey_st *key = NULL;
	enum step step = write_key(secret);

	if (step == STEP_DONE)
		step = load_key(secret, &key, public);
	ed25519_unload(key);
	return step == STEP_DONE ? send(SIGN_MADE, public, sizeof(public)) : step;
}

/* The text of the one request; 0 for whatever else comes. */
static size_t receive_head(char text[static TEXT_LIMIT_BYTES])
{
	struct message message;

	if (message_receive(ROLE_CHANNEL, &message) < 0 || message.type != SIGN_HEAD ||
	    message.length != SIGN_HEAD_BYTES || message.fd_count != 0)
		return 0;
	return format_head(message.bytes, text);
}

/* One head and no more: whoever wants another has to start another process. */
static enum step sign(struct ed25519_secret *secret)
{
	unsigned char answer[SIGN_PUBLIC_BYTES + SIGN_SIGNATURE_BYTES];
	struct evp_pkey_st *key = NULL;
	char text[TEXT_LIMIT_BYTES];
	enum step step = read_key(secret);
	size_t length;
	bool is_done;

	if (step == STEP_DONE)
		step = load_key(secret, &key, answer);
	if (step == STEP_DONE)
		step = send(SIGN_READY, NULL, 0);
	if (step != STEP_DONE)
		return step;
	length = receive_head(text);
	is_done = length && ed25519_sign(key, text, length, answer + SIGN_PUBLIC_BYTES);
	ed25519_unload(key);
	if (!length)
		return refuse(STEP_REQUEST, "only a ledger's head is signed", 0);
	return is_done ? send(SIGN_SIGNATURE, answer, sizeof(answer)) :
			 refuse(STEP_SIGNATURE, "libcrypto does not sign", 0);
}

static bool is_good(const unsigned char *claim)
{
	const unsigned char *fields = claim + SIGN_PUBLIC_BYTES;
	char text[TEXT_LIMIT_BYTES];
	size_t length = format_head(fields, text);

	return length && ed25519_is_good(claim, text, length, fields + SIGN_HEAD_BYTES);
}

static enum step check(struct ed25519_secret *secret)
{
	unsigned char verdicts[SIGN_LIMIT_CLAIMS];
	struct message message;
	int result;

	(void)secret;
	while ((result = message_receive(ROLE_CHANNEL, &message)) == 0) {
		size_t count = message.length / SIGN_CLAIM_BYTES;

		if (message.type != SIGN_CLAIMS || message.fd_count || count == 0 ||
		    message.length % SIGN_CLAIM_BYTES != 0 || count > SIGN_LIMIT_CLAIMS)
			return refuse(STEP_REQUEST, "only claims are checked", 0);
		for (size_t i = 0; i < count; i++)
			verdicts[i] = is_good(message.bytes + i * SIGN_CLAIM_BYTES);
		if (send(SIGN_VERDICTS, verdicts, count) != STEP_DONE)
			return STEP_SEND;
	}
	return result == -EPIPE ? STEP_DONE : STEP_REQUEST;
}

static const struct kind {
	char name;
	enum step (*open)(void); /* before the jail, the one descriptor that stays; NULL: none */
	enum step (*work)(struct ed25519_secret *secret);
	unsigned cpu_seconds; /* a signature takes milliseconds, a million claims some minutes */
} kinds[] = {
	{ SIGN_KIND_MAKE, make_file, make, 2 },
	{ SIGN_KIND_HEAD, open_key, sign, 2 },
	{ SIGN_KIND_CHECK, NULL, check, 3600 },
};

static const struct kind *find_kind(void)
{
	char name[2];

	if (fd_read_all(ROLE_CONFIG, name, sizeof(name)) != 1)
		return NULL;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].name == name[0])
			return &kinds[i];
	return NULL;
}

static int enter_jail(const struct kind *kind)
{
	const struct jail jail = {
		.keep = kind->open ? ROLE_FIRST + 1 : ROLE_FIRST,
		.cpu_seconds = kind->cpu_seconds,
		.memory_bytes = 256 * 1024 * 1024,
		.filter = SECCOMP_VARIANT_SIGN,
	};

	return jail_enter(&jail);
}

int main(void)
{
	const struct kind *kind = find_kind();
	struct ed25519_secret *secret = NULL;
	int step = kind ? (int)hide() : STEP_KIND;

	if (step == STEP_DONE)
		step = lock_memory(&secret);
	if (step == STEP_DONE && kind->open)
		step = kind->open();
	if (step == STEP_DONE)
		step = enter_jail(kind);
	if (step == STEP_DONE)
		step = kind->work(secret);
	jail_leave(step);
}
