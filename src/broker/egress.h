/*
 * The network of a task whose network is the policy's: the supervisor's side of bawn-proxy and
 * bawn-dialer (net/edge.h).
 *
 * The box has handed its listeners out (struct box_capture). They are polled here, and nothing
 * runs for a task that never connects; the first connection or name question starts both roles,
 * which have the rules in sealed memfds. From then on the supervisor takes their word for what they
 * do: it goes to the record, the result and the denials, and each message is checked first. A role
 * that says what it must not, or dies, ends the other one and the task's network with it: whoever
 * connects then is refused, and neither is started again.
 *
 * Questions: which program connects (connector.h), and what a person says (egress_ask.h: deny where
 * nobody can be asked).
 */
#pragma once

#include "broker/egress_ask.h"
#include "broker/egress_flood.h"
#include "broker/task_loop.h"
#include "ipc/role.h"
#include "isolate/box.h"
#include "trace/network.h"

#include <stdbool.h>
#include <stdint.h>

struct egress_owner;
struct error;
struct task;

struct egress {
	bool is_on;    /* the listeners are watched, or the roles run */
	bool by_ports; /* the kernel has no rules that capture every port */
	bool is_begun; /* the roles run */
	bool is_ready[2];
	bool is_held;	   /* frozen with the task */
	bool is_ending;	   /* the roles tell their last, and nothing is looked for any more */
	bool has_ended[2]; /* proxy, dialer: then */
	uint32_t mark;	   /* the last one that the proxy was sent */
	bool is_marked;	   /* and has answered */
	bool has_asked;	   /* a question came meanwhile, whose answer has consequences to be told */
	bool has_searched; /* for a program (connector.h): that is enough for one turn */
	struct role proxy, dialer;
	int proxy_program, dialer_program; /* O_PATH, from before anything of the task ran */
	struct task_watch first[2 + BOX_LIMIT_PORTS];
	int first_fds[2 + BOX_LIMIT_PORTS]; /* of those, while they are not watched */
	unsigned first_count;
	struct task_watch from_proxy, from_dialer;
	struct task_timer patience; /* for the roles to be in their jails */
	struct task_timer nap;	    /* until what they say is heard again */
	uint64_t heard_ns;	    /* when something was heard last */
	uint64_t beginning_ns;	    /* since when the proxy waits for an action that begins; 0 */
	uint64_t open; /* connections that were told to have begun, and not to have ended */
	struct egress_asks asks;	/* what a person has not answered yet */
	struct egress_owner *owners;	/* owned; NULL: not asked for yet (egress_whose.h) */
	uint64_t spent_ns, spent_at_ns; /* on searches for them */
	struct egress_flood flood;
	struct task_timer telling; /* of what had no room in the record */
};

#define EGRESS_OFF                             \
	((struct egress){ .proxy = ROLE_NONE,  \
			  .dialer = ROLE_NONE, \
			  .proxy_program = -1, \
			  .dialer_program = -1 })

/* When the box stands. Does nothing where the policy gives no network. */
int egress_begin(struct task *task, struct error *error) __attribute__((warn_unused_result));

/* The roles stand with what they serve, and go on with it; none is started meanwhile. */
void egress_hold(struct task *task, bool held);

/*
 * At the end of an action of a live task, which is still among the task's: what the proxy has not
 * yet seen of its last connections is heard, for a limited time. Of a task of one action
 * egress_end() hears all.
 */
void egress_settle(struct task *task);

/* Before the result of an action: what is still to be told of connections. */
void egress_tell(struct task *task);

/*
 * Ends the roles, before anybody waits for all of our children. What ran in the box has been
 * killed; the proxy tells the ends of its connections, and the bytes that passed.
 */
void egress_end(struct task *task);
