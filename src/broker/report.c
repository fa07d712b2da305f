#include "broker/report.h"

#include "base/buffer.h"
#include "trace/result.h"

#include <inttypes.h>
#include <stdio.h>

/* Names in one line; `bawn review` has them all. */
#define HELD_LIMIT 16

static void add_line(struct buffer *buffer, const char *text)
{
	buffer_text(buffer, "bawn: ");
	buffer_visible(buffer, text);
	buffer_text(buffer, "\n");
}

/* bawn: limit reached: memory 512M, exact; more: --memory SIZE */
static void add_limits(const struct result *result, struct buffer *buffer)
{
	for (size_t i = 0; i < result->hit_count; i++) {
		const struct limit_hit *hit = &result->hits[i];
		const struct limit_text *text = limit_text(hit->limit);

		buffer_format(buffer, "bawn: limit reached: %s ", text->word);
		limit_print(hit->limit, hit->value, buffer);
		if (hit->enforcement == ENFORCEMENT_POLLED)
			buffer_format(buffer, " (polled, up to %llu ms late)",
				      (unsigned long long)(hit->grain_ns / 1000000));
		if (text->option)
			buffer_format(buffer, "; another: %s", text->option);
		buffer_text(buffer, "\n");
	}
}

static void add_denials(const struct denial_list *denials, struct buffer *buffer)
{
	for (uint32_t i = 0; denials && i < denials->count; i++) {
		buffer_text(buffer, "bawn: ");
		denial_print(&denials->items[i], buffer);
		buffer_text(buffer, "\n");
	}
	if (denials && denials->dropped)
		buffer_format(buffer,
			      "bawn: %llu more %s not listed, since there are more than %d\n",
			      (unsigned long long)denials->dropped,
			      denials->dropped == 1 ? "denial is" : "denials are", DENIAL_LIMIT);
}

static void add_waiting(const struct change *change, struct buffer *buffer)
{
	buffer_visible(buffer, change->key ? change->key : change->path);
	if (change->reason) {
		buffer_text(buffer, " (");
		buffer_visible(buffer, change->reason);
		buffer_text(buffer, ")");
	}
}

/* What could neither be held nor lose its name. */
static void add_left(const struct result *result, struct buffer *buffer)
{
	for (size_t i = 0; i < result->change_count; i++) {
		const struct change *change = &result->changes[i];

		if (change->state != CHANGE_APPLIED || !change->reason)
			continue;
		buffer_text(buffer, "bawn: left in the workspace: ");
		add_waiting(change, buffer);
		buffer_text(buffer, "; programs outside of the box run or obey it\n");
	}
}

/* bawn: held: core.hooksPath, .git/hooks/pre-commit; `bawn review` shows, accepts, rejects */
static void add_held(const struct result *result, struct buffer *buffer)
{
	size_t count = 0;

	for (size_t i = 0; i < result->change_count; i++) {
		if (result->changes[i].state != CHANGE_HELD || count++ >= HELD_LIMIT)
			continue;
		buffer_text(buffer, count > 1 ? ", " : "bawn: held: ");
		add_waiting(&result->changes[i], buffer);
	}
	if (count > HELD_LIMIT) {
		char more[40];

		(void)snprintf(more, sizeof(more), ", and %zu more", count - HELD_LIMIT);
		buffer_text(buffer, more);
	}
	if (count)
		buffer_text(buffer, "; `bawn review` shows, accepts or rejects it\n");
}

/* bawn: staged: 2 changes; `bawn diff t-...` shows them, ... */
static void add_staged(const struct result *result, struct buffer *buffer)
{
	size_t count = 0;

	if (!result->stage)
		return;
	for (size_t i = 0; i < result->change_count; i++)
		count += result->changes[i].state == CHANGE_STAGED;
	buffer_text(buffer, "bawn: staged, not on the host: ");
	if (count)
		buffer_format(buffer, "%s%zu change%s in the workspace; ",
			      result->unlisted_changes ? "more than " : "", count,
			      count == 1 ? "" : "s");
	buffer_format(buffer,
		      "`bawn diff %s` shows what there is, `bawn apply %s` brings it over, `bawn "
		      "discard %s` drops it\n",
		      result->stage, result->stage, result->stage);
}

/* bawn: the workspace was a copy: 12 objects, 4 KiB ..., since it can have no layer (...) */
static void add_copied(const struct result *result, struct buffer *buffer)
{
	const struct result_copied *copied = result->copied;

	if (!copied)
		return;
	buffer_format(buffer,
		      "bawn: the workspace was a copy, of %" PRIu64 " objects (%" PRIu64
		      " KiB, and %" PRIu64 " files that share their data)",
		      copied->names, (copied->bytes + 1023) / 1024, copied->shared);
	for (size_t i = 0; i < copied->left_count && i < HELD_LIMIT; i++) {
		buffer_text(buffer, i ? ", " : "; not in it, as no file or not to be read: ");
		buffer_visible(buffer, copied->left[i]);
	}
	if (copied->left_count > HELD_LIMIT)
		buffer_format(buffer, ", and %zu more", copied->left_count - HELD_LIMIT);
	buffer_text(buffer, "; why: ");
	buffer_visible(buffer, copied->why);
	buffer_text(buffer, "\n");
}

static void add_ephemeral(const struct result *result, struct buffer *buffer)
{
	if (result->has_dropped)
		add_line(buffer, "ephemeral: what is changed in the workspace is not on the host, "
				 "and is gone when the task ends");
}

static void add_deferred(const struct result *result, struct buffer *buffer)
{
	for (size_t i = 0; i < result->change_count; i++) {
		const struct change *change = &result->changes[i];

		if (change->state != CHANGE_DEFERRED)
			continue;
		buffer_text(buffer, "bawn: not at the host yet: ");
		add_waiting(change, buffer);
		buffer_text(buffer, "; it comes with the next action, or with the task's end\n");
	}
}

/* What may be missing in the list of changes is never missing silently. */
static void add_unknown(const struct result *result, struct buffer *buffer)
{
	if (!result->changes_cut)
		return;
	buffer_text(buffer, "bawn: what changed where the task may write is not all known: ");
	buffer_visible(buffer, result->changes_cut);
	buffer_text(buffer, "\n");
}

/* bawn: artifacts: 3 in DIR; not copied: x (it is a link) */
/* What the kernel lacks is said once, since a refusal it gives by itself is in no record. */
static void add_capture(const struct result *result, struct buffer *buffer)
{
	if (result->network && result->network->by_ports)
		add_line(buffer, "this kernel has no rules that capture every connection: to ports "
				 "that no rule names they were refused, and are in no record");
}

static void add_artifacts(const struct artifact_list *list, struct buffer *buffer)
{
	size_t copied = 0, named = 0;

	if (!list->directory)
		return;
	for (size_t i = 0; i < list->count; i++)
		copied += !list->items[i].reason;
	buffer_format(buffer, "bawn: artifacts: %zu in ", copied);
	buffer_visible(buffer, list->directory);
	for (size_t i = 0; i < list->count && named < HELD_LIMIT; i++) {
		if (!list->items[i].reason)
			continue;
		buffer_text(buffer, named++ ? ", " : "; not copied: ");
		buffer_visible(buffer, list->items[i].path);
		buffer_format(buffer, " (%s)", list->items[i].reason);
	}
	if (list->count - copied > named || list->dropped)
		buffer_format(buffer, ", and %zu more",
			      list->count - copied - named + list->dropped);
	buffer_text(buffer, "\n");
}

void report_failure(const struct result *result, struct buffer *buffer)
{
	/* a refusal was told where it was made */
	if (result->message && result->end != RESULT_DENIED)
		add_line(buffer, result->message);
}

void report_lines(const struct result *result, struct buffer *buffer)
{
	report_failure(result, buffer);
	if (result->end == RESULT_TIMED_OUT)
		add_line(buffer,
			 "the wall-clock limit (--timeout) was reached; the command and all "
			 "that it started were ended");
	add_limits(result, buffer);
	add_denials(result->denials, buffer);
	add_capture(result, buffer);
	add_left(result, buffer);
	add_held(result, buffer);
	add_deferred(result, buffer);
	add_unknown(result, buffer);
	add_artifacts(&result->artifacts, buffer);
	add_copied(result, buffer);
	add_staged(result, buffer);
	add_ephemeral(result, buffer);
}
