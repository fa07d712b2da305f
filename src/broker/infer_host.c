#include "broker/infer_internal.h"

#include "policy/denial.h"
#include "policy/policy.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define HOST_LIMIT_BYTES 253 /* RFC 1035, section 2.3.4 */

/* Texts behind which the host stands; `plain` ones may be followed by a name without a dot. */
static const struct {
	const char *text;
	bool plain;
	char port_mark; /* between host and port, where it is not a colon */
} anchors[] = {
	{ "could not resolve host: ", true, ':' },
	{ "could not resolve hostname ", true, ':' },
	{ "unable to resolve host address ", true, ':' },
	{ "getaddrinfo eai_again ", true, ':' },
	{ "getaddrinfo enotfound ", true, ':' },
	{ "unknownhostexception: ", true, ':' },
	{ "temporary failure resolving ", true, ':' },
	{ "failed to resolve ", false, ':' },
	{ "lookup ", false, ':' },
	{ "resolving ", false, ':' },
	{ "connect enetunreach ", false, ':' },
	{ "connecting to ", false, ':' },
	{ "connect to host ", false, ':' },
	{ "connect to address ", false, ':' },
	{ "connect to ", false, ':' },
	{ "dial tcp ", false, ':' },
	{ "dial udp ", false, ':' },
	{ "/dev/tcp/", false, '/' },
	{ "/dev/udp/", false, '/' },
	{ "host=", false, ':' },
};

struct caller {
	char text[HOST_LIMIT_BYTES + sizeof("[]:65535")];
	bool plain; /* no dot, no colon */
};

static bool is_host_byte(char c)
{
	return c && (unsigned char)c < 0x80 &&
	       (infer_is_alnum(c) || c == '.' || c == '-' || c == '_');
}

static size_t digits(const char *at)
{
	return strspn(at, "0123456789");
}

/* Length of the name or address at this place, 0 for none; sets whether it is a plain word. */
static size_t host_length(const char *at, bool *ret_plain)
{
	size_t length = strspn(at + (*at == '['), "0123456789abcdefABCDEF:");

	*ret_plain = false;
	if (*at == '[')
		return length > 2 && at[1 + length] == ']' ? length + 2 : 0;
	if (length > 2 && memchr(at, ':', length) &&
	    memchr(at, ':', length) != memrchr(at, ':', length) && !is_host_byte(at[length])) {
		while (length && at[length - 1] == ':' && at[length - 2] != ':')
			length--;
		return length;
	}
	for (length = 0; is_host_byte(at[length]); length++)
		;
	while (length && !infer_is_alnum(at[length - 1]))
		length--;
	*ret_plain = !length || !memchr(at, '.', length);
	return length && infer_is_alnum(*at) ? length : 0;
}

/* The host at this place, with its port where one is written behind it. */
static bool host_at(const char *at, char port_mark, struct caller *ret_host)
{
	size_t length, port = 0;
	const char *behind;

	while (infer_quote(at))
		at += infer_quote(at);
	length = host_length(at, &ret_host->plain);
	if (!length || length > HOST_LIMIT_BYTES)
		return false;
	behind = at + length;
	if (*behind == port_mark)
		behind++;
	else if (strncmp(behind, " port ", 6) == 0)
		behind += 6;
	if (behind > at + length)
		port = digits(behind);
	if (port > 5 || (port && infer_is_alnum(behind[port])))
		port = 0;
	(void)snprintf(ret_host->text, sizeof(ret_host->text), "%.*s%s%.*s", (int)length, at,
		       port ? ":" : "", (int)port, port ? behind : "");
	return true;
}

static bool anchored_host(const char *line, struct caller *ret_host)
{
	for (size_t i = 0; i < COUNT(anchors); i++) {
		const char *at = line;

		while ((at = strcasestr(at, anchors[i].text))) {
			at += strlen(anchors[i].text);
			if (host_at(at, anchors[i].port_mark, ret_host) &&
			    (anchors[i].plain || !ret_host->plain))
				return true;
		}
	}
	return false;
}

/* The host of the first URL that goes out; user and password before an "@" are never repeated. */
static bool url_host(const char *text, struct caller *ret_host)
{
	for (const char *at = strstr(text, "://"); at; at = strstr(at + 3, "://")) {
		const char *host = at + 3;
		size_t authority = strcspn(host, "/?# '\"`<>()");
		const char *user = memrchr(host, '@', authority);

		if (at - text >= 4 && strncmp(at - 4, "file", 4) == 0)
			continue;
		if (host_at(user ? user + 1 : host, ':', ret_host))
			return true;
	}
	return false;
}

/* `line 1: example.org: Temporary failure in name resolution` */
static bool leading_host(const char *line, struct caller *ret_host)
{
	const char *at = strcasestr(line, ": temporary failure in name resolution");
	const char *end = at;

	if (!at)
		at = end = strcasestr(line, ": name or service not known");
	if (!at)
		return false;
	while (at > line && is_host_byte(at[-1]))
		at--;
	if ((at > line && at[-1] != ' ') || end == at || end[-1] < 'a' || end[-1] > 'z')
		return false;
	return host_at(at, ':', ret_host) && !ret_host->plain;
}

static bool is_loopback(const char *host)
{
	return strncmp(host, "127.", 4) == 0 || strncasecmp(host, "localhost", 9) == 0 ||
	       strncmp(host, "::1", 3) == 0 || strncmp(host, "[::1]", 5) == 0;
}

/* What says that another port is meant than those of the web, which the remedy has by itself. */
static const struct {
	const char *text, *port;
} services[] = {
	{ "ssh: ", "22" },    { "ssh://", "22" }, { "sftp://", "22" },
	{ "git://", "9418" }, { "ftp://", "21" }, { "(port 9418)", "9418" },
};

static void set_remedy(struct denial *denial, const char *host, const char *line)
{
	if (!host[0] || strchr(host, ':'))
		return;
	for (size_t i = 0; i < COUNT(services); i++)
		if (strstr(line, services[i].text)) {
			(void)snprintf(denial->grant, sizeof(denial->grant), "%.200s:%s", host,
				       services[i].port);
			return;
		}
}

/* line: what names the host */
static void report_host(struct infer_search *search, unsigned says, const char *host,
			const char *line)
{
	enum denial_kind kind;

	/* there the proxy tells, and exactly */
	if (search->policy->egress.mode == EGRESS_POLICY)
		return;
	kind = says & SAYS_UNRESOLVED ? DENIAL_NET_RESOLVE : DENIAL_NET_CONNECT;

	if (denial_add(search->list, kind, rule_builtin(RULE_NETWORK_LOOPBACK), host, false))
		set_remedy(&search->list->items[search->list->count - 1], host, line);
}

void infer_search_hosts(struct infer_search *search, const char *line, unsigned says)
{
	struct caller host;

	if (!anchored_host(line, &host) && !url_host(line, &host) && !leading_host(line, &host)) {
		search->anonymous |= says & SAYS_NETWORK;
		return;
	}
	search->named |= says & SAYS_NETWORK;
	if (!is_loopback(host.text))
		report_host(search, says, host.text, line);
}

void infer_search_curl(struct infer_search *search, const char *line)
{
	static const char text[] = "Failed to connect to ";
	const char *at = strstr(line, text);
	struct caller host;

	if (at && strstr(at, "Couldn't connect to server") &&
	    host_at(at + strlen(text), ':', &host) && strchr(host.text, ':') &&
	    !is_loopback(host.text))
		report_host(search, SAYS_UNREACHABLE, host.text, line);
}

/* An operand that can only be a host: a URL, USER@HOST or an address. */
static bool operand_host(const char *operand, struct caller *ret_host)
{
	const char *user = strchr(operand, '@');
	size_t address = strspn(operand, "0123456789.");

	if (url_host(operand, ret_host))
		return true;
	if (user && !strpbrk(operand, " \t\n=/") && host_at(user + 1, ':', ret_host))
		return !ret_host->plain;
	return address >= 7 && (!operand[address] || operand[address] == ':') &&
	       host_at(operand, ':', ret_host) && !ret_host->plain;
}

void infer_search_pip(struct infer_search *search, const char *line)
{
	search->pip_failed |= strstr(line, "ERROR: No matching distribution found for ") ||
			      strstr(line, "ERROR: Could not find a version that satisfies the "
					   "requirement ");
}

/* The operand that can only be a host, in whose words the port is; "": none. */
static const char *given_host(const struct infer_search *search, struct caller *ret_host)
{
	const char *const *argv = search->argv;

	for (size_t i = 1; i < INFER_LIMIT_OPERANDS && argv[0] && argv[i]; i++)
		if (operand_host(argv[i], ret_host))
			return argv[i];
	ret_host->text[0] = '\0';
	return "";
}

/* True where pip was told to look at no index, so that it would not have gone out. */
static bool is_local_pip(const struct infer_search *search)
{
	const struct policy *policy = search->policy;

	for (size_t i = 0; i < INFER_LIMIT_OPERANDS && search->argv[0] && search->argv[i]; i++)
		if (strstr(search->argv[i], "--no-index"))
			return true;
	for (size_t i = 0; i < policy->variable_count; i++)
		if (strcmp(policy->variables[i].name, "PIP_NO_INDEX") == 0)
			return true;
	return false;
}

/*
 * Of pip, which without retries (effective.c sets none) tells of no connection: its index is what
 * an option or a variable says, or the one that is built in.
 */
static void report_pip(struct infer_search *search)
{
	const struct policy *policy = search->policy;
	struct caller host = { .text = "" };

	if (is_local_pip(search))
		return;
	(void)given_host(search, &host);
	for (size_t i = 0; i < policy->variable_count && !host.text[0]; i++)
		if (strcmp(policy->variables[i].name, "PIP_INDEX_URL") == 0 &&
		    !url_host(policy->variables[i].value, &host))
			host.text[0] = '\0';
	if (!is_loopback(host.text))
		report_host(search, SAYS_UNRESOLVED, host.text[0] ? host.text : "pypi.org", "");
}

void infer_search_anonymous(struct infer_search *search)
{
	unsigned says = search->policy->egress.mode == EGRESS_POLICY ?
				0 :
				search->anonymous & SAYS_NETWORK & ~search->named;
	struct caller host = { .text = "" };
	const char *line;

	if (!says) {
		if (search->pip_failed && !(search->named & SAYS_NETWORK))
			report_pip(search);
		return;
	}
	line = given_host(search, &host);
	if (is_loopback(host.text))
		return;
	if (says & SAYS_UNRESOLVED)
		report_host(search, SAYS_UNRESOLVED, host.text, line);
	if (says & SAYS_UNREACHABLE)
		report_host(search, SAYS_UNREACHABLE, host.text, line);
}
