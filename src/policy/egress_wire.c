/*
 * The encoded form of egress rules, all numbers little-endian:
 *
 *   "bawnegr\n"  u32 version  u32 total length  u32 mode  string purpose  u32 count of rules
 *   of each rule:
 *     string id, file   u32 line, verdict, kind   string name
 *     u32 family  16 bytes of the network  u32 prefix bits
 *     u32 count of ports, of each u32 first << 16 | last
 *     u32 protocols, flags   u32 count of methods, strings   u32 count of paths, strings
 *     string tool  u64 device, inode  string purpose
 *     u64 from, until, bytes up, bytes down, bytes per second, connections, requests per minute
 *
 * A string is a u32 length, its bytes and a NUL; a file that is none has the length UINT32_MAX and
 * nothing behind it. One set of rules has one encoding.
 */
#include "policy/egress.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/path.h"
#include "policy/glob.h"

#include <errno.h>
#include <string.h>

#define EGRESS_VERSION 1u

static const char magic[8] = { 'b', 'a', 'w', 'n', 'e', 'g', 'r', '\n' };

/* No rule takes less: so a count that cannot be true costs no memory. */
enum { HEADER_BYTES = 8 + 4 * 2, RULE_LEAST_BYTES = 128 };

static bool is_word(const char *word, const char *others, char first_letter)
{
	size_t length = strlen(word);

	if (length == 0 || length >= EGRESS_LIMIT_WORD)
		return false;
	for (size_t i = 0; i < length; i++) {
		bool is_letter = word[i] >= first_letter && word[i] < first_letter + 26;

		if (!is_letter && !strchr(others, word[i]))
			return false;
	}
	return true;
}

bool egress_purpose_check(const char *word)
{
	return is_word(word, "0123456789-_.", 'a');
}

bool egress_method_check(const char *word)
{
	return is_word(word, "-", 'A');
}

bool egress_path_check(const char *pattern)
{
	return pattern[0] == '/' && (!pattern[1] || glob_check(pattern + 1) == 0);
}

/* Counts first, and writes when there are bytes. */
struct writer {
	unsigned char *bytes;
	size_t at;
};

static void put_bytes(struct writer *writer, const void *bytes, size_t length)
{
	if (writer->bytes)
		memcpy(writer->bytes + writer->at, bytes, length);
	writer->at += length;
}

static void put32(struct writer *writer, uint32_t value)
{
	unsigned char bytes[4];

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(value >> (8 * i));
	put_bytes(writer, bytes, sizeof(bytes));
}

static void put64(struct writer *writer, uint64_t value)
{
	put32(writer, (uint32_t)value);
	put32(writer, (uint32_t)(value >> 32));
}

static void put_string(struct writer *writer, const char *text)
{
	size_t length = text ? strlen(text) : 0;

	put32(writer, (uint32_t)length);
	put_bytes(writer, text ? text : "", length + 1);
}

static void put_strings(struct writer *writer, const char *const *texts, size_t count)
{
	put32(writer, (uint32_t)count);
	for (size_t i = 0; i < count; i++)
		put_string(writer, texts[i]);
}

static void put_ref(struct writer *writer, const struct rule_ref *ref)
{
	put_string(writer, ref->id);
	if (ref->file)
		put_string(writer, ref->file);
	else
		put32(writer, UINT32_MAX);
	put32(writer, ref->line);
}

static void put_rule(struct writer *writer, const struct egress_rule *rule)
{
	put_ref(writer, &rule->ref);
	put32(writer, rule->verdict);
	put32(writer, rule->kind);
	put_string(writer, rule->name);
	put32(writer, rule->network.family);
	put_bytes(writer, rule->network.bytes, sizeof(rule->network.bytes));
	put32(writer, rule->prefix_bits);
	put32(writer, (uint32_t)rule->port_count);
	for (size_t i = 0; i < rule->port_count; i++)
		put32(writer, (uint32_t)rule->ports[i].first << 16 | rule->ports[i].last);
	put32(writer, rule->protocols);
	put32(writer, rule->flags);
	put_strings(writer, rule->methods, rule->method_count);
	put_strings(writer, rule->paths, rule->path_count);
	put_string(writer, rule->tool);
	put64(writer, rule->tool_device);
	put64(writer, rule->tool_inode);
	put_string(writer, rule->purpose);
	put64(writer, rule->from_wall_s);
	put64(writer, rule->until_wall_s);
	put64(writer, rule->bytes_up);
	put64(writer, rule->bytes_down);
	put64(writer, rule->bytes_per_second);
	put64(writer, rule->connections);
	put64(writer, rule->requests_per_minute);
}

static void put_policy(struct writer *writer, const struct egress_policy *policy, size_t total)
{
	put_bytes(writer, magic, sizeof(magic));
	put32(writer, EGRESS_VERSION);
	put32(writer, (uint32_t)total);
	put32(writer, policy->mode);
	put_string(writer, policy->purpose);
	put32(writer, (uint32_t)policy->rule_count);
	for (size_t i = 0; i < policy->rule_count; i++)
		put_rule(writer, &policy->rules[i]);
}

int egress_encode(const struct egress_policy *policy, struct arena *arena,
		  const unsigned char **ret_bytes, size_t *ret_length)
{
	struct writer counter = { 0 }, writer = { 0 };

	if (policy->rule_count > EGRESS_LIMIT_RULES)
		return -E2BIG;
	put_policy(&counter, policy, 0);
	if (counter.at > EGRESS_LIMIT_BYTES)
		return -E2BIG;
	writer.bytes = arena_allocate(arena, counter.at);
	if (!writer.bytes)
		return -ENOMEM;
	put_policy(&writer, policy, counter.at);
	*ret_bytes = writer.bytes;
	*ret_length = counter.at;
	return 0;
}

/* Reads foreign bytes; the first fault is latched, and everything is 0 or "" from then on. */
struct reader {
	const unsigned char *at, *end;
	struct arena *arena;
	const char *fault;
	bool no_memory;
};

static void fault(struct reader *reader, const char *what)
{
	if (!reader->fault)
		reader->fault = what;
	reader->at = reader->end;
}

static bool has_left(struct reader *reader, size_t bytes)
{
	if ((size_t)(reader->end - reader->at) >= bytes)
		return true;
	fault(reader, "are cut short");
	return false;
}

static uint32_t get32(struct reader *reader)
{
	uint32_t value = 0;

	if (!has_left(reader, 4))
		return 0;
	for (unsigned i = 0; i < 4; i++)
		value |= (uint32_t)*reader->at++ << (8 * i);
	return value;
}

static uint64_t get64(struct reader *reader)
{
	uint64_t low = get32(reader);

	return low | (uint64_t)get32(reader) << 32;
}

static uint32_t get_below(struct reader *reader, uint32_t limit, const char *what)
{
	uint32_t value = get32(reader);

	if (value < limit)
		return value;
	fault(reader, what);
	return 0;
}

static const char *get_bytes(struct reader *reader, size_t length)
{
	const char *text = (const char *)reader->at;

	if (!has_left(reader, length + 1))
		return "";
	if (text[length] != '\0' || memchr(text, '\0', length)) {
		fault(reader, "have a string that does not end where it says");
		return "";
	}
	reader->at += length + 1;
	return text;
}

static const char *get_string(struct reader *reader)
{
	return get_bytes(reader, get_below(reader, EGRESS_LIMIT_BYTES, "have a giant string"));
}

static const char *get_optional(struct reader *reader)
{
	uint32_t length = get32(reader);

	if (length == UINT32_MAX)
		return NULL;
	if (length < EGRESS_LIMIT_BYTES)
		return get_bytes(reader, length);
	fault(reader, "have a giant string");
	return NULL;
}

/* A count of items, and room for them; NULL (with a count of 0) where there are none. */
static void *get_array(struct reader *reader, uint32_t limit, size_t least_bytes, size_t item_bytes,
		       size_t *ret_count)
{
	size_t count = get_below(reader, limit + 1, "have too many parts");
	void *items;

	*ret_count = 0;
	if (!count || !has_left(reader, count * least_bytes))
		return NULL;
	items = arena_array(reader->arena, count, item_bytes);
	if (!items) {
		reader->no_memory = true;
		fault(reader, "have no room");
		return NULL;
	}
	*ret_count = count;
	return items;
}

static void get_words(struct reader *reader, bool (*check)(const char *),
		      const char *const **ret_words, size_t *ret_count)
{
	const char **words = get_array(reader, EGRESS_LIMIT_PATHS, 5, sizeof(*words), ret_count);

	for (size_t i = 0; i < *ret_count; i++) {
		words[i] = get_string(reader);
		if (!check(words[i]))
			fault(reader, "have a method or path that is none");
	}
	*ret_words = words;
}

static void get_ports(struct reader *reader, struct egress_rule *rule)
{
	rule->ports =
		get_array(reader, EGRESS_LIMIT_PORTS, 4, sizeof(*rule->ports), &rule->port_count);
	for (size_t i = 0; i < rule->port_count; i++) {
		uint32_t value = get32(reader);

		rule->ports[i].first = (uint16_t)(value >> 16);
		rule->ports[i].last = (uint16_t)value;
		if (!rule->ports[i].first || rule->ports[i].first > rule->ports[i].last)
			fault(reader, "have ports out of range");
	}
	if (!rule->port_count)
		fault(reader, "have a rule without ports");
}

static bool is_canonical(const char *name)
{
	struct host host;
	const char *why;

	return host_parse(name, strlen(name), &host, &why) == 0 && host.kind == HOST_NAME &&
	       strcmp(host.name, name) == 0;
}

/* Of a network as many bits as its family has, and no others behind its prefix. */
static bool is_network(const struct address *network, unsigned bits)
{
	unsigned most = network->family == ADDRESS_V4 ? 32 : 128;

	if (network->family != ADDRESS_V4 && network->family != ADDRESS_V6)
		return false;
	if (bits > most)
		return false;
	for (unsigned bit = bits; bit < 128; bit++)
		if (network->bytes[bit / 8] & (0x80 >> bit % 8))
			return false;
	return true;
}

static void get_network(struct reader *reader, struct egress_rule *rule)
{
	static const struct address none;

	rule->network.family = (uint8_t)get_below(reader, ADDRESS_V6 + 1, "have an unknown family");
	if (has_left(reader, sizeof(rule->network.bytes))) {
		memcpy(rule->network.bytes, reader->at, sizeof(rule->network.bytes));
		reader->at += sizeof(rule->network.bytes);
	}
	rule->prefix_bits = get32(reader);
	if (rule->kind == EGRESS_NETWORK) {
		if (!is_network(&rule->network, rule->prefix_bits))
			fault(reader, "have a network that is none");
	} else if (memcmp(&rule->network, &none, sizeof(none)) != 0 || rule->prefix_bits) {
		fault(reader, "have a network where none belongs");
	}
}

static void get_host(struct reader *reader, struct egress_rule *rule)
{
	bool is_named;

	rule->kind = get_below(reader, EGRESS_HOST_KIND_COUNT, "have an unknown kind of host");
	rule->name = get_string(reader);
	is_named = rule->kind == EGRESS_EXACT || rule->kind == EGRESS_BELOW;
	if (is_named ? !is_canonical(rule->name) : rule->name[0] != '\0')
		fault(reader, "have a name that is not canonical, or where none belongs");
	get_network(reader, rule);
}

static void get_times(struct reader *reader, struct egress_rule *rule)
{
	rule->from_wall_s = get64(reader);
	rule->until_wall_s = get64(reader);
	if (rule->until_wall_s && rule->until_wall_s <= rule->from_wall_s)
		fault(reader, "have a time that ends before it begins");
}

static void get_rule(struct reader *reader, struct egress_rule *rule)
{
	rule->ref.id = get_string(reader);
	rule->ref.file = get_optional(reader);
	rule->ref.line = get32(reader);
	if (!rule->ref.id[0])
		fault(reader, "have a rule without an id");
	rule->verdict = get_below(reader, EGRESS_VERDICT_COUNT, "have an unknown verdict");
	get_host(reader, rule);
	get_ports(reader, rule);
	rule->protocols = get_below(reader, EGRESS_PROTOCOLS_ALL + 1, "have an unknown protocol");
	if (!rule->protocols)
		fault(reader, "have a rule without protocols");
	rule->flags = get_below(reader, EGRESS_RULE_FLAGS_ALL + 1, "have an unknown flag");
	get_words(reader, egress_method_check, &rule->methods, &rule->method_count);
	get_words(reader, egress_path_check, &rule->paths, &rule->path_count);
	rule->tool = get_string(reader);
	rule->tool_device = get64(reader);
	rule->tool_inode = get64(reader);
	if (!rule->tool[0] && (rule->tool_device || rule->tool_inode))
		fault(reader, "have the file of no tool");
	rule->purpose = get_string(reader);
	if (rule->purpose[0] && !egress_purpose_check(rule->purpose))
		fault(reader, "have a purpose that is none");
	get_times(reader, rule);
	rule->bytes_up = get64(reader);
	rule->bytes_down = get64(reader);
	rule->bytes_per_second = get64(reader);
	rule->connections = get64(reader);
	rule->requests_per_minute = get64(reader);
}

static void get_policy(struct reader *reader, struct egress_policy *policy)
{
	policy->mode = get_below(reader, EGRESS_MODE_COUNT, "have an unknown mode");
	policy->purpose = get_string(reader);
	if (policy->purpose[0] && !egress_purpose_check(policy->purpose))
		fault(reader, "have a purpose that is none");
	policy->rules = get_array(reader, EGRESS_LIMIT_RULES, RULE_LEAST_BYTES,
				  sizeof(*policy->rules), &policy->rule_count);
	for (size_t i = 0; i < policy->rule_count && !reader->fault; i++)
		get_rule(reader, &policy->rules[i]);
	if (reader->at != reader->end)
		fault(reader, "have bytes that nothing names");
}

static int bad(struct error *error, const char *what)
{
	return error_set(error, EBADMSG, "the compiled network rules %s", what);
}

int egress_decode(const unsigned char *bytes, size_t length, struct arena *arena,
		  struct egress_policy *ret_policy, struct error *error)
{
	struct reader reader = { .at = bytes, .end = bytes + length, .arena = arena };
	struct egress_policy policy = { 0 };

	if (length < HEADER_BYTES || length > EGRESS_LIMIT_BYTES ||
	    memcmp(bytes, magic, sizeof(magic)) != 0)
		return bad(error, "are none");
	reader.at += sizeof(magic);
	if (get32(&reader) != EGRESS_VERSION)
		return bad(error, "have another version");
	if (get32(&reader) != length)
		return bad(error, "have another length than they say");
	get_policy(&reader, &policy);
	if (reader.no_memory)
		return error_errno(error, ENOMEM, "reading the compiled network rules");
	if (reader.fault)
		return bad(error, reader.fault);
	*ret_policy = policy;
	return 0;
}
