#include "trace/event.h"

#include "base/clock.h"

#include <errno.h>

static const struct {
	const char *name, *layer;
	enum event_urgency urgency;
} types[EVENT_TYPE_COUNT] = {
#define EVENT(name, word, layer, body, urgency) { word, layer, EVENT_##urgency },
#include "trace/event.def"
#undef EVENT
};

static int take_nothing(struct event_sink *sink, const struct event *event)
{
	(void)sink;
	return event->type < EVENT_TYPE_COUNT ? 0 : -EINVAL;
}

static int keep_nothing(struct event_sink *sink, const struct event_bytes *bytes)
{
	(void)sink;
	(void)bytes;
	return 0;
}

static int end_nothing(struct event_sink *sink, const char *cause, struct error *error)
{
	(void)sink;
	(void)cause;
	(void)error;
	return 0;
}

static int flush_nothing(struct event_sink *sink)
{
	(void)sink;
	return 0;
}

static bool work_nothing(struct event_sink *sink)
{
	(void)sink;
	return false;
}

struct event_sink event_null_sink = { .flush = flush_nothing,
				      .work = work_nothing,
				      .take = take_nothing,
				      .keep = keep_nothing,
				      .end = end_nothing };

int event_emit(struct event_sink *sink, struct event *event)
{
	if (!event->monotonic_ns)
		event->monotonic_ns = clock_monotonic_ns();
	return sink->take(sink, event);
}

int event_why(const struct event_sink *sink, int code, struct error *error)
{
	if (!sink->why.code)
		return error_errno(error, code, "an event");
	*error = sink->why;
	return error->code;
}

int event_keep(struct event_sink *sink, const struct event_bytes *bytes)
{
	return sink->keep(sink, bytes);
}

int event_flush(struct event_sink *sink)
{
	return sink->flush(sink);
}

bool event_work(struct event_sink *sink)
{
	return sink->work(sink);
}

int event_end(struct event_sink *sink, const char *cause, struct error *error)
{
	return sink->end(sink, cause, error);
}

const char *event_type_name(enum event_type type)
{
	return types[type].name;
}

const char *event_type_layer(enum event_type type)
{
	return types[type].layer;
}

enum event_urgency event_type_urgency(enum event_type type)
{
	return types[type].urgency;
}
