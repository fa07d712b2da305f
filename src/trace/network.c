#include "trace/network.h"

#include "base/json.h"

#include <stdio.h>
#include <string.h>

struct network_target *network_find(struct network_list *list, const char *host, uint16_t port,
				    const char *verdict, const struct rule_ref *rule)
{
	bool is_refused = strcmp(verdict, "deny") == 0;
	struct network_target *target;

	for (size_t i = 0; i < list->count; i++) {
		target = &list->items[i];
		if (target->port == port && strcmp(target->verdict, verdict) == 0 &&
		    strcmp(target->host, host) == 0 && strcmp(target->rule.id, rule->id) == 0)
			return target;
	}
	if (list->count == NETWORK_LIMIT ||
	    (is_refused && list->refused == NETWORK_LIMIT_REFUSED)) {
		list->dropped++;
		return NULL;
	}
	list->refused += is_refused;
	target = &list->items[list->count++];
	*target = (struct network_target){ .port = port, .verdict = verdict, .rule = *rule };
	(void)snprintf(target->host, sizeof(target->host), "%s", host);
	return target;
}

void network_json(const struct network_list *list, struct json *json)
{
	json_object(json, "network");
	json_string(json, "capture", list->by_ports ? "ports" : "all");
	json_array(json, "targets");
	for (size_t i = 0; i < list->count; i++) {
		const struct network_target *target = &list->items[i];

		json_object(json, NULL);
		json_string(json, "host", target->host);
		json_unsigned(json, "port", target->port);
		json_string(json, "verdict", target->verdict);
		rule_json(&target->rule, "rule", json);
		json_string(json, "protocol", target->protocol);
		json_unsigned(json, "count", target->count);
		json_unsigned(json, "failed", target->failed);
		json_unsigned(json, "bytes_up", target->bytes_up);
		json_unsigned(json, "bytes_down", target->bytes_down);
		json_object_end(json);
	}
	json_array_end(json);
	json_unsigned(json, "dropped", list->dropped);
	json_object_end(json);
}
