#include "trace/token.h"

#include "trace/token_internal.h"

#include <string.h>

enum special {
	SPECIAL_JWT,
	SPECIAL_PEM,
	SPECIAL_URL,
	SPECIAL_BEARER,
	SPECIAL_BASIC,
	SPECIAL_AWS_LOWER,
	SPECIAL_AWS_UPPER,
	SPECIAL_AWS_CAMEL,
	SPECIAL_NETRC,
	SPECIAL_COUNT
};

static const char *const special_trigger[SPECIAL_COUNT] = {
	[SPECIAL_JWT] = "eyJ",	     [SPECIAL_PEM] = "BEG",	  [SPECIAL_URL] = "://",
	[SPECIAL_BEARER] = "rer",    [SPECIAL_BASIC] = "sic",	  [SPECIAL_AWS_LOWER] = "t_a",
	[SPECIAL_AWS_UPPER] = "T_A", [SPECIAL_AWS_CAMEL] = "tAc", [SPECIAL_NETRC] = "ogi",
};

const char *const token_kinds[] = { "jwt",	  "private-key", "url-password", "authorization",
				    "aws-secret", "password",	 "cookie" };

const char *token_trigger(size_t index)
{
	if (index < token_form_count)
		return token_forms[index].prefix + token_forms[index].trigger;
	index -= token_form_count;
	if (index < SPECIAL_COUNT)
		return special_trigger[index];
	index -= SPECIAL_COUNT;
	if (index < token_name_trigger_count)
		return token_name_triggers[index];
	index -= token_name_trigger_count;
	return index < token_option_trigger_count ? token_option_triggers[index] : NULL;
}

static bool is_kind(const char *known, const char *kind, size_t length)
{
	return strlen(known) == length && memcmp(known, kind, length) == 0;
}

bool token_is_kind(const char *kind, size_t length)
{
	for (size_t i = 0; i < token_form_count; i++)
		if (is_kind(token_forms[i].kind, kind, length))
			return true;
	for (size_t i = 0; i < sizeof(token_kinds) / sizeof(token_kinds[0]); i++)
		if (is_kind(token_kinds[i], kind, length))
			return true;
	return false;
}

static bool same(const char *bytes, const char *trigger)
{
	return bytes[0] == trigger[0] && bytes[1] == trigger[1] && bytes[2] == trigger[2];
}

bool token_at(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	static bool (*const matches[SPECIAL_COUNT])(const struct token_text *, size_t,
						    struct token_hit *) = {
		[SPECIAL_JWT] = token_match_jwt,       [SPECIAL_PEM] = token_match_pem,
		[SPECIAL_URL] = token_match_url,       [SPECIAL_BEARER] = token_match_bearer,
		[SPECIAL_AWS_LOWER] = token_match_aws, [SPECIAL_AWS_UPPER] = token_match_aws,
		[SPECIAL_AWS_CAMEL] = token_match_aws, [SPECIAL_BASIC] = token_match_basic,
		[SPECIAL_NETRC] = token_match_netrc,
	};
	const char *bytes = text->bytes + at;

	switch (bytes[2]) {
	case '=':
	case ':':
	case '"':
	case '\'':
	case '\\':
		return token_match_name(text, at, ret_hit);
	default:
		break;
	}
	for (size_t i = 0; i < SPECIAL_COUNT; i++)
		if (same(bytes, special_trigger[i]))
			return matches[i](text, at, ret_hit);
	for (size_t i = 0; bytes[1] == '-' && i < token_option_trigger_count; i++)
		if (same(bytes, token_option_triggers[i]))
			return token_match_option(text, at + (bytes[0] != '-'), ret_hit);
	return token_match_forms(text, at, ret_hit);
}
