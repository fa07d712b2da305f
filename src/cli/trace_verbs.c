#include "cli/trace_verbs.h"

#include "base/error.h"
#include "trace/when.h"

#include <errno.h>

int trace_time_option(const struct option *option, const char *value, uint64_t now_ns,
		      uint64_t *ret_ns, struct error *error)
{
	if (when_parse_said(value, now_ns, ret_ns) < 0)
		return error_set(error, EINVAL,
				 "option %s %.40s: not a time; as in 2026-11-30T12:00:00Z, "
				 "2026-11-30, or 2h or 3d for how long ago",
				 option->name, value);
	return 0;
}

int trace_state_option(const struct option *option, const char *value, const char **ret_path,
		       struct error *error)
{
	if (!value[0])
		return error_set(error, EINVAL, "option %s has an empty value", option->name);
	*ret_path = value;
	return 0;
}
