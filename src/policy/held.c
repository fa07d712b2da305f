#include "policy/held.h"

#include "base/buffer.h"
#include "base/json.h"
#include "policy/view.h"

#include <stddef.h>

void held_fill(const struct limits *limits, const struct limit_facts *facts,
	       struct held ret_rows[LIMIT_COUNT])
{
	struct limit_means asked[LIMIT_COUNT], built_in[LIMIT_COUNT];
	struct limit_facts alone = *facts;

	for (enum limit limit = 0; limit < LIMIT_COUNT; limit++)
		alone.cgroup[limit] = 0;
	limits_means(facts, asked);
	limits_means(&alone, built_in);
	for (enum limit limit = 0; limit < LIMIT_COUNT; limit++) {
		bool is_asked = limits_is_asked(limits, limit);

		ret_rows[limit] = (struct held){
			.limit = limit,
			.value = limits->values[limit],
			.asked = is_asked,
			.means = is_asked ? asked[limit] : built_in[limit],
		};
	}
}

bool held_concerns(enum limit limit, const struct view *view)
{
	return limit != LIMIT_GPU || view_has_gpu(view);
}

/* Without an option there is nothing that could have been asked for: why is all there is to say. */
static bool is_left_out(const struct held *held)
{
	return held->value == LIMIT_NONE && limit_text(held->limit)->option;
}

void held_print(const struct held *held, struct buffer *buffer)
{
	buffer_text(buffer, limit_text(held->limit)->word);
	buffer_text(buffer, ": ");
	limit_print(held->limit, held->value, buffer);
	if (is_left_out(held))
		return;
	buffer_text(buffer, ", ");
	limit_means_print(&held->means, buffer);
}

void held_json(const struct held *held, const char *name, struct json *json)
{
	struct buffer CLEANUP_BUFFER text = { 0 };
	bool is_none = held->value == LIMIT_NONE;

	held_print(held, &text);
	json_object(json, name);
	json_string(json, "limit", limit_text(held->limit)->word);
	if (is_none)
		json_null(json, "value");
	else
		json_unsigned(json, "value", held->value);
	json_string(json, "text", text.data);
	json_string(json, "enforcement",
		    enforcement_name(is_none ? ENFORCEMENT_ABSENT : held->means.grade));
	json_unsigned(json, "grain_ms", is_none ? 0 : held->means.grain_ns / LIMIT_MS);
	json_string(json, "mechanism", is_left_out(held) ? NULL : held->means.mechanism);
	json_object_end(json);
	json->buffer->failed |= text.failed;
}
