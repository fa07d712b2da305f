#include "cli/verbs.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "broker/capacity.h"
#include "broker/effective.h"
#include "isolate/diagnosis.h"
#include "policy/held.h"
#include "workspace/host.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Where the second line of a limit begins. */
#define LIMIT_COLUMNS 28

enum { OPTION_JSON };

static const struct option options[] = {
	{ "--json", NULL, "print JSON", false, false, OPTION_JSON },
};

/* True on every host: what a run does not hold with this build. */
static const char *const build_gaps[] = {
	"repositories, hooks and settings of editors that a task plants in the workspace are taken "
	"out of it when an action is over: while one runs, a program of the host that goes in "
	"there can run them (not with --stage or --ephemeral)",
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	(void)option;
	(void)value;
	(void)error;
	*(bool *)context = true;
	return 0;
}

static bool is_failed(const struct probe_report *report, enum probe probe)
{
	int code = report->results[probe].code;

	return code < 0 && code != -ETIME;
}

/* What was seen of a layer: its probes' words, those that failed left to the gaps. */
static void print_evidence(const struct probe_report *report, enum layer layer,
			   struct buffer *buffer)
{
	const char *separator = "";
	bool any = false;

	for (unsigned probe = 0; probe < PROBE_COUNT; probe++) {
		const struct probe_result *result = &report->results[probe];

		if (probe_layer(probe) != layer || result->code == -ETIME)
			continue;
		any = true;
		buffer_format(buffer, "%s%s%s", separator, probe_name(probe),
			      result->code < 0 ? ": no" : "");
		if (result->evidence[0]) {
			buffer_text(buffer, " (");
			buffer_visible(buffer, result->evidence);
			buffer_text(buffer, ")");
		}
		separator = ", ";
	}
	if (!any)
		buffer_text(buffer, layer == LAYER_PROTECT ?
					    "read-only mounts, see mount view" :
					    "bawn's own, needs nothing of the host");
}

static void print_host(const struct probe_report *report, struct buffer *buffer)
{
	const struct probe_host *host = &report->host;

	buffer_text(buffer, "host: Linux ");
	buffer_visible(buffer, host->release);
	if (host->wsl)
		buffer_format(buffer, ", WSL %d", host->wsl);
	if (host->container)
		buffer_text(buffer, ", in a container");
	if (host->seccomp == 2)
		buffer_text(buffer, ", under a system call filter");
	buffer_format(buffer, ", caller: %s\n\n",
		      report->subject.host_root ? "the host's root" : "an ordinary user");
}

/* The failed probes of one cause from this one on, which are not told again. */
static void print_cause(const struct probe_report *report, enum probe first, bool *told,
			struct buffer *buffer)
{
	struct diagnosis diagnosis, other;

	diagnosis_make(report, first, &diagnosis);
	buffer_format(buffer, "  %s\n", diagnosis.cause);
	if (diagnosis.remedy[0])
		buffer_format(buffer, "      remedy: %s\n", diagnosis.remedy);
	for (enum probe probe = first; probe < PROBE_COUNT; probe++) {
		if (!is_failed(report, probe))
			continue;
		diagnosis_make(report, probe, &other);
		if (strcmp(other.cause, diagnosis.cause) != 0)
			continue;
		told[probe] = true;
		buffer_format(buffer, "      %s%s\n", other.met,
			      probe_is_missing(report, probe) ? "" : " (rung full does without)");
	}
}

static void print_gaps(const struct probe_report *report, struct buffer *buffer)
{
	bool told[PROBE_COUNT] = { false }, any = false;

	for (enum probe probe = 0; probe < PROBE_COUNT; probe++) {
		if (!is_failed(report, probe) || told[probe])
			continue;
		if (!any)
			buffer_text(buffer, "\ngaps of this host:\n");
		any = true;
		print_cause(report, probe, told, buffer);
	}
	buffer_text(buffer, "\ngaps of this build, on every host:\n");
	for (size_t i = 0; i < sizeof(build_gaps) / sizeof(build_gaps[0]); i++)
		buffer_format(buffer, "  %s\n", build_gaps[i]);
}

/* What holds each limit of a run without options, and of one that asks for it. */
struct holding {
	struct held built_in[LIMIT_COUNT], asked[LIMIT_COUNT];
};

static void gather_holding(struct holding *ret_holding)
{
	struct capacity capacity;
	struct limits limits;

	capacity_gather(true, &capacity);
	limits_init(&capacity.facts, &limits);
	held_fill(&limits, &capacity.facts, ret_holding->built_in);
	limits.asked = (UINT32_C(1) << LIMIT_COUNT) - 1;
	capacity_consider_scope(&capacity, &limits);
	held_fill(&limits, &capacity.facts, ret_holding->asked);
	capacity_close(&capacity);
}

static void print_means(const struct limit_means *means, struct buffer *buffer)
{
	limit_means_print(means, buffer);
	buffer_text(buffer, "\n");
	if (means->remedy[0])
		buffer_format(buffer, "%*sremedy: %s\n", LIMIT_COLUMNS, "", means->remedy);
}

static void print_holding(const struct holding *holding, struct buffer *buffer)
{
	buffer_text(buffer, "\nlimits, as they are built in, and with an option:\n");
	for (enum limit limit = 0; limit < LIMIT_COUNT; limit++) {
		const struct held *built_in = &holding->built_in[limit];
		const struct held *asked = &holding->asked[limit];
		const char *option = limit_text(limit)->option;
		struct buffer CLEANUP_BUFFER value = { 0 };

		limit_print(limit, built_in->value, &value);
		buffer->failed |= value.failed;
		buffer_format(buffer, "  %-14s %-10s ", limit_text(limit)->word,
			      value.failed ? "" : value.data);
		if (built_in->value == LIMIT_NONE && option)
			buffer_format(buffer, "%s: ", option);
		print_means(built_in->value == LIMIT_NONE ? &asked->means : &built_in->means,
			    buffer);
		if (built_in->value == LIMIT_NONE || !option ||
		    strcmp(built_in->means.mechanism, asked->means.mechanism) == 0)
			continue;
		buffer_format(buffer, "%*s%s: ", LIMIT_COLUMNS, "", option);
		print_means(&asked->means, buffer);
	}
}

static void json_holding(const struct holding *holding, struct json *json)
{
	json_array(json, "limits");
	for (enum limit limit = 0; limit < LIMIT_COUNT; limit++) {
		const struct limit_means *asked = &holding->asked[limit].means;

		json_object(json, NULL);
		held_json(&holding->built_in[limit], "built_in", json);
		json_string(json, "option", limit_text(limit)->option);
		json_string(json, "enforcement", enforcement_name(asked->grade));
		json_unsigned(json, "grain_ms", asked->grain_ns / LIMIT_MS);
		json_string(json, "mechanism", asked->mechanism);
		json_string(json, "remedy", asked->remedy[0] ? asked->remedy : NULL);
		json_object_end(json);
	}
	json_array_end(json);
}

static void print_text(const struct probe_report *report, const struct holding *holding,
		       const struct error *refusal, struct buffer *buffer)
{
	print_host(report, buffer);
	for (unsigned layer = 0; layer < LAYER_COUNT; layer++) {
		buffer_format(buffer, "%-18s %-7s  ", layer_name(layer),
			      enforcement_name(diagnosis_layer(report, layer)));
		print_evidence(report, layer, buffer);
		buffer_text(buffer, "\n");
	}
	print_holding(holding, buffer);
	print_gaps(report, buffer);
	buffer_text(buffer, "\n");
	buffer_text(buffer, refusal->code ? refusal->message : "rung \"full\" is possible here");
	buffer_text(buffer, "\n");
}

static void json_host(const struct probe_report *report, struct json *json)
{
	const struct probe_host *host = &report->host;

	json_object(json, "host");
	json_string(json, "release", host->release);
	json_bool(json, "host_root", report->subject.host_root);
	json_integer(json, "wsl", host->wsl);
	json_bool(json, "container", host->container);
	json_bool(json, "filtered", host->seccomp == 2);
	json_bool(json, "proc_masked", host->proc_masked);
	json_bool(json, "initramfs", host->initramfs);
	json_bool(json, "chrooted", host->chrooted);
	json_integer(json, "apparmor_restrict_unprivileged_userns", host->apparmor_restricts);
	json_integer(json, "unprivileged_userns_clone", host->userns_clone);
	json_integer(json, "max_user_namespaces", host->max_user_namespaces);
	json_integer(json, "memfd_noexec", host->memfd_noexec);
	json_string(json, "security_modules", host->lsm[0] ? host->lsm : NULL);
	json_unsigned(json, "landlock_abi", report->landlock_abi);
	json_object_end(json);
}

static void json_probe(const struct probe_report *report, enum probe probe, struct json *json)
{
	static const char *const needs[] = { "always", "root", "no" };
	const struct probe_result *result = &report->results[probe];
	struct diagnosis diagnosis;

	json_object(json, NULL);
	json_string(json, "name", probe_name(probe));
	json_string(json, "layer", layer_name(probe_layer(probe)));
	json_string(json, "needed", needs[probe_need(probe)]);
	json_string(json, "outcome",
		    result->code == -ETIME ? "not tried" :
		    result->code < 0	   ? "fails" :
					     "works");
	json_integer(json, "errno", result->code == -ETIME ? 0 : -result->code);
	json_string(json, "evidence", result->evidence[0] ? result->evidence : NULL);
	if (is_failed(report, probe)) {
		diagnosis_make(report, probe, &diagnosis);
		json_string(json, "reason", diagnosis.reason);
		json_string(json, "remedy", diagnosis.remedy[0] ? diagnosis.remedy : NULL);
	}
	json_object_end(json);
}

static void print_json(const struct probe_report *report, const struct holding *holding,
		       const struct error *refusal, struct buffer *buffer)
{
	struct json json;

	json_begin(&json, buffer);
	json_object(&json, NULL);
	json_unsigned(&json, "version", 1);
	json_host(report, &json);
	json_array(&json, "layers");
	for (unsigned layer = 0; layer < LAYER_COUNT; layer++) {
		struct buffer CLEANUP_BUFFER evidence = { 0 };

		print_evidence(report, layer, &evidence);
		json_object(&json, NULL);
		json_string(&json, "layer", layer_name(layer));
		json_string(&json, "enforcement", enforcement_name(diagnosis_layer(report, layer)));
		json_string(&json, "evidence", evidence.data);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_array(&json, "probes");
	for (unsigned probe = 0; probe < PROBE_COUNT; probe++)
		json_probe(report, probe, &json);
	json_array_end(&json);
	json_holding(holding, &json);
	json_array(&json, "build_gaps");
	for (size_t i = 0; i < sizeof(build_gaps) / sizeof(build_gaps[0]); i++)
		json_string(&json, NULL, build_gaps[i]);
	json_array_end(&json);
	json_bool(&json, "full", !refusal->code);
	json_string(&json, "refusal", refusal->code ? refusal->message : NULL);
	json_object_end(&json);
	buffer_text(buffer, "\n");
}

static int doctor_verb(int argc, char **argv)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct error error = ERROR_NONE, refusal = ERROR_NONE;
	struct probe_report report;
	struct holding holding;
	struct caller host;
	char directory[4096];
	bool json = false;
	int first = options_parse(&verb_doctor, argc, argv, take, &json, &error);

	if (first < 0 || first < argc) {
		complain(first < 0 ? error.message : "bawn doctor takes no argument");
		return 2;
	}
	if (host_gather(&arena, &host, &refusal) < 0)
		/* of this caller no box is made, whatever the kernel permits */
		host = (struct caller){ .uid = geteuid(), .gid = getegid() };
	probe_run(&(struct probe_subject){ .host_root = host.root,
					   .uid = host.uid,
					   .gid = host.gid,
					   .directory = getcwd(directory, sizeof(directory)) ?
								directory :
								"." },
		  &report);
	if (host.inside)
		(void)error_set(&refusal, EOPNOTSUPP, EFFECTIVE_INSIDE);
	else if (!refusal.code && effective_check_files(&refusal) == 0)
		(void)diagnosis_refusal(&report, &refusal);
	gather_holding(&holding);
	if (json)
		print_json(&report, &holding, &refusal, &text);
	else
		print_text(&report, &holding, &refusal, &text);
	if (text.failed || fd_write_all(1, text.data, text.length) < 0) {
		complain("the report could not be printed");
		return 125;
	}
	return refusal.code ? 1 : 0;
}

const struct verb verb_doctor = {
	.name = "doctor",
	.synopsis = "",
	.summary = "Try out what this host permits, and tell the gaps and their remedies.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "0 rung full is possible; 1 it is not, and the last line says why; 2 wrong "
		       "use; 125 bawn itself failed",
	.run = doctor_verb,
};
