#include "trace/artifact.h"

#include "base/json.h"

void artifact_json(const struct artifact_list *list, struct json *json)
{
	if (!list || !list->directory) {
		json_null(json, "artifacts");
		return;
	}
	json_object(json, "artifacts");
	json_string(json, "directory", list->directory);
	json_unsigned(json, "dropped", list->dropped);
	json_array(json, "files");
	for (size_t i = 0; i < list->count; i++) {
		const struct artifact *item = &list->items[i];

		json_object(json, NULL);
		json_string(json, "path", item->path);
		json_unsigned(json, "bytes", item->bytes);
		json_string(json, "sha256", item->reason ? NULL : item->sha256);
		json_string(json, "reason", item->reason);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}
