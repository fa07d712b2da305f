/*
 * Egress: what a task may connect to, as compiled rules, and the one function that decides.
 *
 * Everybody who needs a verdict about a connection asks egress_decide(): the proxy when it accepts
 * and again when it knows more, the dialer before it resolves and again for each address, `explain`
 * and `policy decide` without sending anything. So they cannot differ.
 *
 * The rules are a section of the compiled policy (policy.h), and by themselves the configuration of
 * the proxy and the dialer: egress_encode() is the one form of both, with the ids and places of its
 * rules in it, so that neither role needs the rest of the policy. egress_decode() checks every byte
 * of foreign input. Pure; memory is the arena's.
 *
 * Deny beats ask beats allow; nothing matched = deny (RULE_EGRESS_DEFAULT). A rule matches when
 * host, port and all that it demands besides (protocol, method, path, tool, purpose, time) do. What
 * is not known yet neither matches nor fails: the answer then says what has to be known. Such an
 * answer is never final, and no byte of the task's may be sent on it. Where denials close every way
 * that rules allow, the answer is a final no, whatever is not known: nothing is resolved for it.
 *
 * Special hosts and addresses (host_special(), address_special()) are denied (RULE_EGRESS_SPECIAL)
 * unless a rule names them: an exact name; a wildcard below a special name; a network that lies
 * within the range that makes the address special, so that 0.0.0.0/0 opens none of them, and
 * 169.254.0.0/16 no metadata service. A name whose rule is private may lead to private networks, an
 * exact one to the host's loopback, too; neither to metadata, link-local or reserved addresses.
 */
#pragma once

#include "policy/host.h"
#include "policy/rule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct error;

#define EGRESS_LIMIT_RULES 4096u
#define EGRESS_LIMIT_PORTS 32u
/* methods, too */
#define EGRESS_LIMIT_PATHS 64u
/* All rules together, encoded: each role holds a copy. */
#define EGRESS_LIMIT_BYTES (4u * 1024 * 1024)
/* A method or a purpose, with its NUL. */
#define EGRESS_LIMIT_WORD 32u
/* The path of a request, with its NUL: a longer one matches no rule that allows paths, and each
 * that denies some. */
#define EGRESS_LIMIT_PATH 8192u

enum egress_mode {
	EGRESS_NONE,   /* nothing but the box's own loopback */
	EGRESS_POLICY, /* what the rules allow */
	EGRESS_MODE_COUNT,
};

enum egress_verdict { EGRESS_DENY, EGRESS_ASK, EGRESS_ALLOW, EGRESS_VERDICT_COUNT };

/* What the first bytes are; a rule has a set of them. */
enum egress_protocol {
	EGRESS_HTTP = 1u << 0,	/* HTTP/1 in the clear */
	EGRESS_HTTPS = 1u << 1, /* TLS to a web server, by its SNI; not opened */
	EGRESS_TLS = 1u << 2,	/* any other TLS, by its SNI */
	EGRESS_SSH = 1u << 3,
	EGRESS_TCP = 1u << 4, /* any bytes: only where a rule says so, which then takes all */
	EGRESS_PROTOCOLS_ALL = (1u << 5) - 1,
	/* of a rule that names none */
	EGRESS_PROTOCOLS_DEFAULT = EGRESS_HTTP | EGRESS_HTTPS | EGRESS_TLS | EGRESS_SSH,
};

enum egress_host_kind {
	EGRESS_EXACT,	/* this name */
	EGRESS_BELOW,	/* *.name: what ends in .name, not the name itself */
	EGRESS_NETWORK, /* addresses of a prefix; /32 and /128 name one */
	EGRESS_ANY,	/* every name that is not special, marked as dangerous; a denial: all */
	EGRESS_HOST_KIND_COUNT,
};

struct egress_ports {
	uint16_t first, last; /* both included */
};

enum egress_rule_flag {
	EGRESS_PRIVATE = 1u << 0, /* of a name: it is a private service, see above */
	EGRESS_UPGRADE = 1u << 1, /* WebSocket and its like */
	EGRESS_ONCE = 1u << 2,	  /* for one action: the first that uses it */
	EGRESS_RULE_FLAGS_ALL = (1u << 3) - 1,
};

struct egress_rule {
	struct rule_ref ref;
	enum egress_verdict verdict;
	enum egress_host_kind kind;
	const char *name;	/* of EXACT and BELOW: canonical; else "" */
	struct address network; /* of NETWORK */
	uint32_t prefix_bits;
	struct egress_ports *ports; /* at least one */
	size_t port_count;
	uint32_t protocols;	    /* set of enum egress_protocol */
	uint32_t flags;		    /* set of enum egress_rule_flag */
	const char *const *methods; /* upper case; none: every one */
	size_t method_count;
	/* patterns of policy/glob.h behind a '/'; a last '/' of paths is left out; none: all */
	const char *const *paths;
	size_t path_count;
	const char *tool; /* the program that connects, as written; "": any */
	/* of its file; both 0: the box has none such, and the rule matches nothing */
	uint64_t tool_device, tool_inode;
	const char *purpose;		    /* a word of --purpose; "": any */
	uint64_t from_wall_s, until_wall_s; /* 0: always */
	uint64_t bytes_up, bytes_down;	    /* of the whole task; 0: no quota */
	uint64_t bytes_per_second, connections, requests_per_minute; /* likewise */
};

struct egress_policy {
	enum egress_mode mode;
	const char *purpose; /* of this task; "": none was given */
	struct egress_rule *rules;
	size_t rule_count;
};

/* What is known of a question besides host and port. */
enum egress_fact {
	EGRESS_FACT_PROTOCOL = 1u << 0,
	EGRESS_FACT_REQUEST = 1u << 1, /* method and path */
	EGRESS_FACT_TOOL = 1u << 2,
};

struct egress_tool {
	uint64_t device, inode;
	const char *path; /* as the box sees it; for people */
};

struct egress_question {
	const struct host *host;
	uint16_t port;
	uint64_t wall_s;
	uint32_t known; /* set of enum egress_fact */
	enum egress_protocol protocol;
	/*
	 * The path without its query, normalised (net/http_path.h). NULL where the method is known:
	 * servers differ about what it names; no rule that allows paths, each that denies or asks
	 * about some.
	 */
	const char *method, *path;
	bool upgrade; /* the request asks for another protocol */
	/* NULL and known: cannot be told; no rule that allows a tool, each that denies one */
	const struct egress_tool *tool;
};

struct egress_answer {
	enum egress_verdict verdict; /* as far as it is known; ALLOW and `needs`: may become one */
	uint32_t needs;	 /* set of enum egress_fact without which it is not final; 0: it is */
	bool is_private; /* a matching rule is of a private service */
	const struct egress_rule *rule; /* that decides; NULL: nothing matched, or `special` */
	const char *special;		/* DENY: the host is of a kind that only a rule can open */
};

/* Whether the rule is about this host and port at all, whatever else it wants to know. */
bool egress_names(const struct egress_rule *rule, const struct host *host, uint16_t port);

void egress_decide(const struct egress_policy *policy, const struct egress_question *question,
		   struct egress_answer *ret_answer);

/* What opens an address that is not of the public network. */
struct egress_opening {
	uint32_t needs; /* set of enum egress_fact; 0: it is sure that something does */
	/* a rule of the name, which is the one that counts then; NULL: none, or a network's */
	const struct egress_rule *rule;
};

/*
 * Whether an address that a host has may be dialled for this question (host and port of the name):
 * NULL, or why not, a constant text. A rule that denies the address by itself counts, too, known or
 * not what else it demands, and so does one that asks about it where the answer allows the name.
 * NULL with `needs` of the answer or the opening: for as long, and not a byte may be sent; to be
 * asked again with what was not known. A network's rule with a quota or `once` opens nothing for a
 * name: they would be counted nowhere.
 */
const char *egress_check_address(const struct egress_policy *policy,
				 const struct egress_question *question,
				 const struct egress_answer *answer, const struct address *address,
				 struct egress_opening *ret_opening);

/* The rule that answers, for people and records: a built-in one where none of the policy does. */
struct rule_ref egress_answer_rule(const struct egress_answer *answer);

const char *egress_protocol_name(enum egress_protocol protocol);

/* Whether a word can be a --purpose or a method, or a pattern one of a rule's paths. */
bool egress_purpose_check(const char *word);
bool egress_method_check(const char *word);
bool egress_path_check(const char *pattern);

/* The bytes in the arena; -ENOMEM or -E2BIG. */
int egress_encode(const struct egress_policy *policy, struct arena *arena,
		  const unsigned char **ret_bytes, size_t *ret_length);

/* -EBADMSG with the reason for anything that egress_encode() would not have written. Strings point
 * into the bytes. */
int egress_decode(const unsigned char *bytes, size_t length, struct arena *arena,
		  struct egress_policy *ret_policy, struct error *error);
