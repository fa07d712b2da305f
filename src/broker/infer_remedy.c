#include "broker/infer.h"

#include "broker/infer_internal.h"
#include "policy/denial.h"
#include "policy/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void infer_settle(const struct policy *policy, struct denial *denial)
{
	const struct view_path *row;
	char path[DENIAL_OBJECT_BYTES];
	size_t least, length = strlen(denial->object);

	if (denial->kind != DENIAL_FS_WRITE || denial->grant[0] || length + 1 >= sizeof(path))
		return;
	row = view_lookup(&policy->view, denial->object);
	/* what has another name in the box is not looked for, nor what it does not show */
	if (!row || (row->class != PATH_READ && row->class != PATH_COPY) ||
	    strcmp(row->source, row->target) != 0)
		return;
	least = strlen(row->target);
	memcpy(path, denial->object, length + 1);
	while (length > least && faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
	       (errno == ENOENT || errno == ENOTDIR)) {
		length = infer_parent_length(path);
		path[length] = '\0';
	}
	if (length < strlen(denial->object))
		memcpy(denial->grant, path, length + 1);
}
