#include "broker/egress_whose.h"

#include "base/clock.h"
#include "broker/connector.h"
#include "broker/task.h"
#include "net/edge.h"

#include <errno.h>
#include <stdlib.h>

/* Of the supervisor's time a quarter, and so much at once: some fifty searches. */
#define SPENT_MOST_NS (100ull * 1000 * 1000)
#define SPENT_PART 4u

/* The number in the proxy's table is the end of its id; what is before it tells others apart. */
static struct egress_owner *owner_of(struct task *task, uint32_t connection)
{
	struct egress *egress = &task->egress;

	if (!egress->owners)
		egress->owners = calloc(EGRESS_LIMIT_CONNECTIONS, sizeof(*egress->owners));
	return egress->owners ? &egress->owners[connection % EGRESS_LIMIT_CONNECTIONS] : NULL;
}

void egress_note_owner(struct task *task, uint32_t connection, unsigned job)
{
	struct egress_owner *owner = job && connection ? owner_of(task, connection) : NULL;

	if (owner)
		*owner = (struct egress_owner){ connection, job };
}

void egress_forget_owners(struct task *task)
{
	free(task->egress.owners);
	task->egress.owners = NULL;
}

/* Takes the time of one search from that which there is for them. */
static bool may_search(struct egress *egress, uint64_t now_ns)
{
	uint64_t back_ns = (now_ns - egress->spent_at_ns) / SPENT_PART;

	egress->spent_ns -= back_ns < egress->spent_ns ? back_ns : egress->spent_ns;
	egress->spent_at_ns = now_ns;
	return egress->spent_ns < SPENT_MOST_NS && !egress->is_ending;
}

static int search(struct task *task, const struct sockets_end *here,
		  const struct sockets_end *there, uint64_t *ret_family)
{
	struct egress *egress = &task->egress;
	struct connector connector;
	uint64_t begun_ns = clock_monotonic_ns();
	int result;

	if (!may_search(egress, begun_ns))
		return -EBUSY;
	/* others have their turn */
	egress->has_searched = true;
	result = connector_find(&task->box, here, there, &connector);
	egress->spent_ns += clock_monotonic_ns() - begun_ns;
	if (result == 0)
		*ret_family = connector.family;
	return result;
}

unsigned egress_action_of(const struct task *task, uint64_t family)
{
	for (const struct job *job = task->jobs; family && job; job = job->next) {
		const struct process *begun = &job->entering.entered.process;
		uint64_t own = job->family;

		/* its command may run before it was heard that it does */
		if (!own && begun->pid > 0)
			own = box_family(&task->box, begun);
		if (own == family)
			return job->number;
	}
	return 0;
}

static struct job *find_running(struct task *task, unsigned number)
{
	struct job *job = task->jobs;

	while (job && (job->number != number || job->state < JOB_RUNNING))
		job = job->next;
	return job;
}

static struct job *only_running(const struct task *task, bool *ret_several)
{
	struct job *only = NULL;

	*ret_several = false;
	for (struct job *job = task->jobs; job; job = job->next) {
		if (job->state < JOB_RUNNING)
			continue;
		*ret_several |= only != NULL;
		only = job;
	}
	return only;
}

bool egress_is_shared(const struct task *task)
{
	bool is_several;

	(void)only_running(task, &is_several);
	return is_several;
}

struct job *egress_whose(struct task *task, uint32_t connection, const struct sockets_end *here,
			 const struct sockets_end *there, bool *ret_several)
{
	const struct egress_owner *owner;
	struct job *only = only_running(task, ret_several);
	uint64_t family = 0;
	unsigned number;

	if (!*ret_several)
		return only;
	owner = connection ? owner_of(task, connection) : NULL;
	if (owner && owner->connection == connection) {
		*ret_several = false;
		return find_running(task, owner->job);
	}
	if (!here || here->address.family == ADDRESS_NONE || search(task, here, there, &family) < 0)
		return NULL;
	*ret_several = false;
	number = egress_action_of(task, family);
	egress_note_owner(task, connection, number);
	return find_running(task, number);
}
