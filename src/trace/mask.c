/*
 * How it looks: three bytes at each position index a table, which says whether a secret may be
 * there: one of the triggers of trace/token.h, the rarest three bytes of a known value, or a mark
 * of ours. Most positions are through with that; a second table has the last word on the others.
 * Both are filled by mask_begin() and mask_add().
 */
#include "trace/mask.h"

#include "base/json.h"
#include "trace/token.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MARK "[masked:"
/* The rarest bytes of a value are among its first. */
#define ANCHOR_LONGEST 64u
/* The longest string that can be the name of a member. */
#define MEMBER_LONGEST 256u
#define SLICE_BYTES (128u * 1024)

/* A secret that was found. */
struct found {
	size_t start, end;
	const char *kind;
	const struct mask_value *value; /* NULL: what is digested are the bytes themselves */
	bool is_mark;			/* one that is masked already */
};

/* How far a JSON text has been read, to tell strings from what is between them. */
struct walk {
	size_t at;
	bool is_inside;
};

/* ---- names ---- */

struct word {
	const char *text;
	size_t length;
};

#define WORD(text)                     \
	{                              \
		text, sizeof(text) - 1 \
	}
#define LIST(list) list, sizeof(list) / sizeof((list)[0])

static bool is_word(const char *word, size_t length, const struct word *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].length == length && strncasecmp(word, list[i].text, length) == 0)
			return true;
	return false;
}

static bool ends_in_word(const char *word, size_t length, const struct word *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (length >= list[i].length &&
		    strncasecmp(word + length - list[i].length, list[i].text, list[i].length) == 0)
			return true;
	return false;
}

/* A word of a name; words are what underlines, dashes and dots part. */
static bool is_secret_word(const char *word, size_t length)
{
	static const struct word whole[] = { WORD("PASS"),  WORD("PWD"),    WORD("PAT"),
					     WORD("AUTH"),  WORD("COOKIE"), WORD("COOKIES"),
					     WORD("CREDS"), WORD("CRED"),   WORD("SSHPASS"),
					     WORD("JWT"),   WORD("BEARER"), WORD("SECRETS") };
	static const struct word tails[] = {
		WORD("TOKEN"),	    WORD("SECRET"),	WORD("PASSWORD"),    WORD("PASSWD"),
		WORD("PASSPHRASE"), WORD("CREDENTIAL"), WORD("CREDENTIALS"), WORD("APIKEY"),
		WORD("ACCESSKEY"),  WORD("PRIVATEKEY"), WORD("SECRETKEY"),   WORD("APIKEYS"),
		WORD("PASSWORDS"),  WORD("AUTHKEY")
	};

	return is_word(word, length, LIST(whole)) || ends_in_word(word, length, LIST(tails));
}

bool mask_is_secret_name(const char *name)
{
	/* what a name is about when it ends so: where the secret is, or how many, or how */
	static const struct word about[] = {
		WORD("SOCK"),	  WORD("SOCKET"),   WORD("FILE"),      WORD("PATH"),
		WORD("DIR"),	  WORD("HOME"),	    WORD("URL"),       WORD("URI"),
		WORD("ENDPOINT"), WORD("HOST"),	    WORD("PORT"),      WORD("ID"),
		WORD("TYPE"),	  WORD("NAME"),	    WORD("USER"),      WORD("USERNAME"),
		WORD("METHOD"),	  WORD("MODE"),	    WORD("TTL"),       WORD("EXPIRY"),
		WORD("EXPIRES"),  WORD("LIMIT"),    WORD("COUNT"),     WORD("LENGTH"),
		WORD("SIZE"),	  WORD("PROMPT"),   WORD("COMMAND"),   WORD("CMD"),
		WORD("HELPER"),	  WORD("HEADER"),   WORD("ALGORITHM"), WORD("TIMEOUT"),
		WORD("ENABLED"),  WORD("PROVIDER"), WORD("PLUGIN"),    WORD("PARALLELISM"),
		WORD("POLICY"),	  WORD("LEVEL"),    WORD("DOMAIN"),    WORD("SCOPE"),
		WORD("SCOPES"),	  WORD("REGION"),   WORD("VERSION")
	};
	/* what opens nothing, though it is called a key, or a number of tokens */
	static const struct word harmless[] = { WORD("PUBLIC"), WORD("GPG"),	 WORD("PGP"),
						WORD("CACHE"),	WORD("PRIMARY"), WORD("FOREIGN"),
						WORD("SORT"),	WORD("HOST"),	 WORD("INDEX"),
						WORD("MAX"),	WORD("MIN"),	 WORD("NUM"),
						WORD("COMPOSE") };
	static const struct word many[] = { WORD("KEY"), WORD("KEYS"), WORD("TOKENS") };
	const char *word = name, *before = NULL;
	size_t before_length = 0;
	bool is_secret = false;

	if (strcmp(name, "PWD") == 0 || strcmp(name, "OLDPWD") == 0)
		return false;
	for (;;) {
		size_t length = strcspn(word, "_-.");
		bool is_last = !word[length];
		bool is_harmless = before && is_word(before, before_length, LIST(harmless));

		if (is_last && is_secret && is_word(word, length, LIST(about)))
			return false;
		is_secret |= is_secret_word(word, length) ||
			     (is_last && !is_harmless && is_word(word, length, LIST(many)));
		if (is_last)
			return is_secret;
		if (length) {
			before = word;
			before_length = length;
		}
		word += length + 1;
	}
}

/* ---- the table ---- */

/*
 * The factor, of many that were tried, by which the fewest usual bytes fall upon a trigger's
 * place.
 */
static uint32_t place(uint32_t three)
{
	return (three & 0xffffff) * 0x13a9dd75u >> (32 - MASK_TABLE_BITS);
}

/* Another place, for what has met one of the first by chance. */
static uint32_t second_place(uint32_t three)
{
	return (three & 0xffffff) * 0x9e3779b1u >> (32 - MASK_TABLE_BITS);
}

static void set(struct mask *mask, uint32_t three)
{
	mask->table[place(three) / 32] |= 1u << place(three) % 32;
	mask->second[second_place(three) / 32] |= 1u << second_place(three) % 32;
}

static uint32_t is_set(const uint32_t *table, uint32_t three)
{
	return table[place(three) / 32] >> place(three) % 32 & 1;
}

static bool may_be(const struct mask *mask, uint32_t three)
{
	return is_set(mask->table, three) &&
	       mask->second[second_place(three) / 32] >> second_place(three) % 32 & 1;
}

static uint32_t three_at(const char *bytes)
{
	const unsigned char *at = (const unsigned char *)bytes;

	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16;
}

/* One byte more than three_at(), by one load. */
static uint32_t four_at(const char *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	value = __builtin_bswap32(value);
#endif
	return value;
}

void mask_begin(struct mask *mask, const unsigned char key[static MASK_KEY_BYTES])
{
	const char *trigger;

	hmac_key_set(&mask->key, key, MASK_KEY_BYTES);
	memset(mask->table, 0, sizeof(mask->table));
	memset(mask->second, 0, sizeof(mask->second));
	for (size_t i = 0; (trigger = token_trigger(i)); i++)
		set(mask, three_at(trigger));
	set(mask, three_at(MARK));
	mask->is_begun = true;
}

static void wipe(const char *bytes, size_t length)
{
	if (bytes)
		explicit_bzero((void *)(uintptr_t)bytes, length);
	free((void *)(uintptr_t)bytes);
}

void mask_end(struct mask *mask)
{
	for (size_t i = 0; i < mask->form_count; i++)
		wipe(mask->forms[i].bytes, mask->forms[i].length);
	for (size_t i = 0; i < mask->value_count; i++)
		wipe(mask->values[i].bytes, mask->values[i].length);
	free(mask->forms);
	free(mask->values);
	explicit_bzero(mask, sizeof(*mask));
}

/* How rare a byte is in texts. */
static unsigned rarity(unsigned char byte)
{
	if (byte >= 'a' && byte <= 'z')
		return 1;
	if (byte >= '0' && byte <= '9')
		return byte == '0' ? 1 : 3;
	if (byte >= 'A' && byte <= 'Z')
		return 3;
	return byte <= ' ' || byte == '/' || byte == '\\' ? 0 : 2;
}

static uint16_t anchor_of(const char *bytes, size_t length)
{
	size_t last = (length < ANCHOR_LONGEST ? length : ANCHOR_LONGEST) - 3;
	unsigned best = 0;
	uint16_t anchor = 0;

	for (size_t at = 0; at <= last; at++) {
		unsigned rare = rarity((unsigned char)bytes[at]) +
				rarity((unsigned char)bytes[at + 1]) +
				rarity((unsigned char)bytes[at + 2]);

		if (rare > best) {
			best = rare;
			anchor = (uint16_t)at;
		}
	}
	return anchor;
}

static int add_form(struct mask *mask, const struct buffer *bytes, bool in_text, bool in_json)
{
	struct mask_form *form = &mask->forms[mask->form_count];
	char *copy;

	for (size_t i = 0; i < mask->form_count; i++) {
		struct mask_form *same = &mask->forms[i];

		if (same->value + 1u == mask->value_count && same->length == bytes->length &&
		    memcmp(same->bytes, bytes->data, bytes->length) == 0) {
			same->in_text |= in_text;
			same->in_json |= in_json;
			return 0;
		}
	}
	copy = malloc(bytes->length);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, bytes->data, bytes->length);
	*form = (struct mask_form){
		.bytes = copy,
		.length = (uint32_t)bytes->length,
		.value = (uint16_t)(mask->value_count - 1),
		.anchor = anchor_of(copy, bytes->length),
		.in_text = in_text,
		.in_json = in_json,
	};
	mask->form_count++;
	set(mask, three_at(copy + form->anchor));
	return 0;
}

/* The content of a JSON string; what is within quotes. */
static void escape(const char *bytes, size_t length, struct buffer *ret_escaped)
{
	struct json json;

	json_begin(&json, ret_escaped);
	json_bytes(&json, NULL, bytes, length);
	if (ret_escaped->failed || ret_escaped->length < 2)
		return;
	ret_escaped->length -= 2;
	memmove(ret_escaped->data, ret_escaped->data + 1, ret_escaped->length);
}

/* As in a query (RFC 3986): all but unreserved bytes by their number. */
static void percent(const char *bytes, size_t length, struct buffer *ret_text)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)bytes[i];
		bool is_plain = byte < 0x80 && byte && strchr("-._~", byte);

		is_plain |= (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
			    (byte >= 'a' && byte <= 'z');
		if (is_plain)
			buffer_append(ret_text, &bytes[i], 1);
		else
			buffer_format(ret_text, "%%%02X", byte);
	}
}

static void burn(struct buffer *buffer)
{
	if (buffer->data)
		explicit_bzero(buffer->data, buffer->capacity);
	buffer_free(buffer);
}

#define CLEANUP_BURN __attribute__((cleanup(burn)))
#define FORMS 4

static int add_forms(struct mask *mask, const char *bytes, size_t length)
{
	struct buffer CLEANUP_BURN plain = { 0 }, CLEANUP_BURN once = { 0 };
	struct buffer CLEANUP_BURN twice = { 0 }, CLEANUP_BURN query = { 0 };
	int result;

	buffer_append(&plain, bytes, length);
	escape(bytes, length, &once);
	if (!once.failed)
		escape(once.data, once.length, &twice);
	percent(bytes, length, &query);
	if (plain.failed || once.failed || twice.failed || query.failed)
		return -ENOMEM;
	result = add_form(mask, &plain, true, false);
	if (result == 0)
		result = add_form(mask, &once, true, true);
	if (result == 0)
		result = add_form(mask, &twice, false, true);
	if (result == 0)
		result = add_form(mask, &query, true, true);
	return result;
}

/* The name of a kind is part of a JSON string, and of a mark. */
static void name_kind(struct mask_value *value, const char *name)
{
	size_t length = 4;

	memcpy(value->kind, "env.", 4);
	for (; *name && length < sizeof(value->kind) - 1; name++) {
		bool is_plain = (*name >= '0' && *name <= '9') || (*name >= 'A' && *name <= 'Z') ||
				(*name >= 'a' && *name <= 'z') || *name == '.' || *name == '-';

		value->kind[length++] = is_plain ? *name : '_';
	}
	value->kind[length] = '\0';
}

static int make_room(struct mask *mask)
{
	if (mask->values)
		return 0;
	mask->values = calloc(MASK_LIMIT_VALUES, sizeof(*mask->values));
	mask->forms = calloc((size_t)MASK_LIMIT_VALUES * FORMS, sizeof(*mask->forms));
	return mask->values && mask->forms ? 0 : -ENOMEM;
}

static int add_piece(struct mask *mask, const char *name, const char *bytes, size_t length)
{
	struct mask_value *value;
	char *copy;

	for (size_t i = 0; i < mask->value_count; i++)
		if (mask->values[i].length == length &&
		    memcmp(mask->values[i].bytes, bytes, length) == 0)
			return 0;
	if (mask->value_count == MASK_LIMIT_VALUES)
		return -E2BIG;
	copy = malloc(length);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, bytes, length);
	value = &mask->values[mask->value_count++];
	value->bytes = copy;
	value->length = (uint32_t)length;
	name_kind(value, name);
	return add_forms(mask, bytes, length);
}

bool mask_has(const struct mask *mask, const char *value)
{
	size_t length = strlen(value);

	for (size_t i = 0; i < mask->value_count; i++)
		if (mask->values[i].length == length &&
		    memcmp(mask->values[i].bytes, value, length) == 0)
			return true;
	return false;
}

int mask_add(struct mask *mask, const char *name, const char *value)
{
	size_t left = strlen(value);
	int result = mask->is_begun ? make_room(mask) : -EINVAL;

	if (left < MASK_SHORTEST_BYTES)
		return -ERANGE;
	while (result == 0 && left) {
		size_t length = left < MASK_PIECE_BYTES ? left : MASK_PIECE_BYTES;

		/* no rest that is too short to be told from a word */
		if (left - length && left - length < MASK_SHORTEST_BYTES)
			length -= MASK_SHORTEST_BYTES;
		result = add_piece(mask, name, value, length);
		value += length;
		left -= length;
	}
	return result;
}

/* ---- looking ---- */

/* Past what is certainly none, four positions at a time, as far as seven bytes are before `end`. */
static size_t skip(const uint32_t *table, const char *bytes, size_t at, size_t end)
{
	while (at + 7 <= end &&
	       !(is_set(table, four_at(bytes + at)) | is_set(table, four_at(bytes + at + 1)) |
		 is_set(table, four_at(bytes + at + 2)) | is_set(table, four_at(bytes + at + 3))))
		at += 4;
	return at;
}

/* The same with a byte for each bit, which is faster and takes more pages. */
static size_t skip_wide(const uint8_t *wide, const char *bytes, size_t at, size_t end)
{
	while (at + 7 <= end &&
	       !(wide[place(four_at(bytes + at))] | wide[place(four_at(bytes + at + 1))] |
		 wide[place(four_at(bytes + at + 2))] | wide[place(four_at(bytes + at + 3))]))
		at += 4;
	return at;
}

/*
 * The first position in [at, limit) where there may be something; at least limit for none. wide:
 * the table of a long stream, or NULL.
 */
static size_t next_trigger(const struct mask *mask, const uint8_t *wide,
			   const struct token_text *text, size_t at, size_t limit)
{
	const size_t end = limit < text->length ? limit : text->length;
	const char *bytes = text->bytes;

	while (at < limit && at + 3 <= text->length) {
		size_t stop;

		at = wide ? skip_wide(wide, bytes, at, end) : skip(mask->table, bytes, at, end);
		for (stop = at + 4; at < stop && at < limit && at + 3 <= text->length; at++)
			if (may_be(mask, three_at(bytes + at)))
				return at;
	}
	return at > limit ? at : limit;
}

/* A known value whose anchor is at `at`: the one that reaches farthest. */
static bool value_at(const struct mask *mask, const struct token_text *text, size_t at,
		     struct found *ret_found)
{
	bool is_found = false;

	for (size_t i = 0; i < mask->form_count; i++) {
		const struct mask_form *form = &mask->forms[i];
		size_t start = at - form->anchor;

		if (!(text->is_json ? form->in_json : form->in_text) || at < form->anchor ||
		    text->length - start < form->length ||
		    three_at(text->bytes + at) != three_at(form->bytes + form->anchor) ||
		    memcmp(text->bytes + start, form->bytes, form->length) != 0)
			continue;
		if (is_found && start + form->length <= ret_found->end)
			continue;
		is_found = true;
		*ret_found = (struct found){ .start = start,
					     .end = start + form->length,
					     .kind = mask->values[form->value].kind,
					     .value = &mask->values[form->value] };
	}
	return is_found;
}

static bool is_kind(const struct mask *mask, const char *kind, size_t length)
{
	for (size_t i = 0; i < mask->value_count; i++)
		if (strlen(mask->values[i].kind) == length &&
		    memcmp(mask->values[i].kind, kind, length) == 0)
			return true;
	return token_is_kind(kind, length);
}

/* A mark of ours: of a kind that there is, so that nothing can hide in it. */
static bool mark_at(const struct mask *mask, const struct token_text *text, size_t at,
		    struct found *ret_found)
{
	const size_t head = sizeof(MARK) - 1, tail = 1 + MASK_DIGEST_DIGITS + 1;
	const char *bytes = text->bytes + at, *colon;
	size_t left = text->length - at;

	if (left < head + 1 + tail || memcmp(bytes, MARK, head) != 0)
		return false;
	colon = memchr(bytes + head, ':',
		       left - head < sizeof(mask->values[0].kind) ? left - head :
								    sizeof(mask->values[0].kind));
	if (!colon || left - (size_t)(colon - bytes) < tail || colon[tail - 1] != ']' ||
	    !is_kind(mask, bytes + head, (size_t)(colon - bytes) - head))
		return false;
	for (size_t i = 1; i <= MASK_DIGEST_DIGITS; i++)
		if (!strchr("0123456789abcdef", colon[i]) || !colon[i])
			return false;
	*ret_found = (struct found){ .start = at,
				     .end = at + (size_t)(colon - bytes) + tail,
				     .is_mark = true };
	return true;
}

/* Both go; what is digested is the one that has the other in it. */
static void join(struct found *found, const struct found *other)
{
	bool is_within = other->start >= found->start && other->end <= found->end;

	/* of two that say the same the first one's kind tells more */
	if (is_within && other->start == found->start && other->end == found->end && !other->value)
		return;
	if (other->start <= found->start && other->end >= found->end) {
		*found = *other;
		return;
	}
	found->value = is_within ? found->value : NULL;
	found->start = other->start < found->start ? other->start : found->start;
	found->end = other->end > found->end ? other->end : found->end;
}

/*
 * A token may lie in a known value or reach into one, and what told of it may stand well before it
 * (https://ghp_...:x@host), with other secrets in between: all go as one.
 */
static void widen(const struct mask *mask, const struct token_text *text, size_t from,
		  struct found *found)
{
	struct found value;
	struct token_hit hit;

	for (size_t at = from; at < found->end && at + 3 <= text->length; at++) {
		if (!may_be(mask, three_at(text->bytes + at)))
			continue;
		if (value_at(mask, text, at, &value))
			join(found, &value);
		if (at > from && at < found->start && token_at(text, at, &hit))
			join(found, &(struct found){
					    .start = hit.start, .end = hit.end, .kind = hit.kind });
	}
}

/* A value that has what looks like a mark in it is no less a value. */
static void leave_mark(const struct mask *mask, const struct token_text *text, struct found *found)
{
	struct found value;

	for (size_t at = found->start; mask->form_count && at < found->end; at++)
		if (at + 3 <= text->length && may_be(mask, three_at(text->bytes + at)) &&
		    value_at(mask, text, at, &value) &&
		    (value.start < found->start || value.end > found->end)) {
			*found = value;
			return;
		}
}

static bool found_at(const struct mask *mask, const struct token_text *text, size_t at,
		     struct found *ret_found)
{
	struct token_hit hit;

	if (mark_at(mask, text, at, ret_found)) {
		leave_mark(mask, text, ret_found);
		return true;
	}
	if (token_at(text, at, &hit)) {
		*ret_found = (struct found){ .start = hit.start, .end = hit.end, .kind = hit.kind };
		widen(mask, text, at, ret_found);
		return true;
	}
	return value_at(mask, text, at, ret_found);
}

/* ---- where it stands in JSON ---- */

/* Goes on to `target`; true where that is between two units of a string's content. */
static bool walk_to(const struct token_text *text, struct walk *walk, size_t target)
{
	while (walk->at < target) {
		unsigned char byte = (unsigned char)text->bytes[walk->at];

		if (!walk->is_inside) {
			const char *quote = memchr(text->bytes + walk->at, '"', target - walk->at);

			walk->at = quote ? (size_t)(quote - text->bytes) + 1 : target;
			walk->is_inside = quote != NULL;
		} else if (byte == '\\') {
			walk->at += walk->at + 1 < text->length &&
						    text->bytes[walk->at + 1] == 'u' ?
					    6 :
					    2;
		} else {
			walk->is_inside = byte != '"';
			walk->at++;
		}
	}
	return walk->is_inside && walk->at == target;
}

/* Within one string, no escape cut. The walk goes to its start, and no farther. */
static bool is_content(const struct token_text *text, struct walk *walk, const struct found *found)
{
	struct walk rest;

	if (!walk_to(text, walk, found->start))
		return false;
	for (rest = *walk; rest.at < found->end;)
		if (!walk_to(text, &rest, rest.at + 1) && !rest.is_inside)
			return false;
	return rest.at == found->end;
}

/* Its string is the name of a member, and the value is a word as our own names are. */
static bool is_own_word(const struct token_text *text, const struct walk *walk,
			const struct found *found)
{
	struct walk end = *walk;

	for (size_t i = 0; i < found->value->length; i++)
		if (found->value->bytes[i] != '_' &&
		    (found->value->bytes[i] < 'a' || found->value->bytes[i] > 'z'))
			return false;
	while (end.is_inside && end.at < text->length && end.at - walk->at < MEMBER_LONGEST)
		(void)walk_to(text, &end, end.at + 1);
	return !end.is_inside && end.at < text->length && text->bytes[end.at] == ':';
}

/* ---- replacing ---- */

/* The bytes that a part of a JSON string stands for. */
static void digest_json(const struct token_text *text, const struct found *found,
			struct sha256 *hash)
{
	size_t at = found->start;

	while (at < found->end) {
		uint32_t value, low;
		unsigned char bytes[4];
		size_t step = token_unit(text, at, &value), count = 0;

		if (!step)
			return;
		at += step;
		if (step == 1 || value < 0x80) {
			bytes[count++] = (unsigned char)value;
		} else if (value >= 0xdc00 && value <= 0xdcff) {
			bytes[count++] = (unsigned char)(value - 0xdc00); /* no UTF-8 */
		} else if (value >= 0xd800 && value < 0xdc00 && token_unit(text, at, &low) == 6) {
			at += 6;
			value = 0x10000 + ((value - 0xd800) << 10 | ((low - 0xdc00) & 0x3ff));
			bytes[count++] = (unsigned char)(0xf0 | value >> 18);
			bytes[count++] = (unsigned char)(0x80 | (value >> 12 & 0x3f));
			bytes[count++] = (unsigned char)(0x80 | (value >> 6 & 0x3f));
			bytes[count++] = (unsigned char)(0x80 | (value & 0x3f));
		} else {
			if (value >= 0x800) {
				bytes[count++] = (unsigned char)(0xe0 | value >> 12);
				bytes[count++] = (unsigned char)(0x80 | (value >> 6 & 0x3f));
			} else {
				bytes[count++] = (unsigned char)(0xc0 | value >> 6);
			}
			bytes[count++] = (unsigned char)(0x80 | (value & 0x3f));
		}
		sha256_update(hash, bytes, count);
	}
}

#define MARK_BYTES (sizeof(MARK) + MASK_NAME_BYTES + 4 + 1 + MASK_DIGEST_DIGITS + 1)

static size_t make_mark(const struct mask *mask, const struct token_text *text,
			const struct found *found, char mark[static MARK_BYTES])
{
	unsigned char digest[SHA256_BYTES];
	char digits[SHA256_HEX_BYTES];
	size_t length = sizeof(MARK) - 1, kind = strlen(found->kind);
	struct sha256 hash;

	hmac_begin(&mask->key, &hash);
	if (found->value)
		sha256_update(&hash, found->value->bytes, found->value->length);
	else if (text->is_json)
		digest_json(text, found, &hash);
	else
		sha256_update(&hash, text->bytes + found->start, found->end - found->start);
	hmac_end(&mask->key, &hash, digest);
	sha256_hex(digest, digits);
	memcpy(mark, MARK, length);
	memcpy(mark + length, found->kind, kind);
	length += kind;
	mark[length++] = ':';
	memcpy(mark + length, digits, MASK_DIGEST_DIGITS);
	length += MASK_DIGEST_DIGITS;
	mark[length++] = ']';
	return length;
}

size_t mask_buffer(const struct mask *mask, struct buffer *buffer, size_t from)
{
	struct token_text text = { buffer->data, buffer->length, true };
	struct buffer CLEANUP_BUFFER out = { 0 };
	struct walk behind = { .at = from }; /* whatever is found from now on begins later */
	size_t floor = from, count = 0;
	struct found found;

	buffer->failed |= !mask->is_begun;
	if (buffer->failed || !text.bytes || from > text.length)
		return 0;
	for (size_t at = from;
	     (at = next_trigger(mask, NULL, &text, at, text.length)) < text.length;) {
		char mark[MARK_BYTES];
		struct walk walk;

		if (!found_at(mask, &text, at, &found) || found.end <= floor) {
			at++;
			continue;
		}
		found.start = found.start < floor ? floor : found.start;
		if (at > from + 2 * ANCHOR_LONGEST)
			(void)walk_to(&text, &behind, at - 2 * ANCHOR_LONGEST);
		walk = behind;
		if (!is_content(&text, &walk, &found) ||
		    (found.value && is_own_word(&text, &walk, &found))) {
			at++;
			continue;
		}
		at = found.end;
		if (found.is_mark)
			continue;
		buffer_append(&out, text.bytes + floor, found.start - floor);
		buffer_append(&out, mark, make_mark(mask, &text, &found, mark));
		floor = found.end;
		count++;
	}
	if (count) {
		buffer_append(&out, text.bytes + floor, text.length - floor);
		buffer->length = from;
		buffer->failed |= out.failed;
		if (!out.failed)
			buffer_append(buffer, out.data, out.length);
	}
	return count;
}

int mask_stream_begin(struct mask_stream *stream, const struct mask *mask,
		      int (*take)(void *context, const void *bytes, size_t length), void *context)
{
	if (!mask->is_begun)
		return -EINVAL;
	*stream = (struct mask_stream){ .mask = mask, .take = take, .context = context };
	return 0;
}

static int give(struct mask_stream *stream, size_t end)
{
	int result = 0;

	if (end > stream->given)
		result = stream->take(stream->context, stream->held.data + stream->given,
				      end - stream->given);
	if (result == 0 && end > stream->given)
		stream->given = end;
	return result;
}

static int replace(struct mask_stream *stream, const struct token_text *text, struct found *found)
{
	char mark[MARK_BYTES];
	int result;

	if (found->is_mark)
		return 0;
	found->start = found->start < stream->given ? stream->given : found->start;
	result = give(stream, found->start);
	stream->count++;
	if (result == 0)
		result = stream->take(stream->context, mark,
				      make_mark(stream->mask, text, found, mark));
	stream->given = found->end;
	return result;
}

/* Looks at all before `limit`, hands on what is done, and drops what nobody needs any more. */
static int look(struct mask_stream *stream, size_t limit)
{
	const size_t back = TOKEN_REACH_BACK + ANCHOR_LONGEST;
	struct buffer *held = &stream->held;
	struct token_text text = { held->data, held->length, false };
	size_t at = stream->looked;
	int result = 0;

	while (result == 0 &&
	       (at = next_trigger(stream->mask, stream->wide, &text, at, limit)) < limit) {
		struct found found;

		if (!found_at(stream->mask, &text, at, &found) || found.end <= stream->given) {
			at++;
			continue;
		}
		result = replace(stream, &text, &found);
		at = found.end;
	}
	stream->looked = at;
	if (result == 0 && at > ANCHOR_LONGEST)
		result = give(stream, at - ANCHOR_LONGEST);
	if (result == 0 && at > back) {
		size_t drop = at - back;

		memmove(held->data, held->data + drop, held->length - drop);
		held->length -= drop;
		stream->looked -= drop;
		stream->given -= drop;
	}
	return result;
}

/* For a long stream; one without is slower. */
static void widen_table(struct mask_stream *stream)
{
	const uint32_t *table = stream->mask->table;

	stream->wide = malloc(1u << MASK_TABLE_BITS);
	for (size_t i = 0; stream->wide && i < 1u << MASK_TABLE_BITS; i++)
		stream->wide[i] = table[i / 32] >> i % 32 & 1;
}

int mask_stream_feed(struct mask_stream *stream, const void *bytes, size_t length)
{
	const char *from = bytes;
	int result = 0;

	if (length >= SLICE_BYTES && !stream->wide)
		widen_table(stream);

	while (result == 0 && length) {
		size_t part = length < SLICE_BYTES ? length : SLICE_BYTES;

		buffer_append(&stream->held, from, part);
		if (stream->held.failed)
			return -ENOMEM;
		from += part;
		length -= part;
		if (stream->held.length > stream->looked + MASK_REACH_BYTES)
			result = look(stream, stream->held.length - MASK_REACH_BYTES);
	}
	return result;
}

int mask_stream_finish(struct mask_stream *stream)
{
	int result = look(stream, stream->held.length);

	return result == 0 ? give(stream, stream->held.length) : result;
}

void mask_stream_free(struct mask_stream *stream)
{
	buffer_free(&stream->held);
	free(stream->wide);
	*stream = (struct mask_stream){ 0 };
}
