/* Values behind names that tell of a secret: `password=`, headers, options as arguments. */
#include "trace/token_internal.h"

#include <string.h>
#include <strings.h>

#define NAME(text)                     \
	{                              \
		text, sizeof(text) - 1 \
	}

/*
 * Names whose value is secret, as the end of what stands before `=` or `:`. Each ends in one of
 * the pairs of letters that token_name_triggers makes triggers of.
 */
static const struct name {
	const char *text; /* ends in a letter */
	uint8_t length;
} names[] = {
	NAME("password"),   NAME("passwd"),	 NAME("passphrase"),	 NAME("secret"),
	NAME("token"),	    NAME("apikey"),	 NAME("api_key"),	 NAME("api-key"),
	NAME("access_key"), NAME("access-key"),	 NAME("accesskey"),	 NAME("secret_key"),
	NAME("secret-key"), NAME("secretkey"),	 NAME("private_key"),	 NAME("private-key"),
	NAME("auth_key"),   NAME("auth-key"),	 NAME("authkey"),	 NAME("account_key"),
	NAME("accountkey"), NAME("signing_key"), NAME("encryption_key"),
};

#define NAME_COUNT (sizeof(names) / sizeof(names[0]))
#define NAME_REACH 64

/* A value behind a name: longer ones are cut there. */
#define VALUE_LONGEST 4096

/* What is judged by its look is a word: a file of one letter repeated must not cost its square. */
#define WORD_LONGEST 256

/* Last two letters of the names above and of some headers, with what may follow. */
const char *const token_name_triggers[] = {
	"rd=",	"RD=",	"rd:",	"RD:",	"rd\"", "RD\"", "rd'", "RD'",  "rd\\", "RD\\",
	"wd=",	"WD=",	"wd:",	"WD:",	"wd\"", "WD\"", "wd'", "WD'",  "wd\\", "WD\\",
	"se=",	"SE=",	"se:",	"SE:",	"se\"", "SE\"", "se'", "SE'",  "se\\", "SE\\",
	"et=",	"ET=",	"et:",	"ET:",	"et\"", "ET\"", "et'", "ET'",  "et\\", "ET\\",
	"en=",	"EN=",	"en:",	"EN:",	"en\"", "EN\"", "en'", "EN'",  "en\\", "EN\\",
	"ey=",	"EY=",	"ey:",	"EY:",	"ey\"", "EY\"", "ey'", "EY'",  "ey\\", "EY\\",
	"on:",	"ON:",	"on\"", "ON\"", "on'",	"on\\", "ie:", "IE:",  "ie\"", "ie'",
	"-u\"", "er\"", "th=",	"TH=",	"th:",	"th\"", "th'", "th\\",
};

const size_t token_name_trigger_count =
	sizeof(token_name_triggers) / sizeof(token_name_triggers[0]);

static bool is_letter(unsigned char byte, char lower)
{
	return (byte | 0x20) == (unsigned char)lower;
}

/* Most are told apart by their last letter. */
static bool says_name(const struct token_text *text, size_t at, const struct name *name)
{
	return at <= text->length && text->length - at >= name->length &&
	       is_letter((unsigned char)text->bytes[at + name->length - 1],
			 name->text[name->length - 1]) &&
	       strncasecmp(text->bytes + at, name->text, name->length) == 0;
}

/* ---- values ---- */

/* What stands for a value and is none. */
bool token_is_placeholder(const struct token_text *text, size_t from, size_t to)
{
	static const char *const words[] = { "none",  "null",	   "nil",      "true",
					     "false", "undefined", "string",   "str",
					     "bytes", "int",	   "bool",     "self",
					     "this",  "required",  "optional", "redacted" };

	if (byte_at(text, from) && strchr("$<{%*[(", byte_at(text, from)))
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (to - from == strlen(words[i]) && says_caseless(text, from, words[i]))
			return true;
	for (size_t i = 0; i < NAME_COUNT; i++)
		if (to - from == names[i].length && says_name(text, from, &names[i]))
			return true;
	return false;
}

static bool has_name(const struct token_text *text, size_t from, size_t to)
{
	for (; from < to; from++)
		for (size_t i = 0; i < NAME_COUNT; i++)
			if (to - from >= names[i].length && says_name(text, from, &names[i]))
				return true;
	return false;
}

/* Nobody writes these as a word of a language, natural or not. */
static bool looks_random(const struct token_text *text, size_t from, size_t to)
{
	struct look look =
		token_look(text, from, to < from + WORD_LONGEST ? to : from + WORD_LONGEST);

	return to - from >= 7 && look.digits && look.uppers + look.lowers &&
	       (look.longest >= 7 || (look.uppers && look.lowers && to - from >= 10)) &&
	       !has_name(text, from, to < from + WORD_LONGEST ? to : from + WORD_LONGEST);
}

static bool ends_value(uint32_t value, uint32_t quote)
{
	if (quote)
		return value == quote || value < ' ';
	return value <= ' ' || value == 0x7f ||
	       (value < 0x80 && strchr("\"'`&;,)]}<>|", (int)value));
}

/* From `at` on, behind a quote or without; ret_quote is what it was quoted in, or 0. */
size_t token_value_end(const struct token_text *text, size_t at, uint32_t quote)
{
	size_t end = at, step;
	uint32_t value;

	while (end - at < VALUE_LONGEST && (step = token_unit(text, end, &value)) &&
	       !ends_value(value, quote))
		end += step;
	return end;
}

/* The rest of an argument: all of it is the value, whatever it is made of. */
static bool take_rest(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	uint32_t value;
	size_t end = at, step;

	while (end - at < VALUE_LONGEST && (step = token_unit(text, end, &value)))
		end += step;
	if (end - at < 3 || token_is_placeholder(text, at, end))
		return false;
	if (token_begins_form(text, at, ret_hit) && ret_hit->end == end)
		return true;
	return hit(ret_hit, at, end, token_kinds[KIND_PASSWORD]);
}

/* `name=value` as an argument has it: almost everything is a value. */
static bool take_value(const struct token_text *text, size_t at, bool is_loose,
		       struct token_hit *ret_hit)
{
	uint32_t value = 0;
	size_t step = token_unit(text, at, &value), end;

	if (step && is_quote(value))
		at += step;
	end = token_value_end(text, at, step && is_quote(value) ? value : 0);
	if (end - at < 3 || token_is_placeholder(text, at, end) || byte_at(text, at) == '(')
		return false;
	/* its own form tells more than the name */
	if (token_begins_form(text, at, ret_hit) || token_match_jwt(text, at, ret_hit) ||
	    token_match_pem(text, at + 5, ret_hit))
		return true;
	/* a call, an index, a member of something: the source of a program */
	if (memchr(text->bytes + at, '(', end - at) || memchr(text->bytes + at, '[', end - at))
		is_loose = false;
	if (!is_loose && !looks_random(text, at, end))
		return false;
	return hit(ret_hit, at, end, token_kinds[KIND_PASSWORD]);
}

/* Behind "Authorization:" or its kin: a scheme and what it is about (RFC 7235). */
static bool take_authorization(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	static const char *const schemes[] = { "bearer ", "basic ", "token ", "apikey ",
					       "negotiate " };
	struct look look;
	size_t end;

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (says_caseless(text, at, schemes[i])) {
			at += strlen(schemes[i]);
			break;
		}
	end = run(text, at, TOKEN68, LONGEST);
	look = token_look(text, at, end);
	return end - at >= 8 && token_has(&look, A_FIGURE) &&
	       hit(ret_hit, at, end, token_kinds[KIND_AUTHORIZATION]);
}

static bool take_cookie(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	size_t end = at, step;
	uint32_t value;
	bool is_named = false;

	while (end - at < VALUE_LONGEST && (step = token_unit(text, end, &value)) && value >= ' ' &&
	       value != '"' && value != '\'') {
		is_named |= value == '=';
		end += step;
	}
	return is_named && end - at >= 8 && byte_at(text, at) != '[' &&
	       hit(ret_hit, at, end, token_kinds[KIND_COOKIE]);
}

/* curl -u name:password, as two arguments of a record. */
static bool take_user(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	size_t back = at < TOKEN_REACH_BACK ? at : TOKEN_REACH_BACK, end, colon;

	if (!memmem(text->bytes + at - back, back, "curl", 4))
		return false;
	end = token_value_end(text, at, '\n');
	for (colon = at; colon < end && text->bytes[colon] != ':';)
		colon++;
	return end - colon > 3 && !token_is_placeholder(text, colon + 1, end) &&
	       hit(ret_hit, colon + 1, end, token_kinds[KIND_PASSWORD]);
}

/* Behind a name, at `at`: what makes the next thing its value. Returns where it begins, or 0. */
static size_t behind_sign(const struct token_text *text, size_t at, bool *ret_is_loose)
{
	uint32_t value = 0;
	size_t step = token_unit(text, at, &value);

	*ret_is_loose = false;
	if (step && value == '=') {
		*ret_is_loose = text->is_json;
		return at + step;
	}
	/* in JSON a quote that is no escape: the end of an argument, or of a name */
	if (!step && text->is_json && byte_at(text, at) == '"') {
		*ret_is_loose = true;
		return says(text, at, "\":\"") || says(text, at, "\",\"") ? at + 3 : 0;
	}
	at = step && is_quote(value) ? at + step : at;
	at = token_skip(text, at, " \t", 2);
	step = token_unit(text, at, &value);
	if (!step || (value != ':' && value != '='))
		return 0;
	at = token_skip(text, at + step, ">", 1);
	return token_skip(text, at, " \t", 4);
}

static bool ends_in(const struct token_text *text, size_t from, size_t to, struct name name)
{
	return to - from >= name.length && says_name(text, to - name.length, &name);
}

/* What stands before `at` is a name; the trigger was its last two letters. */
bool token_match_name(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	size_t end = at + 2, start = end;
	bool is_loose, is_option, is_pair;

	while (start && end - start < NAME_REACH && is_of(text, start - 1, WORD | DASH))
		start--;
	is_option = byte_at(text, start) == '-';
	is_pair = text->is_json && says(text, end, "\",\"");
	if (is_pair && (ends_in(text, start, end, (struct name)NAME("--user")) ||
			(end - start == 2 && is_option)))
		return take_user(text, end + 3, ret_hit);
	/* two arguments: only behind an option is the second one a value */
	if (is_pair && !is_option)
		return false;
	if (ends_in(text, start, end, (struct name)NAME("authorization"))) {
		at = behind_sign(text, end, &is_loose);
		at = at ? token_skip(text, at, "\"'", 1) : 0;
		return at && take_authorization(text, at, ret_hit);
	}
	if (ends_in(text, start, end, (struct name)NAME("cookie"))) {
		at = behind_sign(text, end, &is_loose);
		at = at ? token_skip(text, at, "\"'", 1) : 0;
		return at && take_cookie(text, at, ret_hit);
	}
	/* "auth" of docker's, `_auth` of npm's */
	if (ends_in(text, start, end, (struct name)NAME("auth"))) {
		at = behind_sign(text, end, &is_loose);
		at = at ? token_skip(text, at, "\"'", 1) : 0;
		return at && token_match_encoded(text, at, ret_hit);
	}
	for (size_t i = 0; i < NAME_COUNT; i++) {
		if (!ends_in(text, start, end, names[i]))
			continue;
		/* --name=value, the argument whole */
		if (text->is_json && is_option && start && byte_at(text, start - 1) == '"' &&
		    byte_at(text, end) == '=' && (start < 2 || byte_at(text, start - 2) != '\\'))
			return take_rest(text, end + 1, ret_hit);
		at = behind_sign(text, end, &is_loose);
		return at && take_value(text, at, is_loose, ret_hit);
	}
	return false;
}
