#include "ipc/systemd.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "ipc/dbus.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MANAGER_NAME "org.freedesktop.systemd1"
#define MANAGER_PATH "/org/freedesktop/systemd1"
#define MANAGER_INTERFACE MANAGER_NAME ".Manager"
/* The calls that are made. */
enum { SERIAL_START = 1, SERIAL_STOP };
/* "OK " and 32 digits; more is no answer. */
#define LINE_BYTES 256
#define NS_PER_MS 1000000u

struct talk {
	int fd;
	uint64_t deadline_ns;
	const struct systemd_scope *scope;
	uint32_t serial;     /* of the call that is to be answered */
	bool accepted, done; /* it was; its job has ended well */
	struct systemd_answer *answer;
};

const char *systemd_outcome_text(enum systemd_outcome outcome)
{
	static const char *const texts[SYSTEMD_OUTCOMES] = {
		[SYSTEMD_DONE] = "has made it",
		[SYSTEMD_REFUSED] = "refused it",
		[SYSTEMD_FAILED] = "could not make it",
		[SYSTEMD_LATE] = "did not answer in time",
		[SYSTEMD_CLOSED] = "hung up",
		[SYSTEMD_GARBLED] = "gave no answer that can be read",
	};

	return texts[outcome];
}

void systemd_copy_text(char text[static SYSTEMD_TEXT_BYTES], const char *from)
{
	size_t length = strnlen(from, SYSTEMD_TEXT_BYTES - 1);

	for (size_t i = 0; i < length; i++)
		text[i] = (char)(from[i] >= ' ' && from[i] <= '~' ? from[i] : '?');
	text[length] = '\0';
}

static int give_up(struct talk *talk, enum systemd_outcome outcome, const char *text)
{
	talk->answer->outcome = outcome;
	systemd_copy_text(talk->answer->text, text);
	return -EPROTO;
}

/* Until the socket is ready. 0, or the talk is over. */
static int await(struct talk *talk, short events)
{
	for (;;) {
		uint64_t now_ns = clock_monotonic_ns();
		struct pollfd ready = { .fd = talk->fd, .events = events };
		int result;

		if (now_ns >= talk->deadline_ns)
			return give_up(talk, SYSTEMD_LATE, "");
		result = poll(&ready, 1, (int)((talk->deadline_ns - now_ns) / NS_PER_MS) + 1);
		if (result > 0)
			return 0;
		if (result < 0 && errno != EINTR)
			return give_up(talk, SYSTEMD_CLOSED, "");
	}
}

static bool may_go_on(void)
{
	return errno == EAGAIN || errno == EINTR;
}

static int send_bytes(struct talk *talk, const void *bytes, size_t length)
{
	for (size_t sent = 0; sent < length;) {
		ssize_t count;

		if (await(talk, POLLOUT) < 0)
			return -EPROTO;
		count = write(talk->fd, (const char *)bytes + sent, length - sent);
		if (count < 0 && !may_go_on())
			return give_up(talk, SYSTEMD_CLOSED, "");
		sent += count > 0 ? (size_t)count : 0;
	}
	return 0;
}

/* At most `room` bytes; at least one. */
static ssize_t receive_some(struct talk *talk, void *bytes, size_t room)
{
	for (;;) {
		ssize_t count;

		if (await(talk, POLLIN) < 0)
			return -EPROTO;
		count = read(talk->fd, bytes, room);
		if (count > 0)
			return count;
		if (count == 0 || !may_go_on())
			return give_up(talk, SYSTEMD_CLOSED, "");
	}
}

static int receive_bytes(struct talk *talk, unsigned char *bytes, size_t length)
{
	for (size_t have = 0; have < length;) {
		ssize_t count = receive_some(talk, bytes + have, length - have);

		if (count < 0)
			return (int)count;
		have += (size_t)count;
	}
	return 0;
}

/* SASL, "EXTERNAL" (D-Bus Specification, "Authentication Protocol"); descriptors are not agreed. */
static int authenticate(struct talk *talk)
{
	static const char begin[] = "BEGIN\r\n";
	char line[LINE_BYTES], digits[16];
	int count = snprintf(digits, sizeof(digits), "%u", talk->scope->uid);
	size_t length = 0;

	/* a NUL first, for the credentials of systems that have no SO_PEERCRED */
	length = (size_t)snprintf(line + 1, sizeof(line) - 1, "AUTH EXTERNAL ") + 1;
	line[0] = '\0';
	for (int i = 0; i < count; i++)
		length += (size_t)snprintf(line + length, sizeof(line) - length, "%02x",
					   (unsigned)digits[i]);
	length += (size_t)snprintf(line + length, sizeof(line) - length, "\r\n");
	if (send_bytes(talk, line, length) < 0)
		return -EPROTO;
	/* the other side says nothing more until we begin: what follows the line is no answer */
	for (length = 0; length < 2 || memcmp(line + length - 2, "\r\n", 2) != 0;) {
		ssize_t received = length < sizeof(line) ? receive_some(talk, line + length,
									sizeof(line) - length) :
							   give_up(talk, SYSTEMD_GARBLED, "");

		if (received < 0)
			return (int)received;
		length += (size_t)received;
	}
	if (memchr(line, '\r', length) != line + length - 2)
		return give_up(talk, SYSTEMD_GARBLED, "");
	line[length - 2] = '\0';
	if (strncmp(line, "OK ", 3) != 0)
		return give_up(talk, SYSTEMD_REFUSED, line);
	return send_bytes(talk, begin, sizeof(begin) - 1);
}

/* A property of a unit is a structure of its name and a variant. */
static void put_property(struct buffer *body, const char *name, const char *type)
{
	dbus_put_structure(body);
	dbus_put_string(body, name);
	dbus_put_signature(body, type);
}

static int send_call(struct talk *talk, const char *member, const char *signature,
		     const struct buffer *body)
{
	struct buffer CLEANUP_BUFFER message = { 0 };
	const struct dbus_call call = { talk->serial,	   MANAGER_NAME, MANAGER_PATH,
					MANAGER_INTERFACE, member,	 signature };

	dbus_put_call(&message, &call, body);
	return message.failed ? give_up(talk, SYSTEMD_GARBLED, "out of memory") :
				send_bytes(talk, message.data, message.length);
}

static int send_start(struct talk *talk)
{
	struct buffer CLEANUP_BUFFER body = { 0 };
	size_t properties, processes, others;

	dbus_put_string(&body, talk->scope->unit);
	dbus_put_string(&body, "fail");
	properties = dbus_put_array(&body, 8);
	put_property(&body, "PIDs", "au");
	processes = dbus_put_array(&body, 4);
	dbus_put_u32(&body, 0);
	dbus_put_array_end(&body, processes, 4);
	put_property(&body, "Delegate", "b");
	dbus_put_u32(&body, 1);
	put_property(&body, "Description", "s");
	dbus_put_string(&body, talk->scope->description);
	put_property(&body, "CollectMode", "s");
	dbus_put_string(&body, "inactive-or-failed");
	dbus_put_array_end(&body, properties, 8);
	others = dbus_put_array(&body, 8);
	dbus_put_array_end(&body, others, 8);
	return send_call(talk, "StartTransientUnit", "ssa(sv)a(sa(sv))", &body);
}

static int send_stop(struct talk *talk)
{
	struct buffer CLEANUP_BUFFER body = { 0 };

	dbus_put_string(&body, talk->scope->unit);
	dbus_put_string(&body, "replace");
	talk->serial = SERIAL_STOP;
	return send_call(talk, "StopUnit", "ss", &body);
}

/* "NAME: TEXT", the text where the error has one. */
static int take_error(struct talk *talk, const struct dbus_message *message)
{
	char text[SYSTEMD_TEXT_BYTES];
	struct dbus_cursor cursor;
	const char *said = "";

	dbus_begin(&cursor, message);
	if (message->signature[0] == 's')
		said = dbus_string(&cursor);
	(void)snprintf(text, sizeof(text), "%s%s%s", message->error, said[0] ? ": " : "", said);
	return give_up(talk, SYSTEMD_REFUSED, text);
}

/* JobRemoved(u id, o job, s unit, s result): the unit's name is ours alone. */
static int take_signal(struct talk *talk, const struct dbus_message *message)
{
	struct dbus_cursor cursor;
	const char *unit, *result;

	if (strcmp(message->interface, MANAGER_INTERFACE) != 0 ||
	    strcmp(message->member, "JobRemoved") != 0)
		return 0;
	if (strcmp(message->signature, "uoss") != 0)
		return give_up(talk, SYSTEMD_GARBLED, "JobRemoved");
	dbus_begin(&cursor, message);
	(void)dbus_u32(&cursor);
	(void)dbus_string(&cursor);
	unit = dbus_string(&cursor);
	result = dbus_string(&cursor);
	if (dbus_end(&cursor) < 0)
		return give_up(talk, SYSTEMD_GARBLED, "JobRemoved");
	if (strcmp(unit, talk->scope->unit) != 0)
		return 0;
	if (strcmp(result, "done") != 0)
		return give_up(talk, SYSTEMD_FAILED, result);
	talk->done = true;
	return 0;
}

static int take_message(struct talk *talk, const struct dbus_message *message)
{
	switch (message->type) {
	case DBUS_SIGNAL:
		return take_signal(talk, message);
	case DBUS_CALL: /* we have no objects; the manager asks for none */
		return 0;
	case DBUS_RETURN:
	case DBUS_ERROR:
		break;
	}
	if (message->reply_serial != talk->serial || talk->accepted)
		return give_up(talk, SYSTEMD_GARBLED, "an answer to nothing");
	if (message->type == DBUS_ERROR)
		return take_error(talk, message);
	talk->accepted = true;
	return 0;
}

static int receive_message(struct talk *talk)
{
	static unsigned char bytes[DBUS_LIMIT_BYTES];
	struct dbus_message message;
	size_t length;

	if (receive_bytes(talk, bytes, DBUS_FIXED_BYTES) < 0)
		return -EPROTO;
	if (dbus_length(bytes, &length) < 0)
		return give_up(talk, SYSTEMD_GARBLED, "a message that is too long or none");
	if (receive_bytes(talk, bytes + DBUS_FIXED_BYTES, length - DBUS_FIXED_BYTES) < 0)
		return -EPROTO;
	if (dbus_read(bytes, length, &message) < 0)
		return give_up(talk, SYSTEMD_GARBLED, "a message that is none");
	return take_message(talk, &message);
}

void systemd_start_scope(int fd, const struct systemd_scope *scope, uint64_t deadline_ns,
			 struct systemd_answer *ret_answer)
{
	struct systemd_answer ignored;
	struct talk talk = { .fd = fd,
			     .deadline_ns = deadline_ns,
			     .scope = scope,
			     .serial = SERIAL_START,
			     .answer = ret_answer };

	*ret_answer = (struct systemd_answer){ .outcome = SYSTEMD_DONE };
	if (authenticate(&talk) < 0 || send_start(&talk) < 0)
		return;
	while (!(talk.accepted && talk.done))
		if (receive_message(&talk) < 0)
			break;
	if (ret_answer->outcome != SYSTEMD_LATE)
		return;
	/* nobody waits for it: whatever room the socket has */
	talk.answer = &ignored;
	talk.deadline_ns = clock_monotonic_ns() + NS_PER_MS;
	(void)send_stop(&talk);
}

void systemd_stop_scope(int fd, const struct systemd_scope *scope, uint64_t deadline_ns)
{
	struct systemd_answer ignored;
	struct talk talk = {
		.fd = fd, .deadline_ns = deadline_ns, .scope = scope, .answer = &ignored
	};

	if (send_stop(&talk) < 0)
		return;
	while (!talk.accepted)
		if (receive_message(&talk) < 0)
			return;
}
