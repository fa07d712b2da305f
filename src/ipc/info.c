#include "ipc/info.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/json.h"
#include "base/path.h"
#include "ipc/codec.h"
#include "ipc/control.h"

#include <errno.h>

/* Words of limits and grades, names of processes (TASK_COMM_LEN is 16), ids. */
#define WORD_BYTES 64u
/* What an item takes at the least, for codec_count(). */
#define LIMIT_ITEM_BYTES 26
#define PROCESS_ITEM_BYTES 34
#define ACTION_ITEM_BYTES 49

static const char *const modes[INFO_MODE_COUNT] = { "run", "live" };
static const char *const states[INFO_STATE_COUNT] = { "idle", "running", "frozen", "ending",
						      "ended" };
static const char *const freezers[INFO_FREEZER_COUNT] = { NULL, "cgroup", "signals" };

const char *info_mode_name(enum info_mode mode)
{
	return modes[mode];
}

const char *info_state_name(enum info_state state)
{
	return states[state];
}

const char *info_freezer_name(enum info_freezer freezer)
{
	return freezers[freezer];
}

static size_t at_most(size_t count, size_t limit)
{
	return count < limit ? count : limit;
}

static void put_word(struct buffer *buffer, const char *word)
{
	codec_put_prefix(buffer, word, WORD_BYTES - 1);
}

static void put_limits(const struct info *info, struct buffer *buffer)
{
	size_t count = at_most(info->limit_count, INFO_LIMIT_LIMITS);

	codec_put_u32(buffer, (uint32_t)count);
	for (size_t i = 0; i < count; i++) {
		const struct info_limit *limit = &info->limits[i];

		put_word(buffer, limit->word);
		codec_put_u64(buffer, limit->value);
		codec_put_u64(buffer, limit->usage);
		put_word(buffer, limit->grade);
	}
}

static void put_processes(const struct info *info, struct buffer *buffer)
{
	size_t count = at_most(info->process_count, INFO_LIMIT_PROCESSES);

	codec_put_u64(buffer, info->process_total);
	codec_put_u32(buffer, (uint32_t)count);
	for (size_t i = 0; i < count; i++) {
		const struct info_process *process = &info->processes[i];

		codec_put_u32(buffer, (uint32_t)process->pid);
		codec_put_u32(buffer, (uint32_t)process->parent);
		put_word(buffer, process->command);
		codec_put_u64(buffer, process->cpu_ns);
		codec_put_u64(buffer, process->memory_bytes);
		put_word(buffer, process->action);
	}
}

static void put_action(const struct info_action *action, struct buffer *buffer)
{
	size_t argc = at_most(action->argc, INFO_LIMIT_ARGUMENTS);

	put_word(buffer, action->action);
	codec_put_u32(buffer, (uint32_t)argc);
	for (size_t i = 0; i < argc; i++)
		codec_put_prefix(buffer, action->argv[i], INFO_LIMIT_ARGUMENT_BYTES - 1);
	codec_put_u32(buffer, action->state);
	codec_put_u64(buffer, action->age_ns);
	codec_put_u64(buffer, action->cpu_ns);
	codec_put_u64(buffer, action->memory_bytes);
	codec_put_u32(buffer, action->processes);
	codec_put_u32(buffer, (uint32_t)action->exit);
	codec_put_u32(buffer, action->tty);
}

void info_encode(const struct info *info, struct buffer *buffer)
{
	size_t actions = at_most(info->action_count, INFO_LIMIT_ACTIONS);

	codec_put_u32(buffer, CONTROL_VERSION);
	put_word(buffer, info->task);
	codec_put_u32(buffer, (uint32_t)info->pid);
	codec_put_u32(buffer, info->mode);
	codec_put_u32(buffer, info->state);
	codec_put_u32(buffer, info->freezer);
	codec_put_u64(buffer, info->started_wall_ns);
	codec_put_u64(buffer, info->age_ns);
	codec_put_prefix(buffer, info->workspace, PATH_LIMIT_BYTES - 1);
	codec_put_u64(buffer, info->idle_left_ns);
	codec_put_u64(buffer, info->lifetime_left_ns);
	codec_put_u64(buffer, info->cpu_ns);
	codec_put_u64(buffer, info->memory_bytes);
	put_limits(info, buffer);
	put_processes(info, buffer);
	codec_put_u32(buffer, (uint32_t)actions);
	for (size_t i = 0; i < actions; i++)
		put_action(&info->actions[i], buffer);
}

static void decode_limits(struct codec_cursor *cursor, struct info *info)
{
	size_t count = codec_count(cursor, INFO_LIMIT_LIMITS, LIMIT_ITEM_BYTES);
	struct info_limit *limits = codec_array(cursor, count, sizeof(*limits));

	for (size_t i = 0; limits && i < count; i++) {
		limits[i].word = codec_string(cursor, WORD_BYTES);
		limits[i].value = codec_u64(cursor);
		limits[i].usage = codec_u64(cursor);
		limits[i].grade = codec_string(cursor, WORD_BYTES);
	}
	info->limits = limits;
	info->limit_count = count;
}

static void decode_processes(struct codec_cursor *cursor, struct info *info)
{
	uint64_t total = codec_u64(cursor);
	size_t count = codec_count(cursor, INFO_LIMIT_PROCESSES, PROCESS_ITEM_BYTES);
	struct info_process *processes = codec_array(cursor, count, sizeof(*processes));

	for (size_t i = 0; processes && i < count; i++) {
		processes[i].pid = (int32_t)codec_u32(cursor);
		processes[i].parent = (int32_t)codec_u32(cursor);
		processes[i].command = codec_string(cursor, WORD_BYTES);
		processes[i].cpu_ns = codec_u64(cursor);
		processes[i].memory_bytes = codec_u64(cursor);
		processes[i].action = codec_string(cursor, WORD_BYTES);
	}
	info->processes = processes;
	info->process_count = count;
	info->process_total = total;
}

static void decode_actions(struct codec_cursor *cursor, struct info *info)
{
	size_t count = codec_count(cursor, INFO_LIMIT_ACTIONS, ACTION_ITEM_BYTES);
	struct info_action *actions = codec_array(cursor, count, sizeof(*actions));

	for (size_t i = 0; actions && i < count; i++) {
		struct info_action *action = &actions[i];

		action->action = codec_string(cursor, WORD_BYTES);
		action->argc = codec_count(cursor, INFO_LIMIT_ARGUMENTS, 5);
		action->argv = codec_strings(cursor, action->argc, INFO_LIMIT_ARGUMENT_BYTES);
		action->state = codec_enum(cursor, INFO_STATE_COUNT);
		action->age_ns = codec_u64(cursor);
		action->cpu_ns = codec_u64(cursor);
		action->memory_bytes = codec_u64(cursor);
		action->processes = codec_u32(cursor);
		action->exit = (int32_t)codec_u32(cursor);
		action->tty = codec_enum(cursor, 2) == 1;
	}
	info->actions = actions;
	info->action_count = count;
}

int info_decode(const void *bytes, size_t length, struct arena *arena, struct info *ret_info)
{
	struct info info = { 0 };
	struct codec_cursor cursor;
	int result;

	codec_begin(&cursor, bytes, length, arena);
	if (codec_u32(&cursor) != CONTROL_VERSION)
		codec_fail(&cursor, -EPROTONOSUPPORT);
	info.task = codec_string(&cursor, WORD_BYTES);
	info.pid = (int32_t)codec_u32(&cursor);
	info.mode = codec_enum(&cursor, INFO_MODE_COUNT);
	info.state = codec_enum(&cursor, INFO_STATE_COUNT);
	info.freezer = codec_enum(&cursor, INFO_FREEZER_COUNT);
	info.started_wall_ns = codec_u64(&cursor);
	info.age_ns = codec_u64(&cursor);
	info.workspace = codec_string(&cursor, PATH_LIMIT_BYTES);
	info.idle_left_ns = codec_u64(&cursor);
	info.lifetime_left_ns = codec_u64(&cursor);
	info.cpu_ns = codec_u64(&cursor);
	info.memory_bytes = codec_u64(&cursor);
	decode_limits(&cursor, &info);
	decode_processes(&cursor, &info);
	decode_actions(&cursor, &info);
	result = codec_end(&cursor);
	if (result == 0)
		*ret_info = info;
	return result;
}

static void known_json(struct json *json, const char *name, uint64_t value)
{
	if (value == INFO_UNKNOWN)
		json_null(json, name);
	else
		json_unsigned(json, name, value);
}

static void limits_json(const struct info *info, struct json *json)
{
	json_object(json, "limits");
	for (size_t i = 0; i < info->limit_count; i++) {
		json_object(json, info->limits[i].word);
		known_json(json, "value", info->limits[i].value);
		known_json(json, "usage", info->limits[i].usage);
		json_string(json, "grade", info->limits[i].grade);
		json_object_end(json);
	}
	json_object_end(json);
}

static void processes_json(const struct info *info, struct json *json)
{
	json_unsigned(json, "process_total", info->process_total);
	json_array(json, "processes");
	for (size_t i = 0; i < info->process_count; i++) {
		const struct info_process *process = &info->processes[i];

		json_object(json, NULL);
		json_integer(json, "pid", process->pid);
		json_integer(json, "parent", process->parent);
		json_string(json, "command", process->command);
		json_unsigned(json, "cpu_ns", process->cpu_ns);
		json_unsigned(json, "memory_bytes", process->memory_bytes);
		json_string(json, "action", process->action[0] ? process->action : NULL);
		json_object_end(json);
	}
	json_array_end(json);
}

static void actions_json(const struct info *info, struct json *json)
{
	json_array(json, "actions");
	for (size_t i = 0; i < info->action_count; i++) {
		const struct info_action *action = &info->actions[i];

		json_object(json, NULL);
		json_string(json, "action", action->action);
		json_array(json, "argv");
		for (size_t j = 0; j < action->argc; j++)
			json_string(json, NULL, action->argv[j]);
		json_array_end(json);
		json_string(json, "state", states[action->state]);
		json_bool(json, "tty", action->tty);
		json_unsigned(json, "age_ns", action->age_ns);
		json_unsigned(json, "cpu_ns", action->cpu_ns);
		json_unsigned(json, "memory_bytes", action->memory_bytes);
		json_unsigned(json, "processes", action->processes);
		if (action->exit < 0)
			json_null(json, "exit");
		else
			json_integer(json, "exit", action->exit);
		json_object_end(json);
	}
	json_array_end(json);
}

void info_json(const struct info *info, struct json *json, const char *name)
{
	json_object(json, name);
	json_string(json, "task", info->task);
	json_integer(json, "pid", info->pid);
	json_string(json, "mode", modes[info->mode]);
	json_string(json, "state", states[info->state]);
	json_string(json, "frozen_by", freezers[info->freezer]);
	json_unsigned(json, "started_wall_ns", info->started_wall_ns);
	json_unsigned(json, "age_ns", info->age_ns);
	json_string(json, "workspace", info->workspace);
	known_json(json, "idle_left_ns", info->idle_left_ns);
	known_json(json, "lifetime_left_ns", info->lifetime_left_ns);
	json_unsigned(json, "cpu_ns", info->cpu_ns);
	json_unsigned(json, "memory_bytes", info->memory_bytes);
	limits_json(info, json);
	processes_json(info, json);
	actions_json(info, json);
	json_object_end(json);
}
