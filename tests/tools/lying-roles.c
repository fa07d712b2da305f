/*
 * bawn-proxy and bawn-dialer that were taken over (tests/run/test_egress_roles.py), in one program
 * that is the one it is started as. Never installed. What the proxy does is said by the port that
 * a connection was meant for:
 *
 *   1001  a message that nobody knows       1007  a lookup's host that is none
 *   1002  a flow that is too short          1008  a question about a rule that does not ask
 *   1003  ends                              1009  questions, and no look at the answers
 *   1004  dies of a fault                   1010  an end without a beginning
 *   1005  flows without end                 1011  a descriptor with a flow
 *   1006  an enumerator out of range        1012  the dialer dials what no rule allows
 *   1013  the dialer ends                   1014  who connects: the answer goes to the client
 *   1015  a flood of refusals, behind it connections and dials that were allowed
 *   1016  does not end with its task
 *   1017  a message of no flow               1018  two in one, of which the second is out of range
 *   1019  an answer to a mark that was not set
 *   else  a denial, and the connection is reset
 */
#include "ipc/message.h"
#include "ipc/role.h"
#include "net/edge.h"
#include "policy/egress.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define TYPE_NOBODY_KNOWS 77
#define FLOOD 100000
#define REFUSALS 5000
#define ALLOWED 2000

static int tell(unsigned type, const void *bytes, size_t length)
{
	return message_send(ROLE_CHANNEL, type, bytes, length, NULL, 0);
}

static struct address address_of(const struct sockaddr_in6 *end)
{
	struct address address = { .family = ADDRESS_V6 };

	if (IN6_IS_ADDR_V4MAPPED(&end->sin6_addr)) {
		address.family = ADDRESS_V4;
		memcpy(address.bytes, &end->sin6_addr.s6_addr[12], 4);
	} else {
		memcpy(address.bytes, &end->sin6_addr, 16);
	}
	return address;
}

static struct egress_flow flow_to(uint16_t port)
{
	struct egress_flow flow = { .id = 1,
				    .phase = EGRESS_STOPPED,
				    .verdict = EGRESS_DENY,
				    .rule = EGRESS_NO_RULE,
				    .port = port };

	(void)snprintf(flow.host, sizeof(flow.host), "denied.example");
	(void)snprintf(flow.reason, sizeof(flow.reason), "said by a stub");
	return flow;
}

static void flood(unsigned type, const void *bytes, size_t length)
{
	for (unsigned i = 0; i < FLOOD; i++)
		if (tell(type, bytes, length) < 0)
			return;
}

/* Refusals of many names, then what must not be lost behind them. */
static void flood_of_both(uint16_t port)
{
	struct egress_flow flow = flow_to(443);

	for (unsigned i = 0; i < REFUSALS; i++) {
		(void)snprintf(flow.host, sizeof(flow.host), "n%u.example", i);
		(void)tell(EGRESS_FLOW, &flow, sizeof(flow));
	}
	flow.verdict = flow.opened_verdict = EGRESS_ALLOW;
	flow.rule = 0;
	(void)snprintf(flow.host, sizeof(flow.host), "allowed.example");
	for (unsigned i = 0; i < ALLOWED; i++) {
		flow.id = i;
		flow.phase = EGRESS_OPENED;
		flow.bytes_up = 0;
		flow.reason[0] = '\0';
		(void)tell(EGRESS_FLOW, &flow, sizeof(flow));
		flow.phase = EGRESS_CLOSED;
		flow.bytes_up = 10;
		(void)snprintf(flow.reason, sizeof(flow.reason), "a connection was reset");
		(void)tell(EGRESS_FLOW, &flow, sizeof(flow));
	}
	(void)message_send(EGRESS_FD_PEER, EGRESS_DIAL, &port, sizeof(port), NULL, 0);
}

/* Marks are answered by the way. False when there is nothing more to hear. */
static bool hear(struct message *message)
{
	if (message_receive(ROLE_CHANNEL, message) < 0)
		return false;
	if (message->type == EGRESS_MARK)
		(void)tell(EGRESS_MARKED, message->bytes, message->length);
	return true;
}

static void ask_who(int fd, struct egress_question_message *question)
{
	struct message message;
	struct egress_reply reply;
	char text[128];

	if (tell(EGRESS_QUESTION, question, sizeof(*question)) < 0)
		return;
	do
		if (!hear(&message))
			return;
	while (message.type != EGRESS_REPLY);
	memcpy(&reply, message.bytes, sizeof(reply));
	(void)snprintf(text, sizeof(text), "%u %u %llu %llu\n", reply.yes, reply.action,
		       (unsigned long long)reply.tool_device, (unsigned long long)reply.tool_inode);
	(void)send(fd, text, strlen(text), MSG_NOSIGNAL);
}

static void lie(uint16_t port, int fd, struct egress_question_message *question)
{
	struct egress_flow flow = flow_to(port);
	struct egress_flow both[] = { flow, flow };
	const struct egress_mark mark = { 1 };

	switch (port) {
	case 1001:
		(void)tell(TYPE_NOBODY_KNOWS, "", 0);
		break;
	case 1002:
		(void)tell(EGRESS_FLOW, &flow, sizeof(flow) - 1);
		break;
	case 1003:
		_exit(0);
	case 1004:
		*(volatile int *)NULL = 0;
		break;
	case 1005:
		flood(EGRESS_FLOW, &flow, sizeof(flow));
		break;
	case 1006:
		flow.outcome = EGRESS_OUTCOME_COUNT;
		(void)tell(EGRESS_FLOW, &flow, sizeof(flow));
		break;
	case 1007:
		(void)snprintf(flow.host, sizeof(flow.host), "Not\x1b[31mcanonical");
		(void)tell(EGRESS_FLOW, &flow, sizeof(flow));
		break;
	case 1008:
		question->kind = EGRESS_MAY;
		question->rule = EGRESS_NO_RULE;
		(void)tell(EGRESS_QUESTION, question, sizeof(*question));
		break;
	case 1009:
		flood(EGRESS_QUESTION, question, sizeof(*question));
		break;
	case 1010:
		flow.phase = EGRESS_CLOSED;
		(void)tell(EGRESS_FLOW, &flow, sizeof(flow));
		break;
	case 1011:
		(void)message_send(ROLE_CHANNEL, EGRESS_FLOW, &flow, sizeof(flow), &fd, 1);
		break;
	case 1012:
	case 1013:
		(void)message_send(EGRESS_FD_PEER, EGRESS_DIAL, &port, sizeof(port), NULL, 0);
		break;
	case 1014:
		ask_who(fd, question);
		break;
	case 1015:
		flood_of_both(port);
		break;
	case 1016:
		for (;;)
			(void)pause();
	case 1017:
		(void)tell(EGRESS_FLOW, &flow, 0);
		break;
	case 1018:
		both[1].phase = EGRESS_PHASE_COUNT;
		(void)tell(EGRESS_FLOW, both, sizeof(both));
		break;
	case 1019:
		(void)tell(EGRESS_MARKED, &mark, sizeof(mark));
		break;
	default:
		(void)tell(EGRESS_FLOW, &flow, sizeof(flow));
		break;
	}
}

static void be_proxy(void)
{
	for (;;) {
		struct egress_question_message question = { .id = 7, .rule = EGRESS_NO_RULE };
		struct pollfd wait[] = { { .fd = EGRESS_FD_TCP, .events = POLLIN },
					 { .fd = ROLE_CHANNEL, .events = POLLIN | POLLRDHUP } };
		struct message message;
		struct sockaddr_in6 there = { 0 }, here = { 0 };
		socklen_t length = sizeof(there);
		const struct linger reset = { .l_onoff = 1 };
		int fd;

		if (poll(wait, 2, -1) < 0 || (wait[1].revents && !hear(&message)))
			_exit(0);
		if (!wait[0].revents)
			continue;
		fd = accept4(EGRESS_FD_TCP, (struct sockaddr *)&there, &length, SOCK_CLOEXEC);
		length = sizeof(here);
		if (fd < 0 || getsockname(fd, (struct sockaddr *)&here, &length) < 0)
			continue;
		question.peer = address_of(&there);
		question.peer_port = ntohs(there.sin6_port);
		question.local = address_of(&here);
		question.local_port = question.port = ntohs(here.sin6_port);
		(void)snprintf(question.host, sizeof(question.host), "denied.example");
		lie(question.port, fd, &question);
		if (question.port != 1014)
			(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		(void)close(fd);
	}
}

static void be_dialer(void)
{
	struct message message;

	while (message_receive(EGRESS_FD_PEER, &message) == 0) {
		struct egress_tried tried = { .port = 443, .outcome = EGRESS_REFUSED };
		uint16_t port;

		memcpy(&port, message.bytes, sizeof(port));
		if (port == 1013)
			_exit(0);
		if (port == 1015) {
			tried.outcome = EGRESS_DONE;
			(void)snprintf(tried.host, sizeof(tried.host), "allowed.example");
			for (unsigned i = 0; i < ALLOWED; i++)
				(void)tell(EGRESS_TRIED, &tried, sizeof(tried));
			continue;
		}
		(void)snprintf(tried.host, sizeof(tried.host), "never.example");
		(void)tell(EGRESS_TRIED, &tried, sizeof(tried));
	}
}

int main(int argc, char **argv)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (argc != 1 || tell(EGRESS_READY, NULL, 0) < 0)
		return 1;
	if (strstr(argv[0], "dialer"))
		be_dialer();
	else
		be_proxy();
	return 0;
}
