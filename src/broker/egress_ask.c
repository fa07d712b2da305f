#include "broker/egress_ask.h"

#include "broker/approval.h"

#include <stdlib.h>

#define SECOND_NS UINT64_C(1000000000)

/* The one that calls back frees it, since it is called in any case. */
struct egress_waiting {
	struct egress_asks *asks; /* NULL: nobody wants the answer any more */
	struct egress_waiting *previous, *next;
	struct egress_asked asked;
};

static void leave(struct egress_waiting *waiting)
{
	struct egress_asks *asks = waiting->asks;

	if (waiting->previous)
		waiting->previous->next = waiting->next;
	else
		asks->first = waiting->next;
	if (waiting->next)
		waiting->next->previous = waiting->previous;
	asks->count--;
}

static void take_answer(const struct approval_request *request, enum approval_answer answer,
			const char *why, void *context)
{
	struct egress_waiting *waiting = context;
	struct egress_asks *asks = waiting->asks;

	(void)request;
	(void)why;
	if (asks) {
		leave(waiting);
		asks->answered(&waiting->asked, answer == APPROVAL_ONCE, asks->context);
	}
	free(waiting);
}

bool egress_ask(struct egress_asks *asks, const struct egress_asked *question,
		const struct rule_ref *rule)
{
	struct egress_waiting *waiting =
		asks->count < EGRESS_LIMIT_HELD ? malloc(sizeof(*waiting)) : NULL;
	struct approval_request request = { .verb = "net.connect",
					    .rule = *rule,
					    .reason = "a rule asks about this connection" };

	if (!waiting)
		return false;
	*waiting = (struct egress_waiting){ .asks = asks, .next = asks->first, .asked = *question };
	if (asks->first)
		asks->first->previous = waiting;
	asks->first = waiting;
	asks->count++;
	request.target = waiting->asked.target;
	request.shown = waiting->asked.shown;
	if (waiting->asked.is_unclear)
		request.reason = "a rule asks about this connection, and servers differ about "
				 "what its path names";
	/* where it cannot ask it has called back as well */
	(void)approval_ask(&request, question->asked_ns + EGRESS_LIMIT_ASK_S * SECOND_NS,
			   take_answer, waiting);
	return true;
}

void egress_ask_end(struct egress_asks *asks)
{
	for (struct egress_waiting *waiting = asks->first; waiting; waiting = waiting->next)
		waiting->asks = NULL;
	asks->first = NULL;
	asks->count = 0;
}
