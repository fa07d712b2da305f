#include "policy/import.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/json.h"
#include "policy/import_internal.h"

#include <errno.h>
#include <string.h>

static const struct {
	const char *name, *place;
	bool is_toml;
} sources[IMPORT_COUNT] = {
	[IMPORT_CLAUDE] = { "claude", ".claude/settings.json", false },
	[IMPORT_CODEX] = { "codex", ".codex/config.toml", true },
	[IMPORT_GEMINI] = { "gemini", ".gemini/settings.json", false },
	[IMPORT_SRT] = { "srt", ".srt-settings.json", false },
};

const char *import_names(void)
{
	return "claude codex gemini srt";
}

enum import_from import_find(const char *name)
{
	enum import_from from = 0;

	while (from < IMPORT_COUNT && strcmp(sources[from].name, name) != 0)
		from++;
	return from;
}

const char *import_place(enum import_from from)
{
	return sources[from].place;
}

bool import_is_toml(enum import_from from)
{
	return sources[from].is_toml;
}

/* ---- what is found ---- */

int import_leave(struct import *import, struct arena *arena, uint32_t line, const char *text)
{
	struct import_note *grown;

	if (import->note_count >= IMPORT_LIMIT_ROWS)
		return -E2BIG;
	grown = text ? arena_push(arena, import->notes, import->note_count, sizeof(*grown)) : NULL;
	if (!grown)
		return -ENOMEM;
	import->notes = grown;
	grown[import->note_count++] = (struct import_note){ line, text, NULL };
	return 0;
}

void import_remark(struct importing *importing, const struct outline_node *node, const char *what,
		   const char *why)
{
	if (import_leave(importing->import, importing->arena, node->line,
			 arena_format(importing->arena, "%.200s: %s", what, why)) == 0)
		importing->import->notes[importing->import->note_count - 1].file = importing->file;
}

void import_add(struct importing *importing, enum import_slot slot, const struct outline_node *node,
		const char *value)
{
	import_add_more(importing, slot, node, value, NULL);
}

void import_add_more(struct importing *importing, enum import_slot slot,
		     const struct outline_node *node, const char *value, const char *more)
{
	struct import *import = importing->import;
	struct import_row *grown;

	if (import->row_count >= IMPORT_LIMIT_ROWS) {
		import_remark(importing, node, value, "left out: there are too many");
		return;
	}
	grown = arena_push(importing->arena, import->rows, import->row_count, sizeof(*grown));
	if (!grown)
		return;
	import->rows = grown;
	grown[import->row_count++] = (struct import_row){
		.slot = slot,
		.value = value,
		.line = node->line,
		.file = importing->file,
		.more = more,
	};
}

/* Calls take() for each text of a list, or for one text alone. */
static void each(struct importing *importing, const struct outline_node *list, const char *name,
		 import_item *take)
{
	const struct outline *outline = importing->outline;

	if (list->kind == OUTLINE_TEXT) {
		take(importing, list, list->text);
		return;
	}
	if (list->kind != OUTLINE_LIST) {
		import_remark(importing, list, name, "not understood: it is no list");
		return;
	}
	for (const struct outline_node *node = outline_first(outline, list); node;
	     node = outline_next(outline, list, node))
		if (node->kind == OUTLINE_TEXT)
			take(importing, node, node->text);
		else
			import_remark(importing, node, name,
				      "not understood: an item that is no text");
}

static bool is_key(const struct import_key *key, const char *path)
{
	return strcmp(key->path, path) == 0;
}

static bool is_section_of(const struct import_key *key, const char *path)
{
	size_t length = strlen(path);

	return strncmp(key->path, path, length) == 0 && key->path[length] == '.';
}

void import_keys(struct importing *importing, const struct outline_node *map, const char *above,
		 const struct import_key *keys, size_t count)
{
	const struct outline *outline = importing->outline;
	const struct outline_node *value;

	for (const struct outline_node *node = outline_first(outline, map); node;
	     node = outline_next(outline, map, value)) {
		const char *path =
			above[0] ? arena_format(importing->arena, "%s.%.100s", above, node->text) :
				   node->text;
		const struct import_key *found = NULL;
		bool is_section = false;

		value = outline_next(outline, map, node);
		for (size_t i = 0; path && i < count && !found; i++) {
			is_section |= is_section_of(&keys[i], path);
			found = is_key(&keys[i], path) ? &keys[i] : NULL;
		}
		if (!path)
			return;
		if (found && found->take)
			each(importing, value, path, found->take);
		else if (found && found->why)
			import_remark(importing, node, path, found->why);
		else if (found)
			/* its names are the settings' own: import_variables() */
			continue;
		else if (is_section && value->kind == OUTLINE_MAP)
			/* paths of the table end at depth three */
			import_keys(importing, value, path, keys, count);
		else
			import_remark(importing, node, path,
				      above[0] ? "unknown here, and left out" :
						 "says nothing for a policy");
	}
}

/* ---- paths and hosts ---- */

/* Without "./" in front, and what says "and all below" behind it. */
static const char *trim_path(struct importing *importing, const char *text)
{
	size_t length;

	while (strncmp(text, "./", 2) == 0 || strncmp(text, "//", 2) == 0)
		text += text[0] == '.' ? 2 : 1;
	length = strlen(text);
	for (;;) {
		if (length > 3 && strncmp(text + length - 3, "/**", 3) == 0)
			length -= 3;
		else if (length > 1 && text[length - 1] == '/')
			length -= 1;
		else
			break;
	}
	return arena_copy_bytes(importing->arena, text, length);
}

bool import_is_from_root(const char *path)
{
	return path[0] == '/' || strncmp(path, "~/", 2) == 0;
}

void import_deny_read(struct importing *importing, const struct outline_node *node,
		      const char *text)
{
	const char *path = trim_path(importing, text);

	if (path)
		import_add(importing, IMPORT_HIDE, node, path);
}

void import_deny_write(struct importing *importing, const struct outline_node *node,
		       const char *text)
{
	const char *path = trim_path(importing, text);

	/* a name that is not there would be refused; a glob covers what there is */
	if (path && path[0] && !strpbrk(path, "*?[") && path[0] != '/' && path[0] != '~')
		path = arena_format(importing->arena, "**/%s", path);
	if (path)
		import_add(importing, IMPORT_PROTECT, node, path);
}

void import_allow_write(struct importing *importing, const struct outline_node *node,
			const char *text)
{
	const char *path = trim_path(importing, text);

	if (!path)
		return;
	if (strcmp(path, ".") == 0 || !path[0])
		importing->writes_workspace = true;
	else if (strcmp(path, "/tmp") == 0 || strcmp(path, "/var/tmp") == 0)
		import_remark(importing, node, text, IMPORT_OWN_TMP);
	else if (import_is_from_root(path))
		import_add(importing, IMPORT_WRITE, node, path);
	else
		import_remark(
			importing, node, text,
			"a single directory of the workspace: it is written as a whole or not");
}

void import_allow_read(struct importing *importing, const struct outline_node *node,
		       const char *text)
{
	const char *path = trim_path(importing, text);

	if (path && import_is_from_root(path))
		import_add(importing, IMPORT_READ, node, path);
	else
		import_remark(importing, node, text, "nothing is needed: the workspace is read");
}

void import_allow_host(struct importing *importing, const struct outline_node *node,
		       const char *text)
{
	import_add(importing, IMPORT_NET_ALLOW, node, text);
}

void import_deny_host(struct importing *importing, const struct outline_node *node,
		      const char *text)
{
	import_add(importing, IMPORT_NET_DENY, node, text);
}

/* A command as agents write one: "curl", "curl *", "curl:*", "rm -rf". */
static void deny_command(struct importing *importing, const struct outline_node *node,
			 const char *text)
{
	size_t length = strcspn(text, " :*");
	const char *rest = text + length;

	if (length && rest[strspn(rest, " :*")] == '\0')
		import_add(importing, IMPORT_EXEC_DENY, node,
			   arena_copy_bytes(importing->arena, text, length));
	else
		import_remark(
			importing, node, text,
			"a rule for some arguments of a program: a policy denies programs, asks by "
			"what a command does (approvals.ask)");
}

/* ---- claude ---- */

/* "Read(./x)": its tool, and what stands in parentheses; NULL where nothing does. */
static const char *split_rule(struct importing *importing, const char *text, const char **ret_tool)
{
	size_t length = strcspn(text, "("), end = strlen(text);

	*ret_tool = arena_copy_bytes(importing->arena, text, length);
	if (!text[length] || text[end - 1] != ')')
		return NULL;
	return arena_copy_bytes(importing->arena, text + length + 1, end - length - 2);
}

/* "//x" is from the root on, "/x" from the settings on, which are the project's at its top. */
static const char *claude_path(const char *path)
{
	return strncmp(path, "//", 2) == 0 ? path + 1 : path[0] == '/' ? path + 1 : path;
}

/* Denials are read as lines of gitignore(5): a name without '/' before its end is at any depth. */
static const char *claude_denied(struct importing *importing, const char *path)
{
	size_t length = strcspn(path, "/");
	bool is_name = length && !path[length + (path[length] == '/')] &&
		       strspn(path, ".") != length && path[0] != '~' && strcmp(path, "**") != 0;
	const char *anywhere = is_name ? arena_format(importing->arena, "**/%s", path) : NULL;

	return anywhere ? anywhere : claude_path(path);
}

static bool is_one_of(const char *word, const char *a, const char *b, const char *c)
{
	return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

static void claude_deny(struct importing *importing, const struct outline_node *node,
			const char *text)
{
	const char *tool, *what = split_rule(importing, text, &tool);

	if (!tool)
		return;
	if (what && is_one_of(tool, "Read", "Grep", "Glob"))
		import_deny_read(importing, node, claude_denied(importing, what));
	else if (what && is_one_of(tool, "Edit", "Write", "MultiEdit"))
		import_deny_write(importing, node, claude_denied(importing, what));
	else if (what && strcmp(tool, "Bash") == 0)
		deny_command(importing, node, what);
	else if (what && strncmp(what, "domain:", 7) == 0)
		import_deny_host(importing, node, what + 7);
	else if (is_one_of(tool, "Edit", "Write", "MultiEdit"))
		import_add(importing, IMPORT_WORKSPACE, node, "read-only");
	else if (is_one_of(tool, "WebFetch", "WebSearch", "WebSearch"))
		import_remark(importing, node, text,
			      "nothing is needed: hosts are denied unless they are listed");
	else
		import_remark(importing, node, text,
			      "a tool of the agent's: a policy speaks of what it does");
}

static void claude_allow(struct importing *importing, const struct outline_node *node,
			 const char *text)
{
	const char *tool, *what = split_rule(importing, text, &tool);

	if (!tool)
		return;
	if (what && strcmp(tool, "Read") == 0)
		import_allow_read(importing, node, claude_path(what));
	else if (what && is_one_of(tool, "Edit", "Write", "MultiEdit") &&
		 import_is_from_root(claude_path(what)))
		import_allow_write(importing, node, claude_path(what));
	else if (what && strncmp(what, "domain:", 7) == 0)
		import_allow_host(importing, node, what + 7);
	else if (what && is_one_of(tool, "Edit", "Write", "MultiEdit"))
		import_remark(importing, node, text,
			      "nothing is needed: the workspace is written as a whole");
	else if (strcmp(tool, "Bash") == 0)
		import_remark(
			importing, node, text,
			"nothing is needed: a command inside of the wall runs unless it is denied");
	else
		import_remark(importing, node, text,
			      "a tool of the agent's: a policy speaks of what it does");
}

static void claude_ask(struct importing *importing, const struct outline_node *node,
		       const char *text)
{
	import_remark(importing, node, text,
		      "a question about one command: approvals.ask has classes of them");
}

static void claude_directory(struct importing *importing, const struct outline_node *node,
			     const char *text)
{
	if (import_is_from_root(text))
		import_allow_write(importing, node, text);
	else
		import_remark(importing, node, text,
			      "a path beside the workspace: write it from / or ~/ on");
}

static void claude_mode(struct importing *importing, const struct outline_node *node,
			const char *text)
{
	if (strcmp(text, "plan") == 0)
		import_add(importing, IMPORT_WORKSPACE, node, "read-only");
	else if (strcmp(text, "dontAsk") == 0)
		import_add(importing, IMPORT_APPROVAL, node, "never");
	else
		import_remark(importing, node, text, "a mode of the agent's questions");
}

#define WALLED "nothing is needed: every command is inside of the wall"

static const struct import_key claude_keys[] = {
	{ "env", NULL, NULL },
	{ "permissions.allow", claude_allow, NULL },
	{ "permissions.ask", claude_ask, NULL },
	{ "permissions.deny", claude_deny, NULL },
	{ "permissions.additionalDirectories", claude_directory, NULL },
	{ "permissions.defaultMode", claude_mode, NULL },
	{ "permissions.disableBypassPermissionsMode", NULL, WALLED },
	{ "sandbox.enabled", NULL, WALLED },
	{ "sandbox.autoAllowBashIfSandboxed", NULL, WALLED },
	{ "sandbox.allowUnsandboxedCommands", NULL, IMPORT_OUTSIDE },
	{ "sandbox.excludedCommands", NULL, IMPORT_OUTSIDE },
	{ "sandbox.enableWeakerNestedSandbox", NULL, IMPORT_OUTSIDE },
	{ "sandbox.network.allowedDomains", import_allow_host, NULL },
	{ "sandbox.network.deniedDomains", import_deny_host, NULL },
	{ "sandbox.network.allowUnixSockets", NULL, IMPORT_SOCKETS },
	{ "sandbox.network.allowAllUnixSockets", NULL, IMPORT_SOCKETS },
	{ "sandbox.network.allowLocalBinding", NULL, IMPORT_LOOPBACK },
	{ "sandbox.network.httpProxyPort", NULL, IMPORT_OWN_PROXY },
	{ "sandbox.network.socksProxyPort", NULL, IMPORT_OWN_PROXY },
	{ "sandbox.filesystem.allowWrite", import_allow_write, NULL },
	{ "sandbox.filesystem.denyWrite", import_deny_write, NULL },
	{ "sandbox.filesystem.denyRead", import_deny_read, NULL },
	{ "sandbox.filesystem.allowRead", import_allow_read, NULL },
};

/* ---- srt ---- */

static const struct import_key srt_keys[] = {
	{ "network.allowedDomains", import_allow_host, NULL },
	{ "network.deniedDomains", import_deny_host, NULL },
	{ "network.allowUnixSockets", NULL, IMPORT_SOCKETS },
	{ "network.allowAllUnixSockets", NULL, IMPORT_SOCKETS },
	{ "network.allowLocalBinding", NULL, IMPORT_LOOPBACK },
	{ "network.httpProxyPort", NULL, IMPORT_OWN_PROXY },
	{ "network.socksProxyPort", NULL, IMPORT_OWN_PROXY },
	{ "filesystem.denyRead", import_deny_read, NULL },
	{ "filesystem.allowRead", import_allow_read, NULL },
	{ "filesystem.allowWrite", import_allow_write, NULL },
	{ "filesystem.denyWrite", import_deny_write, NULL },
	{ "filesystem.allowGitConfig", NULL,
	  "git's configuration is merged by key, and what would run something is held" },
	{ "enableWeakerNestedSandbox", NULL, IMPORT_OUTSIDE },
	{ "ignoreViolations", NULL, "denials are always told" },
};

/* ---- gemini ---- */

static const char *shell_of(struct importing *importing, const char *text)
{
	const char *tool, *what = split_rule(importing, text, &tool);

	return what && tool && is_one_of(tool, "run_shell_command", "ShellTool", "ShellTool") ?
		       what :
		       NULL;
}

static void gemini_deny(struct importing *importing, const struct outline_node *node,
			const char *text)
{
	const char *command = shell_of(importing, text);

	if (command)
		deny_command(importing, node, command);
	else if (is_one_of(text, "write_file", "replace", "WriteFileTool") ||
		 strcmp(text, "EditTool") == 0)
		import_add(importing, IMPORT_WORKSPACE, node, "read-only");
	else
		import_remark(importing, node, text,
			      "a tool of the agent's: a policy speaks of what it does");
}

static void gemini_allow(struct importing *importing, const struct outline_node *node,
			 const char *text)
{
	import_remark(importing, node, text,
		      "nothing is needed: a command inside of the wall runs unless it is denied");
}

static const struct import_key gemini_keys[] = {
	{ "tools.exclude", gemini_deny, NULL },
	{ "excludeTools", gemini_deny, NULL },
	{ "tools.allowed", gemini_allow, NULL },
	{ "tools.core", gemini_allow, NULL },
	{ "coreTools", gemini_allow, NULL },
	{ "allowedTools", gemini_allow, NULL },
	{ "tools.sandbox", NULL, WALLED },
	{ "sandbox", NULL, WALLED },
	{ "context.includeDirectories", claude_directory, NULL },
	{ "includeDirectories", claude_directory, NULL },
	{ "advanced.excludedEnvVars", NULL, IMPORT_LISTED },
	{ "excludedProjectEnvVars", NULL, IMPORT_LISTED },
};

/* ---- variables ---- */

static bool has_part(const char *name, const char *part)
{
	return strstr(name, part) != NULL;
}

/* Their values do not belong into a policy, which others read. */
bool import_is_secret(const char *name)
{
	static const char *const parts[] = {
		"KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH"
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (has_part(name, parts[i]))
			return true;
	return false;
}

void import_variables(struct importing *importing, const struct outline_node *map)
{
	const struct outline *outline = importing->outline;
	const struct outline_node *value;

	if (!map || map->kind != OUTLINE_MAP)
		return;
	for (const struct outline_node *node = outline_first(outline, map); node;
	     node = outline_next(outline, map, value)) {
		value = outline_next(outline, map, node);
		if (value->kind != OUTLINE_TEXT)
			continue;
		if (import_is_secret(node->text))
			import_remark(
				importing, node, node->text,
				"named like a secret: its value is left out; --env NAME passes it");
		else
			import_add(
				importing, IMPORT_SET, node,
				arena_format(importing->arena, "%s=%s", node->text, value->text));
	}
}

int import_read(enum import_from from, const struct outline *outline, struct arena *arena,
		struct import *ret_import)
{
	static const struct {
		const struct import_key *keys;
		size_t count;
	} tables[IMPORT_COUNT] = {
#define ROWS(keys) keys, sizeof(keys) / sizeof((keys)[0])
		[IMPORT_CLAUDE] = { ROWS(claude_keys) },
		[IMPORT_CODEX] = { NULL, 0 }, /* import_codex() */
		[IMPORT_GEMINI] = { ROWS(gemini_keys) },
		[IMPORT_SRT] = { ROWS(srt_keys) },
#undef ROWS
	};
	struct import import = { 0 };
	struct importing importing = { .outline = outline, .arena = arena, .import = &import };

	if (!outline->count || outline->nodes[0].kind != OUTLINE_MAP)
		return -EINVAL;
	if (from == IMPORT_CODEX)
		import_codex(&importing);
	else
		import_keys(&importing, outline->nodes, "", tables[from].keys, tables[from].count);
	if (from == IMPORT_CLAUDE)
		import_variables(&importing, outline_find(outline, outline->nodes, "env"));
	/* of srt nothing is written that is not listed */
	if (from == IMPORT_SRT && !importing.writes_workspace)
		import_add(&importing, IMPORT_WORKSPACE, outline->nodes, "read-only");
	/* that they are for any port is what all of these mean */
	for (size_t i = 0; i < import.row_count && from != IMPORT_CODEX; i++)
		if (import.rows[i].slot == IMPORT_NET_ALLOW) {
			(void)import_leave(&import, arena, 0,
					   "hosts at other ports than 443: `ports` of "
					   "network.allow lists them");
			break;
		}
	if (arena_failed(arena))
		return -ENOMEM;
	*ret_import = import;
	return 0;
}

/* ---- printing ---- */

static const struct {
	const char *section, *key;
	bool is_single;
} slots[IMPORT_SLOTS] = {
	[IMPORT_WORKSPACE] = { "", "workspace", true },
	[IMPORT_APPROVAL] = { "", "approval", true },
	[IMPORT_READ] = { "filesystem", "read", false },
	[IMPORT_WRITE] = { "filesystem", "write", false },
	[IMPORT_HIDE] = { "filesystem", "hide", false },
	[IMPORT_PROTECT] = { "filesystem", "protect", false },
	[IMPORT_EXEC_DENY] = { "exec", "deny", false },
	[IMPORT_ASK] = { "approvals", "ask", false },
	[IMPORT_NET_ALLOW] = { "network", "allow", false },
	[IMPORT_NET_ASK] = { "network", "ask", false },
	[IMPORT_NET_DENY] = { "network", "deny", false },
	[IMPORT_PASS] = { "environment", "pass", false },
	[IMPORT_SET] = { "environment", "set", false },
	[IMPORT_TEST] = { "tests", NULL, false },
};

/* JSON's quotes are YAML's. */
static void put_quoted(struct buffer *buffer, const char *text)
{
	struct json json;

	json_begin(&json, buffer);
	json_string(&json, NULL, text);
}

static void put_quoted_bytes(struct buffer *buffer, const char *bytes, size_t length)
{
	struct json json;

	json_begin(&json, buffer);
	json_bytes(&json, NULL, bytes, length);
}

static bool is_said_before(const struct import *import, size_t index)
{
	const struct import_row *row = &import->rows[index];

	for (size_t i = 0; i < index; i++)
		if (import->rows[i].slot == row->slot && !import->rows[i].refusal &&
		    (slots[row->slot].is_single || strcmp(import->rows[i].value, row->value) == 0))
			return true;
	return false;
}

static void put_row(const struct import_row *row, struct buffer *buffer)
{
	size_t name = strcspn(row->value, "=");

	switch (row->slot) {
	case IMPORT_NET_ALLOW:
	case IMPORT_NET_ASK:
	case IMPORT_NET_DENY:
		buffer_text(buffer, "    - host: ");
		put_quoted(buffer, row->value);
		break;
	case IMPORT_SET:
		buffer_text(buffer, "    ");
		/* in quotes: the name is as foreign as the value */
		put_quoted_bytes(buffer, row->value, name);
		buffer_text(buffer, ": ");
		put_quoted(buffer, row->value + name + (row->value[name] == '='));
		break;
	case IMPORT_TEST: /* made of quoted words */
		buffer_format(buffer, "  - {%s}", row->value);
		break;
	case IMPORT_EXEC_DENY:
		buffer_text(buffer, row->more ? "    - {program: " : "    - ");
		put_quoted(buffer, row->value);
		buffer_text(buffer, row->more ? row->more : "");
		buffer_text(buffer, row->more ? "}" : "");
		break;
	default:
		buffer_text(buffer, "    - ");
		put_quoted(buffer, row->value);
		/* of which rule it comes */
		buffer_text(buffer, row->more ? " # " : "");
		buffer_visible(buffer, row->more ? row->more : "");
	}
	buffer_text(buffer, "\n");
}

static uint32_t lines_of(const struct buffer *buffer)
{
	uint32_t lines = 0;

	for (size_t i = 0; i < buffer->length; i++)
		lines += buffer->data[i] == '\n';
	return lines;
}

static void put_slot(const struct import *import, enum import_slot slot, const char **section,
		     struct buffer *buffer, uint32_t *ret_lines)
{
	bool any = false;

	for (size_t i = 0; i < import->row_count; i++) {
		const struct import_row *row = &import->rows[i];

		if (row->slot != slot || row->refusal || is_said_before(import, i))
			continue;
		if (ret_lines)
			ret_lines[i] = lines_of(buffer) + 1;
		if (slots[slot].is_single) {
			buffer_format(buffer, "%s: %s\n", slots[slot].key, row->value);
			continue;
		}
		if (strcmp(*section, slots[slot].section) != 0)
			buffer_format(buffer, "%s:\n", slots[slot].section);
		*section = slots[slot].section;
		if (!any && slots[slot].key)
			buffer_format(buffer, "  %s:\n", slots[slot].key);
		any = true;
		if (ret_lines)
			ret_lines[i] = lines_of(buffer) + 1;
		put_row(row, buffer);
	}
}

static void put_note(const char *file, uint32_t line, const char *text, struct buffer *buffer)
{
	buffer_text(buffer, "#   ");
	buffer_visible(buffer, file ? file : "");
	buffer_text(buffer, file ? " " : "");
	if (line)
		buffer_format(buffer, "line %u: ", line);
	buffer_visible(buffer, text);
	buffer_text(buffer, "\n");
}

void import_print(const struct import *import, const char *title, struct buffer *buffer,
		  uint32_t *ret_lines)
{
	const char *section = "";
	bool any = import->note_count > 0;

	buffer_text(buffer, "# Made from ");
	buffer_visible(buffer, title);
	buffer_text(buffer, "; look it through. What is not listed is denied.\nversion: 1\n");
	for (enum import_slot slot = 0; slot < IMPORT_SLOTS; slot++)
		put_slot(import, slot, &section, buffer, ret_lines);
	for (size_t i = 0; i < import->row_count; i++)
		any |= import->rows[i].refusal != NULL;
	if (!any)
		return;
	buffer_text(buffer, "\n# Not taken over:\n");
	for (size_t i = 0; i < import->row_count; i++)
		if (import->rows[i].refusal)
			put_note(import->rows[i].file, import->rows[i].line,
				 import->rows[i].refusal, buffer);
	for (size_t i = 0; i < import->note_count; i++)
		put_note(import->notes[i].file, import->notes[i].line, import->notes[i].text,
			 buffer);
}
