#include "workspace/git_content.h"

#include "base/inflate.h"
#include "workspace/git_content_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* "commit ", a length and a NUL. */
#define HEADER_BYTES 32

void git_hash_begin(struct git_hash *hash, size_t id_bytes)
{
	hash->id_bytes = id_bytes;
	if (id_bytes == SHA1_BYTES)
		sha1_begin(&hash->sha1);
	else
		sha256_begin(&hash->sha256);
}

void git_hash_update(struct git_hash *hash, const void *bytes, size_t length)
{
	if (hash->id_bytes == SHA1_BYTES)
		sha1_update(&hash->sha1, bytes, length);
	else
		sha256_update(&hash->sha256, bytes, length);
}

bool git_hash_is(struct git_hash *hash, const unsigned char *id)
{
	unsigned char digest[SHA256_BYTES];

	if (hash->id_bytes == SHA1_BYTES)
		sha1_end(&hash->sha1, digest);
	else
		sha256_end(&hash->sha256, digest);
	return memcmp(digest, id, hash->id_bytes) == 0;
}

struct loose {
	struct git_hash hash;
	char header[HEADER_BYTES];
	size_t header_length;
	bool has_header;
	uint64_t left; /* of the content, as the header says */
};

/* "blob 12" and its like. */
static bool take_header(struct loose *loose)
{
	static const char *const types[] = { "blob ", "tree ", "commit ", "tag " };
	const char *digits = NULL;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strncmp(loose->header, types[i], strlen(types[i])) == 0)
			digits = loose->header + strlen(types[i]);
	if (!digits || !*digits || (digits[0] == '0' && digits[1]))
		return false;
	for (; *digits; digits++) {
		if (*digits < '0' || *digits > '9' || loose->left > UINT64_MAX / 16)
			return false;
		loose->left = loose->left * 10 + (uint64_t)(*digits - '0');
	}
	return loose->has_header = true;
}

static int take_loose(void *context, const unsigned char *bytes, size_t length)
{
	struct loose *loose = context;

	git_hash_update(&loose->hash, bytes, length);
	while (length && !loose->has_header) {
		if (loose->header_length == sizeof(loose->header))
			return -EBADMSG;
		loose->header[loose->header_length++] = (char)*bytes;
		length--;
		if (*bytes++ == '\0' && !take_header(loose))
			return -EBADMSG;
	}
	if (length > loose->left)
		return -EBADMSG;
	loose->left -= length;
	return 0;
}

int git_content_check(int fd, const unsigned char *id, size_t id_bytes, uint64_t *work_bytes)
{
	struct loose loose = { 0 };
	uint64_t offset = 0, size;
	struct stat status;
	int result;

	git_hash_begin(&loose.hash, id_bytes);
	result = inflate_file(fd, &offset, *work_bytes, take_loose, &loose);
	if (result < 0)
		return result;
	size = loose.hash.id_bytes == SHA1_BYTES ? loose.hash.sha1.length_bytes :
						   loose.hash.sha256.length_bytes;
	*work_bytes -= size < *work_bytes ? size : *work_bytes;
	if (fstat(fd, &status) < 0)
		return -errno;
	if (!loose.has_header || loose.left || (uint64_t)status.st_size != offset)
		return -EBADMSG;
	return git_hash_is(&loose.hash, id) ? 0 : -EBADMSG;
}
