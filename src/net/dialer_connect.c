#include "net/dialer_internal.h"

#include "base/fd.h"
#include "net/socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* Addresses of both families by turns, version 6 first (RFC 8305, 4); each family as it came. */
static void interleave(struct lookup *lookup)
{
	struct address sorted[EGRESS_LIMIT_ADDRESSES] = { 0 };
	uint32_t at[2] = { 0, 0 }, count = 0;
	static const uint8_t families[2] = { ADDRESS_V6, ADDRESS_V4 };

	for (unsigned turn = 0; count < lookup->address_count; turn = !turn) {
		uint32_t *next = &at[turn];

		while (*next < lookup->address_count &&
		       lookup->addresses[*next].family != families[turn])
			++*next;
		if (*next < lookup->address_count)
			sorted[count++] = lookup->addresses[(*next)++];
	}
	memcpy(lookup->addresses, sorted, sizeof(sorted[0]) * count);
}

static enum egress_outcome outcome_of(int error)
{
	if (error == -ECONNREFUSED)
		return EGRESS_REFUSED;
	if (error == -ETIMEDOUT)
		return EGRESS_TIMEOUT;
	return error == -EMFILE || error == -ENFILE ? EGRESS_BUSY : EGRESS_UNREACHABLE;
}

/* Somebody who refuses tells more than nobody who answers, and that more than no way. */
static void note_failure(struct dial *dial, const struct address *address,
			 enum egress_outcome outcome)
{
	static const uint8_t ranks[EGRESS_OUTCOME_COUNT] = {
		[EGRESS_UNREACHABLE] = 1,
		[EGRESS_TIMEOUT] = 2,
		[EGRESS_BUSY] = 3,
		[EGRESS_REFUSED] = 4,
	};

	if (ranks[outcome] <= ranks[dial->failure])
		return;
	dial->failure = outcome;
	dial->last = *address;
}

static bool is_trying(const struct dial *dial)
{
	for (unsigned i = 0; i < DIALER_LIMIT_ATTEMPTS; i++)
		if (dial->attempts[i].fd >= 0)
			return true;
	return false;
}

/* Tries the next address in a place that is free; one that fails at once is passed over. */
static void try_next(struct dialer *dialer, struct dial *dial, unsigned index, uint64_t now_ns)
{
	struct dial_attempt *attempt = &dial->attempts[index];

	while (dial->next < dial->lookup.address_count && attempt->fd < 0) {
		const struct address *address = &dial->lookup.addresses[dial->next++];
		int fd = socket_connect(SOCK_STREAM, address, dial->port);
		int result = fd < 0 ? fd : socket_settled(fd, address, dial->port);
		bool is_settled = result == 0;

		/* what is near has answered by now, and need not be waited for */
		if (result == -EINPROGRESS)
			result = socket_watch(dialer->epoll_fd, fd, SOCKET_WRITE,
					      dial_tag(dialer, dial) + DIAL_ATTEMPT_FIRST + index);
		if (result < 0) {
			fd_close(&fd);
			note_failure(dial, address, outcome_of(result));
			continue;
		}
		*attempt = (struct dial_attempt){ fd, is_settled, now_ns, *address };
		dial->stagger_ns = now_ns + DIALER_STAGGER_NS;
	}
}

static void try_beside(struct dialer *dialer, struct dial *dial, uint64_t now_ns)
{
	for (unsigned i = 0; i < DIALER_LIMIT_ATTEMPTS; i++)
		if (dial->attempts[i].fd < 0) {
			try_next(dialer, dial, i, now_ns);
			return;
		}
}

static void give_up(struct dial *dial, struct dial_attempt *attempt, enum egress_outcome outcome)
{
	note_failure(dial, &attempt->address, outcome);
	fd_close(&attempt->fd);
}

/*
 * The epoll keeps what is registered as long as anybody has it open, and the proxy will: taken out
 * before it is handed over, or it would wake us as long as the task's connection lives.
 */
static int hand_over(struct dialer *dialer, struct dial *dial, struct dial_attempt *attempt,
		     uint64_t now_ns)
{
	int result = attempt->is_settled ? 0 : socket_unwatch(dialer->epoll_fd, attempt->fd);

	if (result < 0)
		return result;
	return dial_finish(dialer, dial, EGRESS_DONE, &attempt->address, attempt->fd, now_ns);
}

/* Goes on with what is left, or ends. */
static int go_on(struct dialer *dialer, struct dial *dial, uint64_t now_ns)
{
	if (!is_trying(dial))
		try_beside(dialer, dial, now_ns);
	for (unsigned i = 0; i < DIALER_LIMIT_ATTEMPTS; i++)
		if (dial->attempts[i].fd >= 0 && dial->attempts[i].is_settled)
			return hand_over(dialer, dial, &dial->attempts[i], now_ns);
	if (is_trying(dial))
		return 0;
	return dial_finish(dialer, dial, dial->failure, &dial->last, -1, now_ns);
}

int dial_connect(struct dialer *dialer, struct dial *dial, uint64_t now_ns)
{
	interleave(&dial->lookup);
	dial->state = DIAL_CONNECTS;
	dial->next = 0;
	dial->end_ns = now_ns + DIALER_CONNECT_NS;
	return go_on(dialer, dial, now_ns);
}

int dial_attempt_event(struct dialer *dialer, struct dial *dial, unsigned index, uint64_t now_ns)
{
	struct dial_attempt *attempt = &dial->attempts[index];
	int error;

	if (attempt->fd < 0)
		return 0;
	error = socket_error(attempt->fd);
	if (error == 0)
		return hand_over(dialer, dial, attempt, now_ns);
	give_up(dial, attempt, outcome_of(error));
	/* the place is free: the next address has it at once */
	try_next(dialer, dial, index, now_ns);
	return go_on(dialer, dial, now_ns);
}

uint64_t dial_deadline(const struct dial *dial)
{
	uint64_t deadline_ns = dial->end_ns;
	bool has_more = dial->next < dial->lookup.address_count;

	if (dial->state == DIAL_RESOLVES)
		return dial->lookup.try_end_ns;
	for (unsigned i = 0; has_more && i < DIALER_LIMIT_ATTEMPTS; i++) {
		const struct dial_attempt *attempt = &dial->attempts[i];
		uint64_t end_ns = attempt->fd < 0 ? dial->stagger_ns :
						    attempt->begun_ns + DIALER_ATTEMPT_NS;

		if (end_ns < deadline_ns)
			deadline_ns = end_ns;
	}
	return deadline_ns;
}

int dial_expire(struct dialer *dialer, struct dial *dial, uint64_t now_ns)
{
	bool is_over = now_ns >= dial->end_ns;

	for (unsigned i = 0; i < DIALER_LIMIT_ATTEMPTS; i++) {
		struct dial_attempt *attempt = &dial->attempts[i];
		bool has_more = dial->next < dial->lookup.address_count;

		if (attempt->fd >= 0 &&
		    (is_over || (has_more && now_ns >= attempt->begun_ns + DIALER_ATTEMPT_NS)))
			give_up(dial, attempt, EGRESS_TIMEOUT);
	}
	if (is_over)
		return dial_finish(dialer, dial, dial->failure, &dial->last, -1, now_ns);
	if (now_ns >= dial->stagger_ns)
		try_beside(dialer, dial, now_ns);
	return go_on(dialer, dial, now_ns);
}
