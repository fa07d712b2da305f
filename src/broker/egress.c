#include "broker/egress.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "broker/egress_internal.h"
#include "broker/egress_whose.h"
#include "broker/task.h"
#include "net/edge.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Both are in their jails some milliseconds after their start; much later where memory is short. */
#define READY_NS (10ull * 1000 * 1000 * 1000)
/*
 * For all that the proxy has to tell when the task ends: it gives itself a second for bytes that
 * are still on their way (net/proxy.c). The rest is patience, where memory is short.
 */
#define HEAR_NS (5ull * 1000 * 1000 * 1000)
/* Messages of a role before others have their turn. */
#define TURN_MESSAGES 64
/*
 * A role that has said something waits for no answer, but for those to questions, and to be woken
 * for each word is most of what its listener costs. So whoever was heard a moment ago is not
 * listened to for a shorter one: the channel has room for some ninety messages.
 */
#define BUSY_NS (1000ull * 1000)
#define NAP_NS (300ull * 1000)
/*
 * How long what the proxy says may wait for an action that begins: its command may connect before
 * it was heard that it runs, and would be nobody's. What begins takes some milliseconds; whoever
 * holds it up does not hold up the network for longer.
 */
#define BEGINNING_NS (50ull * 1000 * 1000)
/*
 * At the end of an action: how long its result may wait for what the proxy has still to tell of it.
 * Some hundred microseconds mostly, and some milliseconds where its first connection was its last
 * deed. What comes later is told of whoever runs then, and with the task.
 */
#define SETTLE_NS (500ull * 1000 * 1000)
/* One more where a question came meanwhile. */
#define SETTLE_ROUNDS 4
/* A longer one is no list of name servers. */
#define RESOLVERS_BYTES 4096

#define OF(member, pointer) ((struct egress *)((char *)(pointer)-offsetof(struct egress, member)))

static struct box_capture *capture_of(struct task *task)
{
	return &task->box.capture;
}

static void forget_first(struct task *task)
{
	struct egress *egress = &task->egress;

	for (unsigned i = 0; i < egress->first_count; i++)
		task_watch_remove(task, &egress->first[i]);
	egress->first_count = 0;
}

/* The roles end, and whoever connects from now on is refused at once. */
static void shut(struct task *task)
{
	struct egress *egress = &task->egress;

	if (!egress->is_on)
		return;
	egress->is_on = false;
	egress_ask_end(&egress->asks);
	forget_first(task);
	if (egress->is_begun) {
		task_watch_remove(task, &egress->from_proxy);
		task_watch_remove(task, &egress->from_dialer);
		egress->patience.at_ns = egress->nap.at_ns = 0;
	}
	role_end(&egress->proxy);
	role_end(&egress->dialer);
	fd_close(&egress->proxy_program);
	fd_close(&egress->dialer_program);
	box_close_capture(&task->box);
}

void egress_fail(struct task *task, const char *role, const char *what)
{
	shut(task);
	egress_tell_alarm(task, role, what);
}

/*
 * The host's name servers, as resolv.conf(5) has them. The file is the host's, which no task can
 * change; what is no plain address is passed over.
 */
static void find_resolvers(struct egress_order *order)
{
	char text[RESOLVERS_BYTES];
	int CLEANUP_FD fd = open("/etc/resolv.conf", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t length = fd < 0 ? -1 : fd_read_all(fd, text, sizeof(text) - 1);
	char *line, *rest = text;

	if (length <= 0)
		return;
	text[length] = '\0';
	while (order->resolver_count < EGRESS_LIMIT_RESOLVERS && (line = strsep(&rest, "\n"))) {
		struct address address;
		const char *at = line + strspn(line, " \t");

		if (strncmp(at, "nameserver", 10) != 0 || (at[10] != ' ' && at[10] != '\t'))
			continue;
		at += 10;
		at += strspn(at, " \t");
		if (address_parse(at, strcspn(at, " \t\r#;"), &address) < 0)
			continue;
		order->resolvers[order->resolver_count].address = address;
		order->resolvers[order->resolver_count++].port = 53;
	}
}

static void lead_names(struct egress_order *order, uint16_t port)
{
	order->resolvers[0].address = (struct address){ ADDRESS_V4, { 127, 0, 0, 1 } };
	order->resolvers[0].port = port;
	order->resolver_count = 1;
}

/* The sealed memfd of a role: the order, and the rules behind it. */
static int make_order(const struct task *task, bool with_resolvers, struct error *error)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct buffer CLEANUP_BUFFER bytes = { 0 };
	struct egress_order order;
	const unsigned char *rules;
	size_t length;
	int result =
		egress_encode(&task->options.effective->policy.egress, &arena, &rules, &length);

	if (result < 0)
		return error_errno(error, result, "compiling the rules of the network");
	memset(&order, 0, sizeof(order));
	order.version = EGRESS_ORDER_VERSION;
	order.flags = (task->box.capture.v6 ? EGRESS_ORDER_V6 : 0u) |
		      (task->options.live ? EGRESS_ORDER_LIVE : 0u);
	order.rules_bytes = (uint32_t)length;
	if (with_resolvers && task->options.names_port)
		lead_names(&order, task->options.names_port);
	else if (with_resolvers)
		find_resolvers(&order);
	buffer_append(&bytes, (const char *)&order, sizeof(order));
	buffer_append(&bytes, (const char *)rules, length);
	if (bytes.failed)
		return error_errno(error, ENOMEM, "compiling the rules of the network");
	result = role_config(bytes.data, bytes.length);
	return result < 0 ? error_errno(error, result, "handing the rules of the network on") :
			    result;
}

/* The listeners beyond the first, of a box without rules of nft. */
static int pass_ports(struct task *task, struct error *error)
{
	const struct box_capture *capture = capture_of(task);
	int result = 0;

	for (unsigned i = 1; i < capture->port_count && result == 0; i++)
		result = message_send(task->egress.proxy.channel, EGRESS_LISTENER, NULL, 0,
				      &capture->ports[i], 1);
	return result < 0 ? error_errno(error, result, "handing the listeners on") : 0;
}

static int start_roles(struct task *task, const int peer[2], struct error *error)
{
	struct egress *egress = &task->egress;
	const struct box_capture *capture = capture_of(task);
	int of_proxy[] = { peer[0], capture->tcp >= 0 ? capture->tcp : capture->ports[0],
			   capture->udp };
	int CLEANUP_FD proxy_order = make_order(task, false, error);
	int CLEANUP_FD dialer_order = make_order(task, true, error);
	int result;

	if (proxy_order < 0 || dialer_order < 0)
		return proxy_order < 0 ? proxy_order : dialer_order;
	result = role_start(egress->dialer_program, EDGE_SUPERVISOR_DIALER, dialer_order, &peer[1],
			    1, &egress->dialer, error);
	if (result == 0)
		result = role_start(egress->proxy_program, EDGE_SUPERVISOR_PROXY, proxy_order,
				    of_proxy, 3, &egress->proxy, error);
	if (result == 0)
		result = pass_ports(task, error);
	/* a role that does not read its answers must not hold us up */
	if (result == 0 && (fcntl(egress->proxy.channel, F_SETFL, O_NONBLOCK) < 0 ||
			    fcntl(egress->dialer.channel, F_SETFL, O_NONBLOCK) < 0))
		result = error_errno(error, errno, "setting the channels of the roles");
	return result;
}

/* At the end of the task a role has said its last, and it ends; before, that is a failure. */
static void take_end(struct task *task, struct role *role, const char *name)
{
	struct egress *egress = &task->egress;

	if (egress->is_ending)
		egress->has_ended[role == &egress->dialer] = true;
	else
		egress_fail(task, name, "it ended");
}

/* True where the role's channel goes on, and has nothing more to say now. */
static bool listen_to(struct task *task, struct role *role, const char *name,
		      int (*hear)(struct task *task, const struct message *message,
				  const char **ret_why))
{
	struct message message;

	task->egress.has_searched = false;
	for (unsigned i = 0; i < TURN_MESSAGES; i++) {
		const char *why = "it sent what is no message";
		/* which waits for nothing: start_roles() */
		int result = message_receive(role->channel, &message);

		if (result == -EAGAIN)
			return true;
		if (result == -EPIPE || result == -ECONNRESET) {
			take_end(task, role, name);
			return false;
		}
		if (result == 0) {
			result = message.fd_count == 0 ? hear(task, &message, &why) : -EBADMSG;
			message_close_fds(&message);
		}
		if (result < 0) {
			egress_fail(task, name, why);
			return false;
		}
		/* what was heard may have ended the task's network */
		if (!task->egress.is_on)
			return false;
		if (task->egress.has_searched)
			return false;
	}
	return false;
}

static void nap_from(struct egress *egress, uint64_t now_ns)
{
	egress->from_proxy.fd = egress->from_dialer.fd = -1;
	egress->nap.at_ns = now_ns + NAP_NS;
}

/* After a role has said all that it had to. */
static void nap(struct egress *egress)
{
	uint64_t now_ns = clock_monotonic_ns();
	bool is_busy = now_ns - egress->heard_ns < BUSY_NS;

	egress->heard_ns = now_ns;
	if (is_busy && !egress->is_ending)
		nap_from(egress, now_ns);
}

static bool is_beginning(const struct task *task)
{
	for (const struct job *job = task->jobs; job; job = job->next)
		if (job->state == JOB_ENTERING)
			return true;
	return false;
}

/* Of several actions: whether one begins, whose connection the next that is heard of may be. */
static bool waits_for_action(struct task *task)
{
	struct egress *egress = &task->egress;
	uint64_t now_ns;

	if (!task->options.live || egress->is_ending || !is_beginning(task)) {
		egress->beginning_ns = 0;
		return false;
	}
	now_ns = clock_monotonic_ns();
	if (!egress->beginning_ns)
		egress->beginning_ns = now_ns;
	if (now_ns - egress->beginning_ns >= BEGINNING_NS)
		return false;
	nap_from(egress, now_ns);
	return true;
}

static void on_nap(struct task *task, struct task_timer *timer)
{
	struct egress *egress = OF(nap, timer);

	(void)task;
	egress->from_proxy.fd = egress->proxy.channel;
	egress->from_dialer.fd = egress->dialer.channel;
}

static void on_proxy(struct task *task, struct task_watch *watch, short events)
{
	(void)watch;
	(void)events;
	if (waits_for_action(task))
		return;
	if (listen_to(task, &task->egress.proxy, "bawn-proxy", egress_hear_proxy))
		nap(&task->egress);
}

static void on_dialer(struct task *task, struct task_watch *watch, short events)
{
	(void)watch;
	(void)events;
	if (listen_to(task, &task->egress.dialer, "bawn-dialer", egress_hear_dialer))
		nap(&task->egress);
}

static bool is_ready(const struct egress *egress)
{
	return egress->is_ready[0] && egress->is_ready[1];
}

static void on_patience(struct task *task, struct task_timer *timer)
{
	struct egress *egress = OF(patience, timer);

	if (egress->is_on && !is_ready(egress))
		egress_fail(task, egress->is_ready[0] ? "bawn-dialer" : "bawn-proxy",
			    "it was not ready in time");
}

static void on_telling(struct task *task, struct task_timer *timer)
{
	(void)timer;
	egress_tell(task);
}

/* The first connection or question of the task. */
static void on_first(struct task *task, struct task_watch *watch, short events)
{
	struct egress *egress = &task->egress;
	struct error error = ERROR_NONE;
	int peer[2] = { -1, -1 };
	int result = message_pair(peer);

	(void)watch;
	(void)events;
	if (egress->is_held) {
		/* held in this very turn */
		fd_close(&peer[0]);
		fd_close(&peer[1]);
		return;
	}
	forget_first(task);
	if (result == 0)
		result = start_roles(task, peer, &error);
	fd_close(&peer[0]);
	fd_close(&peer[1]);
	if (result < 0) {
		egress_fail(task, "bawn-proxy",
			    error.message[0] ? error.message : "it cannot be started");
		return;
	}
	egress->is_begun = true;
	egress->patience.at_ns = clock_monotonic_ns() + READY_NS;
	egress->from_proxy = (struct task_watch){ .fd = egress->proxy.channel, .ready = on_proxy };
	egress->from_dialer =
		(struct task_watch){ .fd = egress->dialer.channel, .ready = on_dialer };
	task_watch_add(task, &egress->from_proxy);
	task_watch_add(task, &egress->from_dialer);
}

static void watch_first(struct task *task, int fd)
{
	struct egress *egress = &task->egress;
	struct task_watch *watch = &egress->first[egress->first_count];

	if (fd < 0)
		return;
	*watch = (struct task_watch){ .fd = fd, .ready = on_first };
	egress->first_fds[egress->first_count++] = fd;
	task_watch_add(task, watch);
}

int egress_begin(struct task *task, struct error *error)
{
	struct egress *egress = &task->egress;
	const struct box_capture *capture = capture_of(task);
	int result;

	if (task->options.effective->policy.egress.mode != EGRESS_POLICY)
		return 0;
	if (capture->udp < 0 || (capture->tcp < 0 && !capture->port_count))
		return error_set(error, EPROTO, "the box has handed no listeners out");
	result = role_open(EDGE_SUPERVISOR_PROXY, &egress->proxy_program, error);
	if (result == 0)
		result = role_open(EDGE_SUPERVISOR_DIALER, &egress->dialer_program, error);
	if (result < 0)
		return result;
	egress->is_on = true;
	egress->by_ports = capture->tcp < 0;
	egress->asks = (struct egress_asks){ .answered = egress_answer, .context = task };
	egress_flood_begin(&egress->flood, clock_monotonic_ns());
	egress->patience.fire = on_patience;
	egress->telling.fire = on_telling;
	egress->nap.fire = on_nap;
	task_timer_add(task, &egress->patience);
	task_timer_add(task, &egress->telling);
	task_timer_add(task, &egress->nap);
	watch_first(task, capture->tcp);
	watch_first(task, capture->udp);
	for (unsigned i = 0; i < capture->port_count; i++)
		watch_first(task, capture->ports[i]);
	return 0;
}

void egress_hold(struct task *task, bool held)
{
	struct egress *egress = &task->egress;

	if (!egress->is_on || egress->is_held == held)
		return;
	egress->is_held = held;
	if (!egress->is_begun) {
		/* what waits at the listeners goes on waiting */
		for (unsigned i = 0; i < egress->first_count; i++)
			egress->first[i].fd = held ? -1 : egress->first_fds[i];
		return;
	}
	/* who stands cannot be in its jail in time */
	if (!is_ready(egress))
		egress->patience.at_ns = held ? 0 : clock_monotonic_ns() + READY_NS;
	/* children that were not waited for: the numbers are still theirs */
	(void)kill(egress->proxy.pid, held ? SIGSTOP : SIGCONT);
	(void)kill(egress->dialer.pid, held ? SIGSTOP : SIGCONT);
}

/* What the roles say until both have ended: true, or the time is up. */
static bool hear_out(struct task *task, uint64_t until_ns)
{
	struct egress *egress = &task->egress;

	while (egress->is_on && !(egress->has_ended[0] && egress->has_ended[1])) {
		struct pollfd channels[] = {
			{ .fd = egress->has_ended[0] ? -1 : egress->proxy.channel,
			  .events = POLLIN },
			{ .fd = egress->has_ended[1] ? -1 : egress->dialer.channel,
			  .events = POLLIN },
		};
		uint64_t now_ns = clock_monotonic_ns();
		int left_ms = now_ns < until_ns ? (int)((until_ns - now_ns) / 1000000u) + 1 : 0;
		int count = left_ms > 0 ? poll(channels, 2, left_ms) : 0;

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return false;
		if (channels[0].revents)
			on_proxy(task, NULL, 0);
		if (egress->is_on && channels[1].revents)
			on_dialer(task, NULL, 0);
	}
	return true;
}

/* It ended by itself, and not of a fault; what has closed its channel ends soon, or is no role. */
static bool has_ended_well(struct role *role, uint64_t until_ns)
{
	struct pollfd end = { .fd = role->pidfd, .events = POLLIN };
	uint64_t now_ns = clock_monotonic_ns();
	int left_ms = now_ns < until_ns ? (int)((until_ns - now_ns) / 1000000u) + 1 : 0;

	while (poll(&end, 1, left_ms) < 0 && errno == EINTR)
		;
	return end.revents && role_wait(role) == 0;
}

static bool is_readable(int fd)
{
	struct pollfd look = { .fd = fd, .events = POLLIN };

	return poll(&look, 1, 0) == 1 && look.revents & POLLIN;
}

/* Nobody has looked at the listeners since its first connection. */
static void begin_late(struct task *task)
{
	struct egress *egress = &task->egress;

	for (unsigned i = 0; i < egress->first_count; i++)
		if (is_readable(egress->first[i].fd)) {
			on_first(task, NULL, 0);
			return;
		}
}

/* True when the proxy has told all that it had, and has asked nothing. */
static bool settle_once(struct task *task, uint64_t until_ns)
{
	struct egress *egress = &task->egress;
	const struct egress_mark mark = { egress->mark + 1 };

	/* one that did not go out is not waited for, neither now nor later */
	if (message_send(egress->proxy.channel, EGRESS_MARK, &mark, sizeof(mark), NULL, 0) < 0)
		return true;
	egress->mark = mark.number;
	egress->is_marked = egress->has_asked = false;
	while (egress->is_on && !egress->is_marked) {
		struct pollfd look = { .fd = egress->proxy.channel, .events = POLLIN };
		uint64_t now_ns = clock_monotonic_ns();
		int left_ms = now_ns < until_ns ? (int)((until_ns - now_ns) / 1000000u) + 1 : 0;
		int count = left_ms > 0 ? poll(&look, 1, left_ms) : 0;

		if (count == 0 || (count < 0 && errno != EINTR))
			return true;
		if (count > 0)
			(void)listen_to(task, &egress->proxy, "bawn-proxy", egress_hear_proxy);
	}
	return !egress->has_asked;
}

void egress_settle(struct task *task)
{
	struct egress *egress = &task->egress;
	uint64_t until_ns = clock_monotonic_ns() + SETTLE_NS;

	/* one that has not answered the last one yet holds nobody up again */
	if (egress->mark && !egress->is_marked)
		return;
	/* whose it is cannot be told while another one begins: on_proxy() */
	if (!egress->is_on || egress->is_held || egress->is_ending || is_beginning(task))
		return;
	if (!egress->is_begun)
		begin_late(task);
	if (!egress->is_on || !egress->is_begun)
		return;
	for (int i = 0; i < SETTLE_ROUNDS && egress->is_on; i++)
		if (settle_once(task, until_ns))
			return;
}

/*
 * The proxy hears that nothing more is said to it, tells what is still to be told, and ends; with
 * it the dialer does. A proxy that does not has left ends of connections out of the record.
 */
static void drain(struct task *task)
{
	struct egress *egress = &task->egress;
	uint64_t until_ns = clock_monotonic_ns() + HEAR_NS;

	egress->is_ending = true;
	(void)shutdown(egress->proxy.channel, SHUT_WR);
	if (!hear_out(task, until_ns))
		egress_fail(task, egress->has_ended[0] ? "bawn-dialer" : "bawn-proxy",
			    "it did not end with its task");
	else if (egress->is_on && !has_ended_well(&egress->proxy, until_ns))
		egress_fail(task, "bawn-proxy", "it ended before it had told all");
}

void egress_end(struct task *task)
{
	struct egress *egress = &task->egress;

	egress_hold(task, false);
	if (egress->is_on && !egress->is_begun)
		begin_late(task);
	if (egress->is_on && egress->is_begun)
		drain(task);
	egress_tell(task);
	egress_flood_end(&egress->flood);
	egress_forget_owners(task);
	task_timer_remove(task, &egress->patience);
	task_timer_remove(task, &egress->telling);
	task_timer_remove(task, &egress->nap);
	shut(task);
	fd_close(&egress->proxy_program);
	fd_close(&egress->dialer_program);
}
