#include "trace/chain.h"

#include "base/clock.h"
#include "base/fd.h"
#include "trace/mask.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* What the lines of a chain begin and end with. */
static const char head[] = "{\"v\":1,\"seq\":";
static const char tail[] = ",\"hash\":\"";
/* No string inside of a body looks like this: its quotes would be escaped. */
static const char is_end[] = "\"layer\":\"result\",\"type\":\"task.end\",\"body\":{";
static const char is_loss[] = "\"layer\":\"result\",\"type\":\"task.lost\",\"body\":{";

/* `,"hash":"`, 64 digits, `"}` */
#define TAIL_BYTES (sizeof(tail) - 1 + SHA256_HEX_BYTES - 1 + 2)
/* Room that stays between lines. */
#define CHAIN_KEPT_BYTES (256u * 1024)
/* Most last lines are shorter. */
#define NEAR_BYTES 4096u

void chain_origin_gather(struct arena *arena, struct chain_origin *ret_origin)
{
	struct utsname name;

	*ret_origin = (struct chain_origin){ .arena = arena };
	memcpy(ret_origin->boot, clock_boot_id(), CLOCK_BOOT_BYTES);
	if (uname(&name) == 0)
		memcpy(ret_origin->host, name.nodename,
		       strnlen(name.nodename, sizeof(ret_origin->host) - 1));
}

void chain_create(int fd, const char *prev, const struct chain_origin *origin,
		  struct chain *ret_chain)
{
	*ret_chain = (struct chain){ .fd = fd, .origin = origin, .buffer.arena = origin->arena };
	chain_follow(ret_chain, prev);
}

void chain_follow(struct chain *chain, const char *prev)
{
	memcpy(chain->prev, prev, sizeof(chain->prev));
	memcpy(chain->last, prev, sizeof(chain->last));
}

/* All of them or an error: the file is ours and does not shrink meanwhile. */
static int read_at(int fd, char *bytes, size_t length, uint64_t at)
{
	for (size_t done = 0; done < length;) {
		ssize_t step = pread(fd, bytes + done, length - done, (off_t)(at + done));

		if (step < 0 && errno == EINTR)
			continue;
		if (step <= 0)
			return step < 0 ? -errno : -EBADMSG;
		done += (size_t)step;
	}
	return 0;
}

static bool is_hex(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!strchr("0123456789abcdef", text[i]) || !text[i])
			return false;
	return true;
}

/* A line without its newline: takes over where it ends the chain. -EBADMSG: none of ours. */
static int take_last(struct chain *chain, const char *line, size_t length)
{
	const char *at = line + sizeof(head) - 1, *end = line + length;
	char hex[SHA256_HEX_BYTES];
	uint64_t seq = 0;

	if (length < sizeof(head) + TAIL_BYTES || memcmp(line, head, sizeof(head) - 1) != 0 ||
	    memcmp(end - TAIL_BYTES, tail, sizeof(tail) - 1) != 0 ||
	    memcmp(end - 2, "\"}", 2) != 0 ||
	    !is_hex(end - 2 - (SHA256_HEX_BYTES - 1), SHA256_HEX_BYTES - 1))
		return -EBADMSG;
	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(seq, 10u, &seq) ||
		    __builtin_add_overflow(seq, (unsigned)(*at - '0'), &seq))
			return -EBADMSG;
	sha256_text(line, length - TAIL_BYTES, hex);
	if (*at != ',' || memcmp(hex, end - 2 - (SHA256_HEX_BYTES - 1), sizeof(hex) - 1) != 0)
		return -EBADMSG;
	chain_follow(chain, hex);
	chain->is_ended = memmem(line, length, is_end, sizeof(is_end) - 1) != NULL;
	chain->is_lost = memmem(line, length, is_loss, sizeof(is_loss) - 1) != NULL;
	chain->next_seq = chain->records = seq + 1;
	return 0;
}

/*
 * The last whole line of the `length` bytes that end the file, if it is all there. Returns 1 when
 * it was taken, 0 when more of the file is needed. ret_end: where it ends in the bytes.
 */
static int find_last(struct chain *chain, const char *bytes, size_t length, bool is_all,
		     size_t *ret_end)
{
	const char *newline = memrchr(bytes, '\n', length);
	const char *before;
	int result;

	*ret_end = newline ? (size_t)(newline - bytes) + 1 : 0;
	if (!newline)
		return is_all ? 1 : 0;
	before = memrchr(bytes, '\n', (size_t)(newline - bytes));
	if (!before && !is_all)
		return 0;
	before = before ? before + 1 : bytes;
	result = take_last(chain, before, (size_t)(newline - before));
	return result < 0 ? result : 1;
}

static int look_back(struct chain *chain, uint64_t size, uint64_t window, char *bytes,
		     struct chain_torn *ret_torn)
{
	size_t length = (size_t)(size < window ? size : window), end = 0;
	int result = read_at(chain->fd, bytes, length, size - length);

	if (result == 0)
		result = find_last(chain, bytes, length, length == size, &end);
	if (result <= 0)
		return result;
	chain->bytes = size - length + end;
	ret_torn->bytes = length - end;
	sha256_text(bytes + end, length - end, ret_torn->sha256);
	return 1;
}

static int resume(struct chain *chain, struct chain_torn *ret_torn)
{
	/* the longest line, and a torn one behind it */
	const uint64_t far = 2 * (uint64_t)CHAIN_LIMIT_LINE_BYTES;
	struct stat status;
	char near[NEAR_BYTES];
	char *bytes;
	int result;

	if (fstat(chain->fd, &status) < 0)
		return -errno;
	result = look_back(chain, (uint64_t)status.st_size, sizeof(near), near, ret_torn);
	if (result == 0) {
		bytes = malloc(far);
		if (!bytes)
			return -ENOMEM;
		result = look_back(chain, (uint64_t)status.st_size, far, bytes, ret_torn);
		free(bytes);
	}
	if (result <= 0)
		return result < 0 ? result : -EBADMSG;
	if (ret_torn->bytes && ftruncate(chain->fd, (off_t)chain->bytes) < 0)
		return -errno;
	return 0;
}

int chain_resume(int fd, const char *prev, const struct chain_origin *origin,
		 struct chain *ret_chain, struct chain_torn *ret_torn)
{
	struct chain chain;
	int result;

	*ret_torn = (struct chain_torn){ 0 };
	chain_create(fd, prev, origin, &chain);
	result = resume(&chain, ret_torn);
	if (result < 0) {
		fd_close(&fd);
		return result;
	}
	*ret_chain = chain;
	return 0;
}

static const char *or_null(const char *text)
{
	return text && text[0] ? text : NULL;
}

struct json *chain_begin(struct chain *chain, const struct chain_record *record)
{
	struct json *json = &chain->json;
	char time[CLOCK_TEXT_BYTES];

	clock_text(record->wall_ns ? record->wall_ns : clock_wall_ns(), time);
	chain->line = chain->buffer.length;
	json_begin(json, &chain->buffer);
	json_object(json, NULL);
	json_unsigned(json, "v", CHAIN_VERSION);
	json_unsigned(json, "seq", chain->next_seq);
	json_bytes(json, "time", time, CLOCK_TEXT_BYTES - 1);
	json_unsigned(json, "mono_ns",
		      record->monotonic_ns ? record->monotonic_ns : clock_monotonic_ns());
	json_string(json, "boot", chain->origin->boot);
	json_string(json, "host", chain->origin->host);
	json_string(json, "task", or_null(record->task));
	json_string(json, "action", or_null(record->action));
	json_string(json, "parent", or_null(record->parent));
	json_string(json, "layer", record->layer);
	json_string(json, "type", record->type);
	chain->body = chain->buffer.length;
	json_object(json, "body");
	return json;
}

/* The record that is being written does not count. */
static void drop_line(struct chain *chain)
{
	chain->buffer.length = chain->line;
	chain->buffer.failed = false;
}

int chain_end(struct chain *chain)
{
	struct buffer *buffer = &chain->buffer;
	char hash[SHA256_HEX_BYTES];

	json_object_end(&chain->json);
	if (chain->mask && !buffer->failed)
		/* before the body there are our own words, which no secret may spoil */
		(void)mask_buffer(chain->mask, buffer, chain->body);
	json_string(&chain->json, "prev", chain->prev);
	if (buffer->failed ||
	    buffer->length - chain->line + TAIL_BYTES + 1 > CHAIN_LIMIT_LINE_BYTES) {
		drop_line(chain);
		return -EMSGSIZE;
	}
	sha256_text(buffer->data + chain->line, buffer->length - chain->line, hash);
	buffer_append(buffer, tail, sizeof(tail) - 1);
	buffer_append(buffer, hash, sizeof(hash) - 1);
	buffer_append(buffer, "\"}\n", 3);
	if (buffer->failed) {
		drop_line(chain);
		return -ENOMEM;
	}
	memcpy(chain->prev, hash, sizeof(hash));
	chain->next_seq++;
	return 0;
}

/* Back to what was acknowledged: in the file and in memory. */
static void cut_back(struct chain *chain)
{
	if (ftruncate(chain->fd, (off_t)chain->bytes) < 0)
		chain->is_broken = true;
	chain->next_seq = chain->records;
	memcpy(chain->prev, chain->last, sizeof(chain->prev));
}

int chain_flush(struct chain *chain, bool durable)
{
	struct buffer *buffer = &chain->buffer;
	int result;

	if (chain->is_broken)
		return -EIO;
	if (!buffer->length)
		return 0;
	result = fd_write_all(chain->fd, buffer->data, buffer->length);
	if (result == 0 && durable && fdatasync(chain->fd) < 0)
		result = -errno;
	if (result < 0) {
		cut_back(chain);
	} else {
		chain->bytes += buffer->length;
		chain->records = chain->next_seq;
		memcpy(chain->last, chain->prev, sizeof(chain->last));
	}
	buffer->length = 0;
	/* one long line is no reason to hold that much for as long as the task lives */
	if (!buffer->arena && buffer->capacity > CHAIN_KEPT_BYTES)
		buffer_free(buffer);
	return result;
}

void chain_close(struct chain *chain)
{
	fd_close(&chain->fd);
	buffer_free(&chain->buffer);
}
