/* Tokens that begin with a prefix of their service, JSON web tokens, and private keys. */
#include "trace/token_internal.h"

#include <string.h>

const struct form token_forms[] = {
#define FORM(prefix, kind, shortest, longest, class, needs, trigger) \
	{ prefix, kind, shortest, longest, class, needs, trigger, 0, 0, 0 },
#define INNER(prefix, kind, shortest, longest, class, needs, trigger, before_shortest, \
	      before_longest, before_class)                                            \
	{ prefix, kind,	   shortest,	    longest,	    class,                     \
	  needs,  trigger, before_shortest, before_longest, before_class },
#include "trace/token_form.def"
#undef FORM
#undef INNER
};

const size_t token_form_count = sizeof(token_forms) / sizeof(token_forms[0]);

/* ---- forms ---- */

/* Where a token begins whose known part is at `at`. False: it does not. */
static bool find_begin(const struct token_text *text, size_t at, const struct form *form,
		       size_t *ret_begin)
{
	size_t count = 0;

	*ret_begin = at;
	if (!form->before_longest)
		return token_begins_word(text, at, form->class & DASHED);
	while (count < form->before_longest && count < at &&
	       is_of(text, at - count - 1, form->before_class))
		count++;
	for (; count >= form->before_shortest; count--) {
		*ret_begin = at - count;
		if (*ret_begin == 0 || !is_of(text, *ret_begin - 1, form->before_class) ||
		    token_is_escape_before(text, *ret_begin))
			return true;
	}
	return false;
}

static bool match_form(const struct token_text *text, size_t at, const struct form *form,
		       struct token_hit *ret_hit)
{
	size_t start = at + strlen(form->prefix), begin, end;
	struct look look;

	if (!says(text, at, form->prefix) || !find_begin(text, at, form, &begin))
		return false;
	end = run(text, start, form->class, form->longest + 1u);
	/* exactly so long, or none of these */
	if (form->shortest == form->longest && end - start != form->shortest)
		return false;
	if (end - start > form->longest)
		end = start + form->longest;
	/* a sentence's end */
	while (end > start && is_of(text, end - 1, DOT))
		end--;
	if (end - start < form->shortest)
		return false;
	look = token_look(text, start, end);
	return token_has(&look, form->needs) && hit(ret_hit, begin, end, form->kind);
}

/* Those whose trigger is at `at`. */
bool token_match_forms(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	const char *bytes = text->bytes + at;

	for (size_t i = 0; i < token_form_count; i++) {
		const char *trigger = token_forms[i].prefix + token_forms[i].trigger;

		if (bytes[0] == trigger[0] && bytes[1] == trigger[1] && bytes[2] == trigger[2] &&
		    at >= token_forms[i].trigger &&
		    match_form(text, at - token_forms[i].trigger, &token_forms[i], ret_hit))
			return true;
	}
	return false;
}

/* One of them begins at `at`, which may be near the text's end. */
bool token_begins_form(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	for (size_t i = 0; i < token_form_count; i++)
		if (!token_forms[i].before_longest &&
		    byte_at(text, at) == (unsigned char)token_forms[i].prefix[0] &&
		    match_form(text, at, &token_forms[i], ret_hit))
			return true;
	return false;
}

/* Three parts of base64url, the first two of them JSON objects (RFC 7519). */
bool token_match_jwt(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	size_t end = at;

	if (!says(text, at, "eyJ") || !token_begins_word(text, at, DASHED))
		return false;
	for (unsigned part = 0; part < 3; part++) {
		size_t start = end + (part > 0);

		if (part && byte_at(text, end) != '.')
			return false;
		if (part == 1 && !says(text, start, "ey"))
			return false;
		end = run(text, start, DASHED, LONGEST);
		if (end - start < 10)
			return false;
	}
	return hit(ret_hit, at, end, token_kinds[KIND_JWT]);
}

#define PEM_LONGEST (16u * 1024)
#define PEM_SHORTEST 40

/* The line break behind a PEM header: real, escaped, or escaped twice. 0: none. */
static size_t line_break(const struct token_text *text, size_t at)
{
	static const char *const breaks[] = {
		"\r\n", "\n", "\\r\\n", "\\n", "\\\\r\\\\n", "\\\\n"
	};

	for (size_t i = 0; i < sizeof(breaks) / sizeof(breaks[0]); i++)
		if (says(text, at, breaks[i]))
			return strlen(breaks[i]);
	return 0;
}

/* Behind the dashes of "-----END ... KEY-----", or `at` where that is something else. */
static size_t pem_end(const struct token_text *text, size_t at)
{
	size_t end = at + 9;

	while (end - at < 60 && (is_of(text, end, UPPER | DIGIT) || byte_at(text, end) == ' '))
		end++;
	return says(text, end, "-----") ? end + 5 : at;
}

static bool is_pem_body(const struct token_text *text, size_t at)
{
	unsigned char byte = byte_at(text, at);

	return is_of(text, at, ALNUM | BASE64 | DASH) || (byte && strchr(" \t:,>|", byte));
}

/*
 * "-----BEGIN ... PRIVATE KEY-----" and what follows, to its END or as far as it is one (RFC
 * 7468).
 */
bool token_match_pem(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	size_t start = at - 5, name = at + 6, end = name, last, letters = 0;

	if (at < 5 || !says(text, start, "-----BEGIN "))
		return false;
	while (end - name < 40 && (is_of(text, end, UPPER | DIGIT) || byte_at(text, end) == ' '))
		end++;
	if (!says(text, end, "-----") || end - name < 11 ||
	    !(says(text, end - 11, "PRIVATE KEY") ||
	      (end - name >= 17 && says(text, end - 17, "PRIVATE KEY BLOCK"))))
		return false;
	end += 5;
	if (!line_break(text, end))
		return false;
	last = end;
	while (end - start < PEM_LONGEST && end < text->length) {
		size_t step = line_break(text, end);

		if (!step && says(text, end, "-----END ")) {
			last = pem_end(text, end);
			break;
		}
		if (!step && is_pem_body(text, end)) {
			letters += is_of(text, end, ALNUM);
			step = 1;
			last = end + 1;
		}
		if (!step)
			break;
		end += step;
	}
	return letters >= PEM_SHORTEST && hit(ret_hit, start, last, token_kinds[KIND_KEY]);
}
