#include "net/dialer.h"

#include "base/fd.h"
#include "ipc/message.h"
#include "net/dialer_internal.h"
#include "net/moment.h"
#include "net/socket.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

/* Data of the two edges in the epoll: no dial has such a place. */
#define TAG_PEER (UINT64_C(0xffff) << 8)
#define TAG_SUPERVISOR (UINT64_C(0xfffe) << 8)
#define LIMIT_EVENTS 64

_Static_assert(DIALER_LIMIT_DIALS < 0xfffe, "places of dials are no tags of edges");
_Static_assert(sizeof(struct egress_tried) <= MESSAGE_LIMIT_BYTES, "it fits into a message");

bool dialer_check(const struct egress_order *order)
{
	if (order->version != EGRESS_ORDER_VERSION ||
	    order->resolver_count > EGRESS_LIMIT_RESOLVERS ||
	    (order->flags & ~(uint32_t)(EGRESS_ORDER_DOOR | EGRESS_ORDER_V6 | EGRESS_ORDER_LIVE)))
		return false;
	for (uint32_t i = 0; i < order->resolver_count; i++)
		if ((order->resolvers[i].address.family != ADDRESS_V4 &&
		     order->resolvers[i].address.family != ADDRESS_V6) ||
		    order->resolvers[i].port == 0)
			return false;
	return true;
}

uint64_t dial_tag(const struct dialer *dialer, const struct dial *dial)
{
	return (uint64_t)dial->generation << 32 | (uint64_t)(dial - dialer->dials) << 8;
}

static void drop(struct dialer *dialer, struct dial *dial)
{
	lookup_end(&dial->lookup);
	for (unsigned i = 0; i < DIALER_LIMIT_ATTEMPTS; i++)
		fd_close(&dial->attempts[i].fd);
	dial->generation++;
	dial->state = DIAL_FREE;
	while (dialer->end && dialer->dials[dialer->end - 1].state == DIAL_FREE)
		dialer->end--;
}

/* The supervisor's record: what was really tried, by us. */
static int tell_tried(const struct dialer *dialer, const struct dial *dial,
		      enum egress_outcome outcome, uint64_t now_ns)
{
	struct egress_tried tried;

	memset(&tried, 0, sizeof(tried));
	tried.id = dial->id;
	tried.outcome = outcome;
	tried.port = dial->port;
	tried.address_count = (uint16_t)dial->lookup.address_count;
	tried.tried_count = dial->next;
	memcpy(tried.addresses, dial->lookup.addresses,
	       sizeof(tried.addresses[0]) * dial->lookup.address_count);
	tried.resolve_ns = dial->resolved_ns - dial->begun_ns;
	tried.connect_ns = now_ns - dial->resolved_ns;
	memcpy(tried.host, dial->host.name, strlen(dial->host.name));
	return message_send(dialer->supervisor_fd, EGRESS_TRIED, &tried, sizeof(tried), NULL, 0);
}

static int tell_dialed(const struct dialer *dialer, const struct egress_dialed *dialed, int fd)
{
	unsigned count = dialed->outcome == EGRESS_DONE;
	int result =
		message_send(dialer->peer_fd, EGRESS_DIALED, dialed, sizeof(*dialed), &fd, count);
	struct egress_dialed busy = { .id = dialed->id, .outcome = EGRESS_BUSY };

	/* the user has too many descriptors under way: the socket stays here and is closed */
	if (result == -ETOOMANYREFS && count)
		return message_send(dialer->peer_fd, EGRESS_DIALED, &busy, sizeof(busy), NULL, 0);
	return result;
}

int dial_finish(struct dialer *dialer, struct dial *dial, enum egress_outcome outcome,
		const struct address *address, int fd, uint64_t now_ns)
{
	struct egress_dialed dialed;
	int result;

	if (!dial->resolved_ns)
		dial->resolved_ns = now_ns;
	memset(&dialed, 0, sizeof(dialed));
	dialed.id = dial->id;
	dialed.outcome = outcome;
	if (address)
		dialed.address = *address;
	dialed.resolve_ns = dial->resolved_ns - dial->begun_ns;
	dialed.connect_ns = now_ns - dial->resolved_ns;
	result = tell_tried(dialer, dial, outcome, now_ns);
	if (result == 0)
		result = tell_dialed(dialer, &dialed, fd);
	drop(dialer, dial);
	return result;
}

static void ask_rules(const struct dialer *dialer, const struct dial *dial,
		      struct egress_question *question, struct egress_answer *answer)
{
	*question = (struct egress_question){
		.host = &dial->host,
		.port = dial->port,
		.wall_s = dialer->wall_s,
	};
	egress_decide(dialer->policy, question, answer);
}

/*
 * The addresses are known: all of them have to be ones that may be dialled. What may be so by facts
 * that only the proxy knows counts as such: it asks again before it sends anything.
 */
static int judge_addresses(struct dialer *dialer, struct dial *dial, uint64_t now_ns)
{
	struct egress_question question;
	struct egress_opening opening;
	struct egress_answer answer;

	dial->resolved_ns = now_ns;
	/* again: what was allowed when the lookup began may be so no more */
	ask_rules(dialer, dial, &question, &answer);
	if (answer.verdict == EGRESS_DENY)
		return dial_finish(dialer, dial, EGRESS_DENIED, NULL, -1, now_ns);
	for (uint32_t i = 0; i < dial->lookup.address_count; i++) {
		const struct address *address = &dial->lookup.addresses[i];

		if (egress_check_address(dialer->policy, &question, &answer, address, &opening))
			return dial_finish(dialer, dial, EGRESS_SPECIAL, address, -1, now_ns);
	}
	return dial_connect(dialer, dial, now_ns);
}

static int go_on(struct dialer *dialer, struct dial *dial, enum lookup_state state, uint64_t now_ns)
{
	if (state == LOOKUP_WAITS)
		return 0;
	lookup_end(&dial->lookup);
	if (state == LOOKUP_DONE)
		return judge_addresses(dialer, dial, now_ns);
	return dial_finish(dialer, dial,
			   state == LOOKUP_NO_NAME ? EGRESS_NO_NAME : EGRESS_NO_RESOLVER, NULL, -1,
			   now_ns);
}

static int begin(struct dialer *dialer, struct dial *dial, uint64_t now_ns)
{
	struct egress_question question;
	struct egress_answer answer;

	lookup_clear(&dial->lookup);
	ask_rules(dialer, dial, &question, &answer);
	/* a name that is denied is not asked for: the question itself would carry bytes out */
	if (answer.verdict == EGRESS_DENY)
		return dial_finish(dialer, dial, EGRESS_DENIED, NULL, -1, now_ns);
	if (dial->host.kind == HOST_ADDRESS) {
		dial->lookup.addresses[0] = dial->host.address;
		dial->lookup.address_count = 1;
		return judge_addresses(dialer, dial, now_ns);
	}
	return go_on(dialer, dial,
		     lookup_begin(&dialer->resolver, &dial->lookup, &dial->host,
				  dial_tag(dialer, dial), now_ns),
		     now_ns);
}

static struct dial *find_dial(struct dialer *dialer, uint32_t id)
{
	for (uint32_t i = 0; i < dialer->end; i++)
		if (dialer->dials[i].state != DIAL_FREE && dialer->dials[i].id == id)
			return &dialer->dials[i];
	return NULL;
}

static struct dial *take_dial(struct dialer *dialer)
{
	for (uint32_t i = 0; i < DIALER_LIMIT_DIALS; i++) {
		struct dial *dial = &dialer->dials[i];
		uint32_t generation = dial->generation;

		if (dial->state != DIAL_FREE)
			continue;
		memset(dial, 0, sizeof(*dial));
		dial->generation = generation;
		dial->state = DIAL_RESOLVES;
		for (unsigned k = 0; k < DIALER_LIMIT_ATTEMPTS; k++)
			dial->attempts[k].fd = -1;
		dial->failure = EGRESS_DONE; /* the least of all, in note_failure() */
		if (i >= dialer->end)
			dialer->end = i + 1;
		return dial;
	}
	return NULL;
}

/* The host is canonical, and nothing is behind its text. */
static bool read_host(const struct egress_dial *message, struct host *ret_host)
{
	const char *why;

	if (message->host_bytes == 0 || message->host_bytes >= HOST_NAME_BYTES)
		return false;
	for (size_t i = message->host_bytes; i < sizeof(message->host); i++)
		if (message->host[i])
			return false;
	return host_parse(message->host, message->host_bytes, ret_host, &why) == 0 &&
	       strcmp(ret_host->name, message->host) == 0;
}

static int take_order(struct dialer *dialer, const struct egress_dial *message, uint64_t now_ns)
{
	struct egress_dialed busy = { .id = message->id, .outcome = EGRESS_BUSY };
	struct host host;
	struct dial *dial;

	if (message->reserved || message->port == 0 || !read_host(message, &host) ||
	    find_dial(dialer, message->id))
		return -EBADMSG;
	dial = take_dial(dialer);
	if (!dial)
		return tell_dialed(dialer, &busy, -1);
	dial->id = message->id;
	dial->port = message->port;
	dial->host = host;
	dial->begun_ns = now_ns;
	return begin(dialer, dial, now_ns);
}

/* It may have been answered meanwhile, which the proxy could not know. What was tried is told. */
static int take_cancel(struct dialer *dialer, const struct egress_cancel *message, uint64_t now_ns)
{
	struct dial *dial = find_dial(dialer, message->id);
	int result;

	if (!dial)
		return 0;
	if (!dial->resolved_ns)
		dial->resolved_ns = now_ns;
	result = tell_tried(dialer, dial, EGRESS_CANCELLED, now_ns);
	drop(dialer, dial);
	return result;
}

static int take_message(struct dialer *dialer, uint64_t now_ns)
{
	static struct message message;
	union {
		struct egress_dial dial;
		struct egress_cancel cancel;
	} body;
	int result = message_receive(dialer->peer_fd, &message);

	if (result == -EAGAIN || result == -EWOULDBLOCK)
		return 0;
	if (result < 0)
		return result;
	if (message.fd_count) {
		message_close_fds(&message);
		return -EBADMSG;
	}
	if (message.type == EGRESS_DIAL && message.length == sizeof(body.dial)) {
		memcpy(&body.dial, message.bytes, sizeof(body.dial));
		return take_order(dialer, &body.dial, now_ns);
	}
	if (message.type == EGRESS_CANCEL && message.length == sizeof(body.cancel)) {
		memcpy(&body.cancel, message.bytes, sizeof(body.cancel));
		return take_cancel(dialer, &body.cancel, now_ns);
	}
	return -EBADMSG;
}

static int take_event(struct dialer *dialer, const struct epoll_event *event, uint64_t now_ns)
{
	uint64_t data = event->data.u64;
	unsigned source = data & 0xff;
	struct dial *dial;

	if (data == TAG_PEER)
		return take_message(dialer, now_ns);
	/* the supervisor says nothing: this is its end */
	if (data == TAG_SUPERVISOR)
		return -EPIPE;
	dial = &dialer->dials[data >> 8 & 0xffff];
	if (dial->generation != data >> 32 || dial->state == DIAL_FREE)
		return 0;
	if (source >= DIAL_ATTEMPT_FIRST)
		return dial_attempt_event(dialer, dial, source - DIAL_ATTEMPT_FIRST, now_ns);
	if (dial->state != DIAL_RESOLVES)
		return 0;
	return go_on(
		dialer, dial,
		lookup_read(&dialer->resolver, &dial->lookup, (enum resolver_source)source, now_ns),
		now_ns);
}

/* What is due now, and when the next is; -1: nothing ever is. */
static int expire(struct dialer *dialer, uint64_t now_ns, int *ret_timeout_ms)
{
	uint64_t next_ns = UINT64_MAX;
	int result = 0;

	for (uint32_t i = 0; i < dialer->end; i++) {
		struct dial *dial = &dialer->dials[i];

		if (dial->state != DIAL_FREE && dial_deadline(dial) <= now_ns) {
			if (dial->state == DIAL_RESOLVES)
				result = go_on(
					dialer, dial,
					lookup_expire(&dialer->resolver, &dial->lookup, now_ns),
					now_ns);
			else
				result = dial_expire(dialer, dial, now_ns);
			if (result < 0)
				return result;
		}
		if (dial->state != DIAL_FREE && dial_deadline(dial) < next_ns)
			next_ns = dial_deadline(dial);
	}
	*ret_timeout_ms = -1;
	if (next_ns != UINT64_MAX)
		*ret_timeout_ms = next_ns <= now_ns ? 0 : (int)((next_ns - now_ns) / 1000000 + 1);
	return 0;
}

static uint64_t look_at_clock(struct dialer *dialer)
{
	struct moment moment = moment_now();

	dialer->wall_s = moment.wall_s;
	return moment.now_ns;
}

static int loop(struct dialer *dialer)
{
	struct epoll_event events[LIMIT_EVENTS];

	for (;;) {
		int timeout_ms = -1;
		int result = expire(dialer, look_at_clock(dialer), &timeout_ms);
		uint64_t now_ns;
		int count;

		if (result < 0)
			return result;
		count = epoll_wait(dialer->epoll_fd, events, LIMIT_EVENTS, timeout_ms);
		if (count < 0 && errno != EINTR)
			return -errno;
		now_ns = look_at_clock(dialer);
		for (int i = 0; i < count; i++) {
			result = take_event(dialer, &events[i], now_ns);
			if (result < 0)
				return result;
		}
	}
}

int dialer_run(int peer_fd, int supervisor_fd, const struct egress_order *order,
	       const struct egress_policy *policy)
{
	static struct dialer dialer;
	int result;

	dialer.peer_fd = peer_fd;
	dialer.supervisor_fd = supervisor_fd;
	dialer.policy = policy;
	dialer.order = order;
	dialer.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (dialer.epoll_fd < 0)
		return -errno;
	dialer.resolver.epoll_fd = dialer.epoll_fd;
	dialer.resolver.order = order;
	if (socket_watch(dialer.epoll_fd, peer_fd, SOCKET_READ, TAG_PEER) < 0 ||
	    socket_watch(dialer.epoll_fd, supervisor_fd, SOCKET_READ, TAG_SUPERVISOR) < 0)
		return -EIO;
	result = loop(&dialer);
	for (uint32_t i = 0; i < DIALER_LIMIT_DIALS; i++)
		if (dialer.dials[i].state != DIAL_FREE)
			drop(&dialer, &dialer.dials[i]);
	fd_close(&dialer.epoll_fd);
	return result == -EPIPE ? 0 : result;
}
