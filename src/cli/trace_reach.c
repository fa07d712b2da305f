#include "cli/trace_reach.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/sha256.h"
#include "policy/egress_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* Of one rule's paths in a text for people. */
#define SHOWN_PATHS 8

static const char *load(struct trace_place *place, const char *kept, struct policy *ret_policy)
{
	char path[sizeof(TRACE_POLICIES) + SHA256_HEX_BYTES], hex[SHA256_HEX_BYTES];
	unsigned char digest[SHA256_BYTES], *bytes;
	struct error error = ERROR_NONE;
	struct sha256 hash;
	struct stat status;
	int CLEANUP_FD fd = -1;

	if (!kept || strlen(kept) != SHA256_HEX_BYTES - 1 ||
	    strspn(kept, "0123456789abcdef") != SHA256_HEX_BYTES - 1)
		return "no copy of the policy was kept";
	(void)snprintf(path, sizeof(path), "%s/%s", TRACE_POLICIES, kept);
	fd = fd_open_beneath(place->store.fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fd == -ENOENT ? "its policy is not kept in trace/policies" :
				       "its policy cannot be read";
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
	    status.st_size > POLICY_LIMIT_BYTES)
		return "its policy's file is none";
	bytes = arena_allocate(&place->arena, (size_t)status.st_size + 1);
	if (!bytes || fd_read_all(fd, bytes, (size_t)status.st_size) != status.st_size)
		return "its policy cannot be read";
	sha256_begin(&hash);
	sha256_update(&hash, bytes, (size_t)status.st_size);
	sha256_end(&hash, digest);
	sha256_hex(digest, hex);
	if (strcmp(hex, kept) != 0)
		return "its policy was changed: the bytes have another hash";
	if (policy_decode(bytes, (size_t)status.st_size, &place->arena, ret_policy, &error) < 0)
		return "its policy is of another version of bawn";
	return NULL;
}

void trace_reach_read(struct trace_place *place, const char *kept, struct trace_reach *ret_reach)
{
	*ret_reach = (struct trace_reach){ .is_known = false };
	ret_reach->why = load(place, kept, &ret_reach->policy);
	ret_reach->is_known = !ret_reach->why;
}

/* Which of the questions a class of paths belongs to. */
enum reach { REACH_READ, REACH_WRITE, REACH_HIDDEN, REACH_COUNT };

static enum reach reach_of(const struct view_path *path)
{
	switch (path->class) {
	case PATH_WRITE:
	case PATH_CACHE:
	case PATH_DEVICE:
	case PATH_GIT:
	case PATH_OBJECTS:
	case PATH_STAGE:
		return REACH_WRITE;
	case PATH_HIDE:
		return REACH_HIDDEN;
	default:
		return REACH_READ;
	}
}

static const char *const words[REACH_COUNT] = { "read", "write", "hidden" };

/* All paths of one rule, behind each other. */
static void print_rule(const struct policy *policy, enum reach reach, uint32_t rule, bool all,
		       struct buffer *buffer)
{
	size_t count = 0;

	for (size_t i = 0; i < policy->view.count; i++) {
		const struct view_path *path = &policy->view.paths[i];

		if (path->rule != rule || reach_of(path) != reach)
			continue;
		if (!count)
			buffer_format(buffer, "  %-10s", words[reach]);
		if (count++ < SHOWN_PATHS || all) {
			buffer_text(buffer, " ");
			buffer_visible(buffer, path->target);
			if (path->class == PATH_CACHE || path->class == PATH_GIT ||
			    path->class == PATH_OBJECTS || path->class == PATH_STAGE)
				buffer_text(buffer, " (own layer)");
		}
	}
	if (!count)
		return;
	if (count > SHOWN_PATHS && !all)
		buffer_format(buffer, " and %zu more", count - SHOWN_PATHS);
	buffer_text(buffer, "  (");
	rule_print(&policy->rules[rule], buffer);
	buffer_text(buffer, ")\n");
}

/* Each rule by itself; what none of them allows is denied. */
static void print_network(const struct egress_policy *egress, bool all, struct buffer *buffer)
{
	static const char *const verdicts[EGRESS_VERDICT_COUNT] = { "deny ", "ask ", "" };
	size_t shown = all || egress->rule_count < SHOWN_PATHS ? egress->rule_count : SHOWN_PATHS;

	for (size_t i = 0; i < shown; i++) {
		const struct egress_rule *rule = &egress->rules[i];

		buffer_format(buffer, "  %-10s %s", "connect", verdicts[rule->verdict]);
		egress_rule_print(rule, buffer);
		buffer_text(buffer, "  (");
		rule_print(&rule->ref, buffer);
		buffer_text(buffer, ")\n");
	}
	if (shown < egress->rule_count)
		buffer_format(buffer, "  %-10s by %zu more rules\n", "connect",
			      egress->rule_count - shown);
}

void trace_reach_print(const struct trace_reach *reach, bool all, struct buffer *buffer)
{
	static const char network[] = "nothing beyond the box's own loopback";
	struct rule_ref loopback = rule_builtin(RULE_NETWORK_LOOPBACK);
	const struct policy *policy = &reach->policy;

	if (!reach->is_known) {
		buffer_format(buffer, "  read, write, connect: not known: %s\n", reach->why);
		return;
	}
	for (unsigned word = 0; word < REACH_COUNT; word++)
		for (uint32_t rule = 0; rule < policy->rule_count; rule++)
			print_rule(policy, word, rule, all, buffer);
	if (policy->egress.mode != EGRESS_NONE) {
		print_network(&policy->egress, all, buffer);
		return;
	}
	buffer_format(buffer, "  %-10s %s", "connect", network);
	if (policy->listener_count)
		buffer_format(buffer, ", on which %zu listeners are the supervisor's",
			      policy->listener_count);
	buffer_text(buffer, "  (");
	rule_print(&loopback, buffer);
	buffer_text(buffer, ")\n");
}

static void write_paths(const struct policy *policy, enum reach reach, struct json *json)
{
	json_array(json, words[reach]);
	for (size_t i = 0; i < policy->view.count; i++) {
		const struct view_path *path = &policy->view.paths[i];

		if (reach_of(path) != reach)
			continue;
		json_object(json, NULL);
		json_string(json, "path", path->target);
		json_string(json, "class", path_class_name(path->class));
		json_string(json, "rule", policy->rules[path->rule].id);
		json_object_end(json);
	}
	json_array_end(json);
}

static void write_network(const struct egress_rule *rule, struct json *json)
{
	struct buffer CLEANUP_BUFFER text = { 0 };

	/* nobody can be asked: what asks is denied */
	if (rule->verdict != EGRESS_ALLOW)
		return;
	egress_rule_print(rule, &text);
	json_string(json, NULL, text.failed ? NULL : text.data);
}

void trace_reach_json(const struct trace_reach *reach, struct json *json)
{
	json_string(json, "unknown", reach->why);
	if (!reach->is_known) {
		for (unsigned word = 0; word < REACH_COUNT; word++)
			json_null(json, words[word]);
		json_null(json, "connect");
		return;
	}
	for (unsigned word = 0; word < REACH_COUNT; word++)
		write_paths(&reach->policy, word, json);
	json_array(json, "connect");
	json_string(json, NULL, "loopback");
	for (size_t i = 0; i < reach->policy.egress.rule_count; i++)
		write_network(&reach->policy.egress.rules[i], json);
	json_array_end(json);
}
