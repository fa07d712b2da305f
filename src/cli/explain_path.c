#include "cli/explain_path.h"

#include "base/buffer.h"
#include "base/json.h"
#include "broker/effective.h"
#include "broker/path_access.h"

static const char *yes_or_no(bool yes)
{
	return yes ? "yes" : "no";
}

/* "/home/me/.ssh: read no, write no; not there", then where that comes from. */
static void print_text(const struct path_access *found, struct buffer *text)
{
	const struct access *access = &found->access;

	buffer_visible(text, found->asked);
	buffer_format(text, ": read %s, write %s; %s", yes_or_no(found->reads),
		      yes_or_no(found->writes), path_presence_word(found->presence));
	if (found->kind)
		buffer_format(text, " (%s)", found->kind);
	buffer_text(text, "\n");
	for (size_t i = 0; i < found->link_count; i++) {
		buffer_text(text, "  by the link ");
		buffer_visible(text, found->links[i]);
		buffer_text(text, "\n");
	}
	buffer_text(text, "  in the box ");
	buffer_visible(text, found->path);
	if (found->source) {
		buffer_text(text, ", on the host ");
		buffer_visible(text, found->source);
	}
	buffer_format(text, "\n  %s: %s [", access_word(access->way), access_text(access->way));
	rule_print(&access->rule, text);
	buffer_format(text, ", %s]\n", enforcement_name(access->enforcement));
	if (access->enforcement == ENFORCEMENT_POLLED)
		buffer_text(text, "  the host writes there, too: a name that it puts there anew "
				  "counts as soon as it is seen\n");
	if (found->refusal)
		buffer_format(text, "  the file's modes do not let the caller: %s\n",
			      found->refusal);
}

static void print_json(const struct path_access *found, const struct effective *effective,
		       struct buffer *text)
{
	struct json json;

	json_begin(&json, text);
	json_object(&json, NULL);
	json_unsigned(&json, "version", 1);
	json_string(&json, "policy", effective->hash);
	json_string(&json, "asked", found->asked);
	json_string(&json, "path", found->path);
	json_string(&json, "source", found->source);
	json_array(&json, "links");
	for (size_t i = 0; i < found->link_count; i++)
		json_string(&json, NULL, found->links[i]);
	json_array_end(&json);
	json_bool(&json, "read", found->reads);
	json_bool(&json, "write", found->writes);
	json_string(&json, "way", access_word(found->access.way));
	json_string(&json, "text", access_text(found->access.way));
	json_string(&json, "presence", path_presence_word(found->presence));
	json_string(&json, "kind", found->kind);
	json_string(&json, "enforcement", enforcement_name(found->access.enforcement));
	json_string(&json, "modes_refuse", found->refusal);
	rule_json(&found->access.rule, "rule", &json);
	json_object_end(&json);
	buffer_text(text, "\n");
}

int explain_path(const struct effective *effective, const char *path, bool as_json,
		 struct arena *arena, struct buffer *text, struct error *error)
{
	struct path_access found;
	int result = path_access_find(effective, path, arena, &found, error);

	if (result < 0)
		return result;
	if (as_json)
		print_json(&found, effective, text);
	else
		print_text(&found, text);
	return !found.reads && !found.writes;
}
