/*
 * The end of the task: what it sent goes to the upstreams that take it, for a limited time; then
 * all that is to say is said.
 */
#include "net/proxy_internal.h"

#include "ipc/role.h"

#include <errno.h>
#include <fcntl.h>

/*
 * At the end of the task: how long nothing may move of what it sent, and how long all may take. An
 * upstream that takes its bytes gets them; whoever waits for the task's end does not wait for one
 * that does not.
 */
#define QUIET_NS (100 * MILLISECOND_NS)

#define ENDING_NS SECOND_NS

/* The supervisor says nothing more, and listens until we end. */
void ending_begin(struct proxy *proxy)
{
	if (proxy->is_ending)
		return;
	proxy->is_ending = true;
	proxy->ending_ns = proxy->quiet_ns = proxy->now_ns;
	for (uint32_t i = 0; i < proxy->limit_connections; i++) {
		struct connection *connection = &proxy->connections[i];

		if (connection->state == STATE_FREE)
			continue;
		connection_give_up(connection);
		connection_ready(proxy, connection);
	}
}

/* It may go to an upstream, and has not gone there yet. */
static bool is_sending(const struct connection *connection)
{
	const struct end *client = &connection->client;

	if (connection->state == STATE_FREE || connection->state >= STATE_FLUSH ||
	    connection->state == STATE_LOOKUP || connection->is_refused)
		return false;
	if (!connection->is_opened && !connection_is_dialing(connection))
		return false;
	return stream_waiting(&connection->up) > 0 || chunk_length(connection->up.in) > 0 ||
	       (client->readable && !client->is_done && !client->is_lost);
}

static bool is_any_sending(const struct proxy *proxy)
{
	for (uint32_t i = 0; i < proxy->limit_connections; i++)
		if (is_sending(&proxy->connections[i]))
			return true;
	return false;
}

/*
 * After a turn, with events or a signal. Nobody connects any more, so that what waits at the
 * listeners comes to an end, however late we are there: all of it is on record. While the channel
 * is full nobody listens; a turn in which somebody did shows the end.
 */
bool ending_is_over(struct proxy *proxy, bool has_events)
{
	if (proxy->has_accepted || proxy->is_held) {
		proxy->listens_again = true;
		return false;
	}
	if (proxy->listens_again) {
		proxy->listens_again = false;
		return false;
	}
	if (proxy->now_ns - proxy->ending_ns >= ENDING_NS)
		return true;
	if (has_events || proxy->ready) {
		proxy->quiet_ns = proxy->now_ns;
		return false;
	}
	return proxy->now_ns - proxy->quiet_ns >= QUIET_NS || !is_any_sending(proxy);
}

/* The next look: at once, until a turn has shown that nothing happens. */
int ending_ms(const struct proxy *proxy)
{
	return proxy->quiet_ns == proxy->now_ns ? 0 : (int)(QUIET_NS / MILLISECOND_NS / 10);
}

/* What it has to say it says now, however long the supervisor takes to hear it. */
int ending_say_last(struct proxy *proxy)
{
	int flags = fcntl(ROLE_CHANNEL, F_GETFL);

	if (flags < 0 || fcntl(ROLE_CHANNEL, F_SETFL, flags & ~O_NONBLOCK) < 0)
		return -errno;
	report_last(proxy);
	return 0;
}
