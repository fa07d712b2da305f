/* Why the host lets no box be made: what is said of that, and what a probe of it tells. */
#include "broker/effective_internal.h"

#include "base/error.h"
#include "isolate/diagnosis.h"

#include <errno.h>
#include <sys/resource.h>

static struct probe_subject subject_of(const struct effective *effective, const char *directory)
{
	return (struct probe_subject){ .host_root = effective->host.root,
				       .uid = effective->host.uid,
				       .gid = effective->host.gid,
				       .directory = directory ? directory : "." };
}

/* A start opens more the more there is to show; a small project of git needs 54. */
#define FILES_LEAST 64u

#define FILES_REMEDY "raise it, as by `ulimit -n 1024`"

int effective_check_files(struct error *error)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur >= FILES_LEAST)
		return 0;
	return error_set(error, EMFILE,
			 "the limit of open files is %llu (ulimit -n), and a start needs more: %s",
			 (unsigned long long)files.rlim_cur, FILES_REMEDY);
}

/* Which limit it was that a step met. */
static void name_files_limit(struct error *error)
{
	struct error step = *error;
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0)
		(void)error_set(error, step.code,
				"the limit of open files is %llu (ulimit -n), and this start needs "
				"more: " FILES_REMEDY "; %s",
				(unsigned long long)files.rlim_cur, step.message);
}

void effective_diagnose_at(const struct effective *effective, const char *directory,
			   struct error *error)
{
	const struct probe_subject subject = subject_of(effective, directory);

	if (error->code != -EMFILE)
		diagnosis_explain(&subject, error);
	else if (effective_check_files(error) == 0)
		name_files_limit(error);
}

void effective_diagnose(const struct effective *effective, struct error *error)
{
	effective_diagnose_at(effective, effective->policy.workspace, error);
}

int effective_probe(const struct effective *effective, uint32_t *ret_absent, struct error *refusal)
{
	const struct probe_subject subject = subject_of(effective, effective->policy.workspace);
	struct probe_report report;

	probe_run(&subject, &report);
	*ret_absent = 0;
	for (enum layer layer = 0; layer < LAYER_COUNT; layer++)
		if (diagnosis_layer(&report, layer) == ENFORCEMENT_ABSENT)
			*ret_absent |= UINT32_C(1) << layer;
	return diagnosis_refusal(&report, refusal);
}
