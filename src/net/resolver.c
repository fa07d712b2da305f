#include "net/resolver.h"

#include "base/fd.h"
#include "net/socket.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define LIMIT_DATAGRAMS 8

void lookup_clear(struct lookup *lookup)
{
	memset(lookup, 0, sizeof(*lookup));
	lookup->udp_fd = -1;
	for (int i = 0; i < 2; i++)
		lookup->questions[i].stream_fd = -1;
}

static void end_stream(struct lookup_question *question)
{
	fd_close(&question->stream_fd);
	if (question->stream)
		question->stream->is_used = false;
	question->stream = NULL;
}

void lookup_end(struct lookup *lookup)
{
	fd_close(&lookup->udp_fd);
	for (int i = 0; i < 2; i++)
		end_stream(&lookup->questions[i]);
}

static bool is_open(const struct lookup_question *question)
{
	return question->type && !question->is_answered && !question->is_broken;
}

/* One question of this try goes out; false: it cannot. */
static bool ask(struct lookup *lookup, struct lookup_question *question)
{
	unsigned char packet[DNS_LIMIT_QUERY_BYTES];
	size_t length;

	if (getrandom(&question->id, sizeof(question->id), 0) != (ssize_t)sizeof(question->id))
		return false;
	length = dns_write_query(question->id, lookup->host, (enum dns_type)question->type, packet);
	return length && send(lookup->udp_fd, packet, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static unsigned count_tries(const struct resolver *resolver)
{
	unsigned count = resolver->order->resolver_count;

	if (count == 0)
		return 0;
	return count < RESOLVER_LIMIT_TRIES ? RESOLVER_LIMIT_TRIES : count;
}

/* A new socket for each try: an answer to the last one, which may be forged, is heard no more. */
static bool begin_try(struct resolver *resolver, struct lookup *lookup, uint64_t now_ns)
{
	const struct egress_order *order = resolver->order;
	unsigned server = lookup->try % order->resolver_count;
	bool is_asked = false;

	lookup_end(lookup);
	lookup->try_end_ns = now_ns + RESOLVER_TIME_NS / count_tries(resolver);
	lookup->udp_fd = socket_connect(SOCK_DGRAM, &order->resolvers[server].address,
					order->resolvers[server].port);
	if (lookup->udp_fd < 0 || socket_watch(resolver->epoll_fd, lookup->udp_fd, SOCKET_READ,
					       lookup->tag + RESOLVER_UDP) < 0)
		return false;
	for (int i = 0; i < 2; i++) {
		struct lookup_question *question = &lookup->questions[i];

		question->is_broken = false;
		if (is_open(question) && ask(lookup, question))
			is_asked = true;
	}
	return is_asked;
}

/* The next try that can be begun; LOOKUP_FAILED where there is none, or what is known by now. */
static enum lookup_state try_again(struct resolver *resolver, struct lookup *lookup,
				   uint64_t now_ns)
{
	if (lookup->address_count)
		return LOOKUP_DONE;
	while (++lookup->try < count_tries(resolver))
		if (begin_try(resolver, lookup, now_ns))
			return LOOKUP_WAITS;
	return LOOKUP_FAILED;
}

enum lookup_state lookup_begin(struct resolver *resolver, struct lookup *lookup,
			       const struct host *host, uint64_t tag, uint64_t now_ns)
{
	lookup_clear(lookup);
	lookup->host = host;
	lookup->tag = tag;
	lookup->questions[0].type = DNS_A;
	if (resolver->order->flags & EGRESS_ORDER_V6)
		lookup->questions[1].type = DNS_AAAA;
	if (count_tries(resolver) == 0)
		return LOOKUP_FAILED;
	return begin_try(resolver, lookup, now_ns) ? LOOKUP_WAITS :
						     try_again(resolver, lookup, now_ns);
}

/* After an answer or a failure of one question: what it means for all. */
static enum lookup_state judge(struct resolver *resolver, struct lookup *lookup, uint64_t now_ns)
{
	bool waits = false, broken = false;

	if (lookup->too_many)
		return LOOKUP_NO_NAME;
	for (int i = 0; i < 2; i++) {
		waits = waits || is_open(&lookup->questions[i]);
		broken = broken || lookup->questions[i].is_broken;
	}
	if (waits)
		return LOOKUP_WAITS;
	if (broken)
		return try_again(resolver, lookup, now_ns);
	return lookup->address_count ? LOOKUP_DONE : LOOKUP_NO_NAME;
}

static void keep(struct lookup *lookup, struct lookup_question *question,
		 const struct dns_result *result)
{
	/* "no such name" is one without addresses: some say it of one type alone (RFC 4074) */
	question->is_answered = true;
	lookup->too_many = lookup->too_many || result->too_many;
	for (size_t i = 0; i < result->address_count; i++) {
		if (lookup->address_count == EGRESS_LIMIT_ADDRESSES) {
			lookup->too_many = true;
			return;
		}
		lookup->addresses[lookup->address_count++] = result->addresses[i];
	}
}

static struct resolver_stream *take_stream(struct resolver *resolver)
{
	for (unsigned i = 0; i < RESOLVER_LIMIT_STREAMS; i++) {
		struct resolver_stream *stream = &resolver->streams[i];

		if (stream->is_used)
			continue;
		stream->is_used = true;
		stream->have = 0;
		return stream;
	}
	return NULL;
}

/* The answer was cut: the same server is asked over TCP, with an id of its own. */
static bool begin_stream(struct resolver *resolver, struct lookup *lookup, unsigned index)
{
	const struct egress_order *order = resolver->order;
	unsigned server = lookup->try % order->resolver_count;
	struct lookup_question *question = &lookup->questions[index];

	if (question->stream)
		return false;
	question->stream = take_stream(resolver);
	if (!question->stream)
		return false;
	question->stream_fd = socket_connect(SOCK_STREAM, &order->resolvers[server].address,
					     order->resolvers[server].port);
	return question->stream_fd >= 0 &&
	       socket_watch(resolver->epoll_fd, question->stream_fd, SOCKET_WRITE,
			    lookup->tag + RESOLVER_TCP_FIRST + index) == 0;
}

/* A packet for one question; false where it is none and the right one may still come. */
static bool take_packet(struct resolver *resolver, struct lookup *lookup, unsigned index,
			const unsigned char *bytes, size_t length)
{
	struct lookup_question *question = &lookup->questions[index];
	struct dns_result result;
	int parsed = dns_parse_answer(bytes, length, question->id, lookup->host,
				      (enum dns_type)question->type, &result);

	if (parsed == -ENOMSG)
		return false;
	if (parsed == 0 && result.truncated)
		question->is_broken = !begin_stream(resolver, lookup, index);
	else if (parsed < 0 || (result.code != DNS_NOERROR && result.code != DNS_NXDOMAIN))
		question->is_broken = true;
	else
		keep(lookup, question, &result);
	return true;
}

static void read_datagrams(struct resolver *resolver, struct lookup *lookup)
{
	unsigned char bytes[DNS_LIMIT_UDP_BYTES + 1];

	/* a flood is heard in parts, so that other lookups are, too */
	for (int count = 0; count < LIMIT_DATAGRAMS; count++) {
		ssize_t length = recv(lookup->udp_fd, bytes, sizeof(bytes), 0);

		if (length < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		for (unsigned i = 0; i < 2; i++) {
			struct lookup_question *question = &lookup->questions[i];

			if (!is_open(question) || question->stream)
				continue;
			/* the server refuses datagrams (ICMP), for all questions */
			if (length < 0)
				question->is_broken = true;
			else if (length <= (ssize_t)DNS_LIMIT_UDP_BYTES &&
				 take_packet(resolver, lookup, i, bytes, (size_t)length))
				break;
		}
		if (length < 0)
			return;
	}
}

/* The connection is there: the question goes out at once, it is shorter than any buffer. */
static bool write_stream(struct resolver *resolver, struct lookup *lookup, unsigned index)
{
	struct lookup_question *question = &lookup->questions[index];
	unsigned char frame[2 + DNS_LIMIT_QUERY_BYTES];
	size_t length;

	if (socket_error(question->stream_fd) != 0 ||
	    getrandom(&question->id, sizeof(question->id), 0) != (ssize_t)sizeof(question->id))
		return false;
	length = dns_write_query(question->id, lookup->host, (enum dns_type)question->type,
				 frame + 2);
	frame[0] = (unsigned char)(length >> 8);
	frame[1] = (unsigned char)length;
	if (send(question->stream_fd, frame, length + 2, MSG_NOSIGNAL) != (ssize_t)length + 2)
		return false;
	question->stream->have = 1; /* it is written, and of the answer there is nothing yet */
	return socket_rewatch(resolver->epoll_fd, question->stream_fd, SOCKET_READ,
			      lookup->tag + RESOLVER_TCP_FIRST + index) == 0;
}

/* 1: the frame is there; 0: more of it has to come; negative: it never will. */
static int fill_stream(const struct lookup_question *question)
{
	struct resolver_stream *stream = question->stream;
	size_t have = stream->have - 1u;
	ssize_t count =
		recv(question->stream_fd, stream->bytes + have, sizeof(stream->bytes) - have, 0);

	if (count < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (count == 0)
		return -EPIPE;
	have += (size_t)count;
	stream->have = (uint16_t)(have + 1);
	if (dns_frame(stream->bytes, have))
		return 1;
	return have == sizeof(stream->bytes) ? -EMSGSIZE : 0;
}

static void read_stream(struct resolver *resolver, struct lookup *lookup, unsigned index)
{
	struct lookup_question *question = &lookup->questions[index];
	int result;

	if (!question->stream || !is_open(question))
		return;
	if (question->stream->have == 0) {
		question->is_broken = !write_stream(resolver, lookup, index);
		if (question->is_broken)
			end_stream(question);
		return;
	}
	result = fill_stream(question);
	if (result == 0)
		return;
	if (result > 0) {
		size_t frame = dns_frame(question->stream->bytes, question->stream->have - 1u);

		/* nobody else speaks on this connection: anything but the answer is a failure */
		if (!take_packet(resolver, lookup, index, question->stream->bytes + 2, frame - 2))
			question->is_broken = true;
	} else {
		question->is_broken = true;
	}
	end_stream(question);
}

enum lookup_state lookup_read(struct resolver *resolver, struct lookup *lookup,
			      enum resolver_source source, uint64_t now_ns)
{
	if (source == RESOLVER_UDP)
		read_datagrams(resolver, lookup);
	else
		read_stream(resolver, lookup, source - RESOLVER_TCP_FIRST);
	return judge(resolver, lookup, now_ns);
}

enum lookup_state lookup_expire(struct resolver *resolver, struct lookup *lookup, uint64_t now_ns)
{
	return try_again(resolver, lookup, now_ns);
}
