#include "trace/secrets.h"

#include "base/error.h"
#include "base/fd.h"
#include "trace/store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define KEY "mask"

/* The key of masked values; made by the first task of the installation. */
static int load_key(const struct trace_store *store, unsigned char ret_key[static MASK_KEY_BYTES])
{
	unsigned char fresh[MASK_KEY_BYTES];

	for (int attempt = 0; attempt < 2; attempt++) {
		int CLEANUP_FD directory = -1;
		int CLEANUP_FD fd =
			openat(store->fd, TRACE_KEY "/" KEY, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		int result;

		if (fd >= 0)
			return fd_read_all(fd, ret_key, MASK_KEY_BYTES) == MASK_KEY_BYTES ? 0 :
											    -EIO;
		if (errno != ENOENT)
			return -errno;
		if (getrandom(fresh, sizeof(fresh), 0) != (ssize_t)sizeof(fresh))
			return -EIO;
		directory = trace_store_below(store, TRACE_KEY);
		if (directory < 0)
			return directory;
		result = trace_store_put(directory, KEY, fresh, sizeof(fresh));
		if (result < 0)
			return result;
	}
	return -EIO;
}

/* Values that are too short to be looked for are masked where their names stand. */
int secrets_add(struct mask *mask, const char *name, const char *value)
{
	int result = 0;

	if (mask_is_secret_name(name) && !mask_has(mask, value))
		result = mask_add(mask, name, value);
	return result == -ERANGE ? 0 : result;
}

int secrets_add_all(struct mask *mask, const char *const *environment)
{
	int result = 0;

	for (size_t i = 0; result == 0 && environment && environment[i]; i++) {
		char name[256];
		size_t length = strcspn(environment[i], "=");

		if (!environment[i][length] || length >= sizeof(name))
			continue;
		memcpy(name, environment[i], length);
		name[length] = '\0';
		result = secrets_add(mask, name, environment[i] + length + 1);
	}
	return result;
}

int secrets_begin(const struct trace_store *store, char *const *environment, struct mask *mask,
		  struct error *error)
{
	unsigned char key[MASK_KEY_BYTES];
	int result = load_key(store, key);

	if (result < 0)
		return error_errno(error, result, "the key of masked values in trace/" TRACE_KEY);
	mask_begin(mask, key);
	explicit_bzero(key, sizeof(key));
	result = secrets_add_all(mask, (const char *const *)environment);
	return result < 0 ? error_errno(error, result, "taking down what is secret") : 0;
}
