/* Credentials by their place: behind a scheme's word, in a URL, beside the name of a key of AWS. */
#include "trace/token_internal.h"

#include <string.h>

/* Between the words of a .netrc, which people indent. */
#define NETRC_BLANKS 64
#define WORD_LONGEST 256

/* Behind the word of a scheme: where its credentials begin, here or in the next argument. */
static size_t behind_scheme(const struct token_text *text, size_t at)
{
	if (byte_at(text, at) == ' ')
		return at + 1;
	return text->is_json && says(text, at, "\",\"") ? at + 3 : 0;
}

static int base64_value(unsigned char digit)
{
	return token_classes[digit] & UPPER ? digit - 'A' :
	       token_classes[digit] & LOWER ? digit - 'a' + 26 :
	       token_classes[digit] & DIGIT ? digit - '0' + 52 :
	       digit == '+'		    ? 62 :
	       digit == '/'		    ? 63 :
					      -1;
}

/* Base64 of name:password (RFC 7617), and not a word behind the word "basic". */
static bool is_user_and_password(const struct token_text *text, size_t at, size_t end)
{
	uint32_t bits = 0;
	bool has_colon = false;

	for (size_t i = at; i < end && byte_at(text, i) != '='; i++) {
		unsigned count = (unsigned)(i - at) % 4;
		int value = base64_value(byte_at(text, i));
		unsigned char byte;

		if (value < 0)
			return false;
		bits = bits << 6 | (uint32_t)value;
		if (!count)
			continue;
		byte = (unsigned char)(bits >> (6 - 2 * count));
		if (byte < ' ' || byte == 0x7f)
			return false;
		has_colon |= byte == ':';
	}
	return has_colon;
}

bool token_match_encoded(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	size_t end = run(text, at, ALNUM | BASE64, LONGEST);

	return end - at >= 8 && is_user_and_password(text, at, end) &&
	       hit(ret_hit, at, end, token_kinds[KIND_AUTHORIZATION]);
}

bool token_match_basic(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	if (at < 2 || !says_caseless(text, at - 2, "basic"))
		return false;
	at = behind_scheme(text, at + 3);
	return at && token_match_encoded(text, at, ret_hit);
}

/* Past blanks and line breaks, at least one of them; 0: there is none. */
static size_t behind_space(const struct token_text *text, size_t at)
{
	size_t end = at, step;
	uint32_t value;

	while (end - at < NETRC_BLANKS && (step = token_unit(text, end, &value)) &&
	       (value == ' ' || value == '\t' || value == '\n' || value == '\r'))
		end += step;
	return end > at ? end : 0;
}

static size_t word_end(const struct token_text *text, size_t at)
{
	size_t end = at, step;
	uint32_t value;

	while (end - at < WORD_LONGEST && (step = token_unit(text, end, &value)) && value > ' ' &&
	       value != '"' && value != '\'')
		end += step;
	return end;
}

/* `machine HOST login NAME password SECRET` of a .netrc, on one line or several; at: in "login". */
bool token_match_netrc(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	size_t back = at < TOKEN_REACH_BACK ? at : TOKEN_REACH_BACK, end;

	if (at < 1 || !says(text, at - 1, "login") ||
	    !(memmem(text->bytes + at - back, back, "machine", 7) ||
	      memmem(text->bytes + at - back, back, "default", 7)))
		return false;
	at = behind_space(text, at + 4);
	at = at ? behind_space(text, word_end(text, at)) : 0;
	if (!at || !says(text, at, "password"))
		return false;
	at = behind_space(text, at + 8);
	end = at ? word_end(text, at) : 0;
	return end - at >= 3 && !token_is_placeholder(text, at, end) &&
	       hit(ret_hit, at, end, token_kinds[KIND_PASSWORD]);
}

bool token_match_bearer(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	struct look look;
	size_t end;

	if (at < 3 || !says_caseless(text, at - 3, "bearer"))
		return false;
	at = behind_scheme(text, at + 3);
	if (!at)
		return false;
	end = run(text, at, TOKEN68, LONGEST);
	look = token_look(text, at, end);
	return end - at >= 20 && token_has(&look, A_DIGIT) && look.longest >= 16 &&
	       hit(ret_hit, at, end, token_kinds[KIND_AUTHORIZATION]);
}

#define AUTHORITY_LONGEST 512

/*
 * scheme://user:password@host (RFC 3986, 3.2.1): the password, up to the last @ of the authority.
 */
bool token_match_url(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	size_t start = at + 3, colon = 0, sign = 0, end = start, step;
	uint32_t value;

	/* a bracket: an address of IPv6, or a mark */
	if (!at || !is_of(text, at - 1, ALNUM) || byte_at(text, start) == '[')
		return false;
	while (end - start < AUTHORITY_LONGEST && (step = token_unit(text, end, &value))) {
		if (value <= ' ' || value == 0x7f ||
		    (value < 0x80 && strchr("/?#\"'<>`\\", (int)value)))
			break;
		/* what is masked is no credential */
		if (value == '[' && says(text, end, "[masked:"))
			break;
		if (value == ':' && !colon)
			colon = end;
		if (value == '@')
			sign = end;
		end += step;
	}
	if (!colon || sign < colon + 3 || token_is_placeholder(text, colon + 1, sign))
		return false;
	/* something must be the host */
	return is_of(text, sign + 1, ALNUM) || byte_at(text, sign + 1) == '[' ?
		       hit(ret_hit, colon + 1, sign, token_kinds[KIND_URL]) :
		       false;
}

/* The secret access key beside its name: 40 digits of base64, exactly. */
bool token_match_aws(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	static const char *const spelled[] = { "secret_access_key", "SECRET_ACCESS_KEY",
					       "SecretAccessKey", "secretAccessKey" };
	size_t end = 0;

	for (size_t i = 0; i < sizeof(spelled) / sizeof(spelled[0]); i++)
		if (at >= 5 && says(text, at - 5, spelled[i]))
			end = at - 5 + strlen(spelled[i]);
	if (!end)
		return false;
	/* two arguments, or a name and its value, in a record */
	if (text->is_json && (says(text, end, "\",\"") || says(text, end, "\":\"")))
		at = end + 3;
	else
		at = token_skip(text, end, " \t\"'=:>", 8);
	end = run(text, at, ALNUM | BASE64, 41);
	return at > 0 && end - at == 40 && hit(ret_hit, at, end, token_kinds[KIND_AWS]);
}
