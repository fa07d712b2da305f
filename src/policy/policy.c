#include "policy/policy.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/path.h"

#include <errno.h>
#include <string.h>

bool policy_variable(struct policy *policy, struct arena *arena, const char *name,
		     const char *value, uint32_t rule)
{
	struct policy_variable *grown;

	for (size_t i = 0; i < policy->variable_count; i++) {
		if (strcmp(policy->variables[i].name, name) == 0) {
			policy->variables[i].value = value;
			policy->variables[i].rule = rule;
			return true;
		}
	}
	if (policy->variable_count >= POLICY_LIMIT_VARIABLES)
		return false;
	grown = arena_push(arena, policy->variables, policy->variable_count, sizeof(*grown));
	if (!grown)
		return false;
	policy->variables = grown;
	grown[policy->variable_count++] =
		(struct policy_variable){ .name = name, .value = value, .rule = rule };
	return true;
}

uint32_t policy_rule(struct policy *policy, struct arena *arena, struct rule_ref rule)
{
	struct rule_ref *grown;

	for (size_t i = 0; i < policy->rule_count; i++) {
		const struct rule_ref *old = &policy->rules[i];

		if (old->line == rule.line && strcmp(old->id, rule.id) == 0 &&
		    (old->file == rule.file ||
		     (old->file && rule.file && strcmp(old->file, rule.file) == 0)))
			return (uint32_t)i;
	}
	grown = arena_push(arena, policy->rules, policy->rule_count, sizeof(*grown));
	if (!grown)
		return 0;
	policy->rules = grown;
	grown[policy->rule_count] = rule;
	return (uint32_t)policy->rule_count++;
}

/*
 * The blob, all numbers little-endian:
 *
 *   "bawnpol\n"  u32 version  u32 total length
 *   u32 flags, uid, gid, limits that were asked for   u64 timeout_ns
 *   u64 for each limit of limit.def, then u32 rule of each
 *   u32 string offset: user, home, shell, workspace, cwd   u32 approval, its rule
 *   u32 the tier's floor, what becomes of facts that call for more, the rules of both
 *   u32 count and offset of: rules, paths, variables, listeners, rulings; u32 length and offset of
 *   egress
 *   the sections, in that order and without gaps, the last as egress_encode() writes it; then the
 *   strings, each NUL-ended
 *
 * A string offset of 0 is NULL. Strings stand in the order in which the fields name them, without
 * gaps and each once: one policy has one encoding, and reading it takes linear time. Sections have
 * fixed-size entries:
 *   rule      u32 id, file, line, reserved
 *   path      u32 class, kind, source, target, upper, rule; u64 device, inode, state
 *   variable  u32 name, value, rule, reserved
 *   listener  u32 family, type, port, reserved
 *   ruling    u32 kind, text, label, note, digest, rule; u64 until
 */
static const char magic[8] = { 'b', 'a', 'w', 'n', 'p', 'o', 'l', '\n' };

/* in their order in the header */
enum {
	SECTION_RULES,
	SECTION_PATHS,
	SECTION_VARIABLES,
	SECTION_LISTENERS,
	SECTION_RULINGS,
	SECTION_EGRESS,
	SECTION_COUNT
};

enum {
	HEADER_BYTES = 8 + 4 * 2 + 4 * 4 + 8 + 12 * LIMIT_COUNT + 4 * 11 + 4 * SECTION_COUNT * 2,
	RULE_BYTES = 16,
	PATH_BYTES = 48,
	VARIABLE_BYTES = 16,
	LISTENER_BYTES = 16,
	RULING_BYTES = 32,
};

static const size_t entry_bytes[SECTION_COUNT] = {
	[SECTION_RULES] = RULE_BYTES,	      [SECTION_PATHS] = PATH_BYTES,
	[SECTION_VARIABLES] = VARIABLE_BYTES, [SECTION_LISTENERS] = LISTENER_BYTES,
	[SECTION_RULINGS] = RULING_BYTES,     [SECTION_EGRESS] = 1,
};

struct writer {
	unsigned char *bytes;
	size_t at;	/* next fixed-size field */
	size_t strings; /* next string */
};

static void put32(struct writer *writer, uint32_t value)
{
	for (unsigned i = 0; i < 4; i++)
		writer->bytes[writer->at++] = (unsigned char)(value >> (8 * i));
}

static void put64(struct writer *writer, uint64_t value)
{
	put32(writer, (uint32_t)value);
	put32(writer, (uint32_t)(value >> 32));
}

static void put_string(struct writer *writer, const char *text)
{
	size_t length;

	if (!text) {
		put32(writer, 0);
		return;
	}
	length = strlen(text) + 1;
	put32(writer, (uint32_t)writer->strings);
	memcpy(writer->bytes + writer->strings, text, length);
	writer->strings += length;
}

static size_t string_bytes(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

static size_t fixed_bytes(const struct policy *policy)
{
	return HEADER_BYTES + policy->rule_count * RULE_BYTES + policy->view.count * PATH_BYTES +
	       policy->variable_count * VARIABLE_BYTES + policy->listener_count * LISTENER_BYTES +
	       policy->ruling_count * RULING_BYTES;
}

static size_t all_string_bytes(const struct policy *policy)
{
	size_t bytes = string_bytes(policy->user) + string_bytes(policy->home) +
		       string_bytes(policy->shell) + string_bytes(policy->workspace) +
		       string_bytes(policy->cwd);

	for (size_t i = 0; i < policy->rule_count; i++)
		bytes += string_bytes(policy->rules[i].id) + string_bytes(policy->rules[i].file);
	for (size_t i = 0; i < policy->view.count; i++)
		bytes += string_bytes(policy->view.paths[i].source) +
			 string_bytes(policy->view.paths[i].target) +
			 string_bytes(policy->view.paths[i].upper);
	for (size_t i = 0; i < policy->variable_count; i++)
		bytes += string_bytes(policy->variables[i].name) +
			 string_bytes(policy->variables[i].value);
	for (size_t i = 0; i < policy->ruling_count; i++)
		bytes += string_bytes(policy->rulings[i].text) +
			 string_bytes(policy->rulings[i].label) +
			 string_bytes(policy->rulings[i].note) +
			 string_bytes(policy->rulings[i].digest);
	return bytes;
}

static void put_header(struct writer *writer, const struct policy *policy, size_t egress_bytes,
		       size_t total)
{
	const size_t counts[SECTION_COUNT] = {
		[SECTION_RULES] = policy->rule_count,
		[SECTION_PATHS] = policy->view.count,
		[SECTION_VARIABLES] = policy->variable_count,
		[SECTION_LISTENERS] = policy->listener_count,
		[SECTION_RULINGS] = policy->ruling_count,
		[SECTION_EGRESS] = egress_bytes,
	};
	size_t offset = HEADER_BYTES;

	memcpy(writer->bytes, magic, sizeof(magic));
	writer->at = sizeof(magic);
	put32(writer, POLICY_VERSION);
	put32(writer, (uint32_t)total);
	put32(writer, policy->flags);
	put32(writer, policy->uid);
	put32(writer, policy->gid);
	put32(writer, policy->limits.asked);
	put64(writer, policy->timeout_ns);
	for (unsigned i = 0; i < LIMIT_COUNT; i++)
		put64(writer, policy->limits.values[i]);
	for (unsigned i = 0; i < LIMIT_COUNT; i++)
		put32(writer, policy->limit_rules[i]);
	put_string(writer, policy->user);
	put_string(writer, policy->home);
	put_string(writer, policy->shell);
	put_string(writer, policy->workspace);
	put_string(writer, policy->cwd);
	put32(writer, policy->approval);
	put32(writer, policy->approval_rule);
	put32(writer, policy->tier.floor);
	put32(writer, policy->tier.change);
	put32(writer, policy->tier.floor_rule);
	put32(writer, policy->tier.change_rule);
	for (size_t i = 0; i < SECTION_COUNT; i++) {
		put32(writer, (uint32_t)counts[i]);
		put32(writer, (uint32_t)offset);
		offset += counts[i] * entry_bytes[i];
	}
}

static void put_sections(struct writer *writer, const struct policy *policy)
{
	for (size_t i = 0; i < policy->rule_count; i++) {
		put_string(writer, policy->rules[i].id);
		put_string(writer, policy->rules[i].file);
		put32(writer, policy->rules[i].line);
		put32(writer, 0);
	}
	for (size_t i = 0; i < policy->view.count; i++) {
		const struct view_path *path = &policy->view.paths[i];

		put32(writer, path->class);
		put32(writer, path->kind);
		put_string(writer, path->source);
		put_string(writer, path->target);
		put_string(writer, path->upper);
		put32(writer, path->rule);
		put64(writer, path->device);
		put64(writer, path->inode);
		put64(writer, path->state);
	}
	for (size_t i = 0; i < policy->variable_count; i++) {
		put_string(writer, policy->variables[i].name);
		put_string(writer, policy->variables[i].value);
		put32(writer, policy->variables[i].rule);
		put32(writer, 0);
	}
	for (size_t i = 0; i < policy->listener_count; i++) {
		put32(writer, policy->listeners[i].family);
		put32(writer, policy->listeners[i].type);
		put32(writer, policy->listeners[i].port);
		put32(writer, 0);
	}
	for (size_t i = 0; i < policy->ruling_count; i++) {
		const struct ruling *ruling = &policy->rulings[i];

		put32(writer, ruling->kind);
		put_string(writer, ruling->text);
		put_string(writer, ruling->label);
		put_string(writer, ruling->note);
		put_string(writer, ruling->digest);
		put32(writer, ruling->rule);
		put64(writer, ruling->until);
	}
}

int policy_encode(const struct policy *policy, struct arena *arena, const unsigned char **ret_blob,
		  size_t *ret_length)
{
	const unsigned char *egress;
	size_t egress_bytes, fixed = fixed_bytes(policy), total;
	struct writer writer = { 0 };
	int r = egress_encode(&policy->egress, arena, &egress, &egress_bytes);

	if (r < 0)
		return r;
	writer.strings = fixed + egress_bytes;
	total = writer.strings + all_string_bytes(policy);
	if (total > POLICY_LIMIT_BYTES || policy->rule_count > POLICY_LIMIT_RULES ||
	    policy->view.count > VIEW_LIMIT_PATHS ||
	    policy->variable_count > POLICY_LIMIT_VARIABLES ||
	    policy->listener_count > POLICY_LIMIT_LISTENERS || policy->ruling_count > RULING_LIMIT)
		return -E2BIG;
	writer.bytes = arena_allocate(arena, total);
	if (!writer.bytes)
		return -ENOMEM;
	put_header(&writer, policy, egress_bytes, total);
	put_sections(&writer, policy);
	memcpy(writer.bytes + fixed, egress, egress_bytes);
	*ret_blob = writer.bytes;
	*ret_length = total;
	return 0;
}

/* Reads fixed-size fields and strings of foreign bytes; the first fault is latched. */
struct reader {
	const unsigned char *bytes;
	size_t length;
	size_t at;
	size_t strings; /* where the next string begins */
	const char *fault;
};

static void fault(struct reader *reader, const char *what)
{
	if (!reader->fault)
		reader->fault = what;
}

static uint32_t get32(struct reader *reader)
{
	uint32_t value = 0;

	if (reader->length - reader->at < 4) {
		fault(reader, "is cut short");
		return 0;
	}
	for (unsigned i = 0; i < 4; i++)
		value |= (uint32_t)reader->bytes[reader->at++] << (8 * i);
	return value;
}

static uint64_t get64(struct reader *reader)
{
	uint64_t low = get32(reader);

	return low | (uint64_t)get32(reader) << 32;
}

static void get_zero(struct reader *reader)
{
	if (get32(reader))
		fault(reader, "has a reserved field set");
}

static uint32_t get_below(struct reader *reader, uint32_t limit, const char *what)
{
	uint32_t value = get32(reader);

	if (value >= limit) {
		fault(reader, what);
		return 0;
	}
	return value;
}

static const char *get_optional(struct reader *reader)
{
	uint32_t offset = get32(reader);

	if (!offset)
		return NULL;
	if (offset != reader->strings || offset >= reader->length) {
		fault(reader, "has a string out of place");
		return NULL;
	}
	/* policy_decode() made sure that the last byte is NUL */
	reader->strings += strlen((const char *)reader->bytes + offset) + 1;
	return (const char *)reader->bytes + offset;
}

static const char *get_string(struct reader *reader)
{
	const char *text = get_optional(reader);

	if (!text)
		fault(reader, "lacks a string that must be there");
	return text ? text : "";
}

static const char *get_path(struct reader *reader)
{
	const char *text = get_string(reader);

	if (!path_is_clean(text)) {
		fault(reader, "has a path that is not clean");
		return "/";
	}
	return text;
}

struct section {
	uint32_t count, offset;
};

static const uint32_t section_limits[SECTION_COUNT] = {
	[SECTION_RULES] = POLICY_LIMIT_RULES,
	[SECTION_PATHS] = VIEW_LIMIT_PATHS,
	[SECTION_VARIABLES] = POLICY_LIMIT_VARIABLES,
	[SECTION_LISTENERS] = POLICY_LIMIT_LISTENERS,
	[SECTION_RULINGS] = RULING_LIMIT,
	[SECTION_EGRESS] = EGRESS_LIMIT_BYTES,
};

static struct section get_section(struct reader *reader, size_t *expected, size_t item_bytes,
				  uint32_t limit)
{
	struct section section;

	section.count = get32(reader);
	section.offset = get32(reader);
	if (section.count > limit || section.offset != *expected) {
		fault(reader, "has a section out of place");
		return (struct section){ 0 };
	}
	*expected += section.count * item_bytes;
	return section;
}

static void get_view_path(struct reader *reader, struct view_path *path, uint32_t rules)
{
	path->class = get_below(reader, PATH_CLASS_COUNT, "has an unknown path class");
	path->kind = get_below(reader, PATH_KIND_COUNT, "has an unknown path kind");
	path->source = get_string(reader);
	path->target = get_path(reader);
	path->upper = get_optional(reader);
	path->rule = get_below(reader, rules, "names a rule that it lacks");
	path->device = get64(reader);
	path->inode = get64(reader);
	path->state = get64(reader);
	if (path->class != PATH_LINK && path->class != PATH_FILE &&
	    !(path->class == PATH_CACHE && !path->source[0]) && !path_is_clean(path->source))
		fault(reader, "has a source that is not clean");
	if ((path->state != 0) != (path->class == PATH_COPY))
		fault(reader, "has a state where none belongs, or lacks one");
	if ((path->upper != NULL) != (path->class == PATH_CACHE))
		fault(reader, "has an upper layer where none belongs, or lacks one");
	if (path->upper && !path_is_clean(path->upper))
		fault(reader, "has an upper layer that is not clean");
	if ((path->class == PATH_GIT || path->class == PATH_OBJECTS || path->class == PATH_STAGE) &&
	    (path->kind != PATH_KIND_DIRECTORY || strcmp(path->source, path->target) != 0))
		fault(reader, "has an overlay that is no directory's, or lies elsewhere");
	if (path->kind == PATH_KIND_LINK && path->class != PATH_PROTECT && path->class != PATH_HIDE)
		fault(reader, "has a link that is shown");
}

static void get_row(struct reader *reader, const struct policy *policy, struct view_path *row)
{
	get_view_path(reader, row, (uint32_t)policy->rule_count);
	/* such a row says nothing where everything can be executed */
	if (row->class == PATH_PROGRAM && !(policy->flags & POLICY_EXEC_STRICT))
		fault(reader, "lists programs, and executes any");
}

static void get_ruling(struct reader *reader, struct ruling *ruling, uint32_t rules)
{
	ruling->kind = get_below(reader, RULING_KIND_COUNT, "has an unknown ruling");
	ruling->text = get_string(reader);
	ruling->label = get_optional(reader);
	ruling->note = get_optional(reader);
	ruling->digest = get_optional(reader);
	ruling->rule = get_below(reader, rules, "names a rule that it lacks");
	ruling->until = get64(reader);
	if (!ruling_is_valid(ruling))
		fault(reader, "has a ruling that is none");
}

static void get_sections(struct reader *reader, struct policy *policy)
{
	for (size_t i = 0; i < policy->rule_count; i++) {
		policy->rules[i].id = get_string(reader);
		policy->rules[i].file = get_optional(reader);
		policy->rules[i].line = get32(reader);
		get_zero(reader);
	}
	for (size_t i = 0; i < policy->view.count; i++)
		get_row(reader, policy, &policy->view.paths[i]);
	for (size_t i = 0; i < policy->variable_count; i++) {
		struct policy_variable *variable = &policy->variables[i];

		variable->name = get_string(reader);
		variable->value = get_string(reader);
		variable->rule =
			get_below(reader, (uint32_t)policy->rule_count, "names a rule it lacks");
		get_zero(reader);
		if (!variable->name[0] || strchr(variable->name, '='))
			fault(reader, "has a variable without a proper name");
	}
	for (size_t i = 0; i < policy->listener_count; i++) {
		struct policy_listener *listener = &policy->listeners[i];

		/* AF_INET = 2, AF_INET6 = 10; SOCK_STREAM = 1, SOCK_DGRAM = 2: fixed by the ABI */
		listener->family = get32(reader);
		listener->type = get32(reader);
		listener->port = get_below(reader, 65536, "has a port above 65535");
		get_zero(reader);
		if ((listener->family != 2 && listener->family != 10) ||
		    (listener->type != 1 && listener->type != 2))
			fault(reader, "has a listener of an unknown kind");
	}
	for (size_t i = 0; i < policy->ruling_count; i++)
		get_ruling(reader, &policy->rulings[i], (uint32_t)policy->rule_count);
}

static void get_limits(struct reader *reader, struct policy *policy)
{
	struct limits *limits = &policy->limits;

	for (enum limit limit = 0; limit < LIMIT_COUNT; limit++) {
		const struct limit_text *text = limit_text(limit);
		uint64_t value = get64(reader);

		if (value != LIMIT_NONE && (value < text->least || value > text->most))
			fault(reader, "has a limit out of range");
		limits->values[limit] = value;
	}
	for (enum limit limit = 0; limit < LIMIT_COUNT; limit++) {
		uint32_t rule = get32(reader);

		if (rule && rule >= policy->rule_count)
			fault(reader, "names a rule that it lacks");
		policy->limit_rules[limit] = reader->fault ? 0 : rule;
	}
}

static void get_tier(struct reader *reader, struct policy *policy)
{
	/* rule 0 is none of a policy's */
	uint32_t rules = (uint32_t)policy->rule_count + !policy->rule_count;

	policy->tier.floor = get_below(reader, TIER_COUNT, "has an unknown tier");
	policy->tier.change = get_below(reader, TIER_CHANGE_COUNT, "has an unknown change");
	policy->tier.floor_rule = get_below(reader, rules, "names a rule that it lacks");
	policy->tier.change_rule = get_below(reader, rules, "names a rule that it lacks");
	if (!tier_is_valid(&policy->tier))
		fault(reader, "has a tier that no rule gives");
}

static int allocate(struct policy *policy, struct arena *arena)
{
	policy->rules = arena_array(arena, policy->rule_count + 1, sizeof(*policy->rules));
	policy->view.paths = arena_array(arena, policy->view.count + 1, sizeof(struct view_path));
	policy->variables =
		arena_array(arena, policy->variable_count + 1, sizeof(*policy->variables));
	policy->listeners =
		arena_array(arena, policy->listener_count + 1, sizeof(*policy->listeners));
	policy->rulings = arena_array(arena, policy->ruling_count + 1, sizeof(*policy->rulings));
	return arena_failed(arena) ? -ENOMEM : 0;
}

static int bad(struct error *error, const char *what)
{
	return error_set(error, EBADMSG, "the compiled policy %s", what);
}

int policy_decode(const unsigned char *blob, size_t length, struct arena *arena,
		  struct policy *ret_policy, struct error *error)
{
	struct reader reader = { .bytes = blob, .length = length, .at = sizeof(magic) };
	struct section sections[SECTION_COUNT];
	struct policy policy = { 0 };
	size_t expected = HEADER_BYTES;
	int r;

	if (length < HEADER_BYTES || length > POLICY_LIMIT_BYTES ||
	    memcmp(blob, magic, sizeof(magic)) != 0)
		return bad(error, "is none");
	if (blob[length - 1] != '\0')
		return bad(error, "does not end properly");
	if (get32(&reader) != POLICY_VERSION)
		return bad(error, "has another version");
	if (get32(&reader) != length)
		return bad(error, "has another length than it says");

	/* the strings begin behind the sections; their counts come first, so look ahead */
	reader.at = HEADER_BYTES - 4 * SECTION_COUNT * 2;
	for (size_t i = 0; i < SECTION_COUNT; i++)
		sections[i] = get_section(&reader, &expected, entry_bytes[i], section_limits[i]);
	policy.rule_count = sections[SECTION_RULES].count;
	policy.view.count = sections[SECTION_PATHS].count;
	policy.variable_count = sections[SECTION_VARIABLES].count;
	policy.listener_count = sections[SECTION_LISTENERS].count;
	policy.ruling_count = sections[SECTION_RULINGS].count;
	if (reader.fault || expected > length)
		return bad(error, reader.fault ? reader.fault : "is cut short");
	reader.strings = expected;
	if (allocate(&policy, arena) < 0)
		return error_errno(error, ENOMEM, "reading the compiled policy");
	r = egress_decode(blob + sections[SECTION_EGRESS].offset, sections[SECTION_EGRESS].count,
			  arena, &policy.egress, error);
	if (r < 0)
		return error_context(error, "the compiled policy cannot be used");

	reader.at = sizeof(magic) + 8;
	policy.flags = get_below(&reader, POLICY_FLAGS_ALL + 1, "has an unknown flag");
	policy.uid = get32(&reader);
	policy.gid = get32(&reader);
	policy.limits.asked =
		get_below(&reader, UINT32_C(1) << LIMIT_COUNT, "asks for an unknown limit");
	policy.timeout_ns = get64(&reader);
	get_limits(&reader, &policy);
	policy.user = get_string(&reader);
	policy.home = get_path(&reader);
	policy.shell = get_path(&reader);
	policy.workspace = get_path(&reader);
	policy.cwd = get_path(&reader);
	policy.approval = get_below(&reader, RULING_APPROVAL_COUNT, "has an unknown approval");
	policy.approval_rule = get_below(&reader, (uint32_t)policy.rule_count + !policy.rule_count,
					 "names a rule that it lacks");
	if (policy.approval && !policy.approval_rule)
		fault(&reader, "has an approval that no rule gives");
	get_tier(&reader, &policy);
	reader.at = HEADER_BYTES;
	get_sections(&reader, &policy);
	if (reader.strings != length)
		fault(&reader, "has strings that nothing names");
	if (reader.fault)
		return bad(error, reader.fault);
	*ret_policy = policy;
	return 0;
}
