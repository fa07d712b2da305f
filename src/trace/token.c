#include "trace/token.h"

#include <string.h>
#include <strings.h>

/* Classes of bytes. */
enum {
	DIGIT = 1,
	UPPER = 2,
	LOWER = 4,
	UNDERLINE = 8,
	DASH = 16,
	DOT = 32,
	BASE64 = 64, /* + / = */
	TILDE = 128,
	ALNUM = DIGIT | UPPER | LOWER,
	WORD = ALNUM | UNDERLINE,
	DASHED = WORD | DASH,
	DOTTED = DASHED | DOT,
	TOKEN68 = DOTTED | BASE64 | TILDE, /* RFC 7235 */
};

static const uint8_t classes[256] = {
	['0' ... '9'] = DIGIT, ['A' ... 'Z'] = UPPER, ['a' ... 'z'] = LOWER, ['_'] = UNDERLINE,
	['-'] = DASH,	       ['.'] = DOT,	      ['+'] = BASE64,	     ['/'] = BASE64,
	['='] = BASE64,	       ['~'] = TILDE,
};

/* What the bytes behind a prefix must have. */
enum {
	A_DIGIT = 1,
	BOTH_CASES = 2,
	A_LONG_PART = 4, /* 20 letters and digits in a row */
	A_FIGURE = 8,	 /* a digit or both cases */
};

/*
 * Lengths are of what stands behind the prefix. Its trigger is where it has its rarest three bytes:
 * "sk_" is in every "task_id".
 */
struct form {
	const char *prefix;
	const char *kind;
	uint16_t shortest, longest;
	uint8_t class, needs, trigger;
};

#define LONGEST 4096

/*
 * Services and the forms of their tokens, as their documentation gives them or as secret scanners
 * (GitHub's, gitleaks) know them.
 */
static const struct form forms[] = {
	{ "ghp_", "github", 36, 255, WORD, 0, 0 },
	{ "gho_", "github", 36, 255, WORD, 0, 0 },
	{ "ghu_", "github", 36, 255, WORD, 0, 0 },
	{ "ghs_", "github", 36, LONGEST, DOTTED, 0, 0 },
	{ "ghr_", "github", 36, 255, WORD, 0, 0 },
	{ "github_pat_", "github", 40, 255, WORD, 0, 0 },
	{ "glpat-", "gitlab", 20, 300, DOTTED, 0, 0 },
	{ "gldt-", "gitlab", 20, 300, DOTTED, A_FIGURE, 0 },
	{ "glrt-", "gitlab", 20, 300, DOTTED, A_FIGURE, 0 },
	{ "glcbt-", "gitlab", 20, 300, DOTTED, A_FIGURE, 0 },
	{ "glptt-", "gitlab", 20, 300, DOTTED, A_FIGURE, 0 },
	{ "glft-", "gitlab", 20, 300, DOTTED, A_FIGURE, 0 },
	{ "glsoat-", "gitlab", 20, 300, DOTTED, A_FIGURE, 0 },
	{ "glagent-", "gitlab", 20, 300, DOTTED, A_FIGURE, 0 },
	{ "AKIA", "aws-key-id", 16, 16, UPPER | DIGIT, 0, 0 },
	{ "ASIA", "aws-key-id", 16, 16, UPPER | DIGIT, 0, 0 },
	{ "AIza", "google", 35, 35, DASHED, A_FIGURE, 0 },
	{ "ya29.", "google", 30, 2048, DASHED, A_FIGURE, 0 },
	{ "GOCSPX-", "google", 28, 28, DASHED, 0, 0 },
	{ "xoxa-", "slack", 20, 512, ALNUM | DASH, A_DIGIT, 0 },
	{ "xoxb-", "slack", 20, 512, ALNUM | DASH, A_DIGIT, 0 },
	{ "xoxc-", "slack", 20, 512, ALNUM | DASH, A_DIGIT, 0 },
	{ "xoxd-", "slack", 20, 1024, TOKEN68, A_DIGIT, 0 },
	{ "xoxe-", "slack", 20, 512, ALNUM | DASH, A_DIGIT, 0 },
	{ "xoxo-", "slack", 20, 512, ALNUM | DASH, A_DIGIT, 0 },
	{ "xoxp-", "slack", 20, 512, ALNUM | DASH, A_DIGIT, 0 },
	{ "xoxr-", "slack", 20, 512, ALNUM | DASH, A_DIGIT, 0 },
	{ "xoxs-", "slack", 20, 512, ALNUM | DASH, A_DIGIT, 0 },
	{ "xapp-", "slack", 20, 512, ALNUM | DASH, A_DIGIT, 0 },
	{ "hooks.slack.com/services/T", "slack", 20, 255, ALNUM | BASE64, A_FIGURE, 0 },
	{ "sk_live_", "stripe", 16, 255, ALNUM, 0, 1 },
	{ "rk_live_", "stripe", 16, 255, ALNUM, 0, 1 },
	{ "sk_test_", "stripe", 16, 255, ALNUM, A_FIGURE, 1 },
	{ "rk_test_", "stripe", 16, 255, ALNUM, A_FIGURE, 1 },
	{ "whsec_", "stripe", 24, 255, ALNUM | BASE64, A_FIGURE, 0 },
	{ "sk-ant-", "anthropic", 24, 512, DASHED, A_FIGURE, 0 },
	{ "sk-", "openai", 32, 512, DASHED, A_DIGIT | A_LONG_PART, 0 },
	{ "xai-", "xai", 60, 255, ALNUM, A_FIGURE, 0 },
	{ "gsk_", "groq", 40, 255, ALNUM, A_FIGURE, 0 },
	{ "npm_", "npm", 36, 36, ALNUM, 0, 0 },
	{ "pypi-Ag", "pypi", 48, 1024, DASHED, 0, 0 },
	{ "hf_", "huggingface", 30, 64, ALNUM, BOTH_CASES, 0 },
	{ "dop_v1_", "digitalocean", 64, 64, LOWER | DIGIT, 0, 0 },
	{ "dckr_pat_", "docker", 20, 255, DASHED, A_FIGURE, 0 },
	{ "shpat_", "shopify", 32, 32, ALNUM, A_DIGIT, 0 },
	{ "hvs.", "vault", 24, 512, DASHED, A_FIGURE, 0 },
	{ "SG.", "sendgrid", 60, 80, DOTTED, A_FIGURE, 0 },
	{ "tskey-", "tailscale", 20, 255, ALNUM | DASH, A_FIGURE, 0 },
	{ "ATATT3xFf", "atlassian", 60, 512, DASHED | BASE64, 0, 0 },
	{ "AGE-SECRET-KEY-1", "age", 58, 58, UPPER | DIGIT, 0, 0 },
};

#define FORM_COUNT (sizeof(forms) / sizeof(forms[0]))

#define NAME(text)                     \
	{                              \
		text, sizeof(text) - 1 \
	}

/*
 * Names whose value is secret, as the end of what stands before `=` or `:`. Each ends in one of
 * the pairs of letters that name_trigger makes triggers of.
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
static const char *const name_trigger[] = {
	"rd=",	"RD=",	"rd:",	"RD:",	"rd\"", "RD\"", "rd'",	"RD'",	"rd\\", "RD\\", "wd=",
	"WD=",	"wd:",	"WD:",	"wd\"", "WD\"", "wd'",	"WD'",	"wd\\", "WD\\", "se=",	"SE=",
	"se:",	"SE:",	"se\"", "SE\"", "se'",	"SE'",	"se\\", "SE\\", "et=",	"ET=",	"et:",
	"ET:",	"et\"", "ET\"", "et'",	"ET'",	"et\\", "ET\\", "en=",	"EN=",	"en:",	"EN:",
	"en\"", "EN\"", "en'",	"EN'",	"en\\", "EN\\", "ey=",	"EY=",	"ey:",	"EY:",	"ey\"",
	"EY\"", "ey'",	"EY'",	"ey\\", "EY\\", "on:",	"ON:",	"on\"", "ON\"", "on'",	"on\\",
	"ie:",	"IE:",	"ie\"", "ie'",	"-u\"", "er\"",
};

#define NAME_TRIGGER_COUNT (sizeof(name_trigger) / sizeof(name_trigger[0]))

/*
 * Options of programs whose value is a password in clear, by their manuals. A program's name is how
 * its word begins: mysqldump takes what mysql does.
 */
enum {
	HAS_USER = 1,  /* name:SECRET */
	IS_JOINED = 2, /* -pSECRET, --user=name:SECRET */
	IS_APART = 4,  /* -p SECRET */
};

static const struct secret_option {
	const char *program, *option;
	unsigned form;
} secret_options[] = {
	{ "curl", "-u", HAS_USER | IS_JOINED | IS_APART },
	{ "curl", "-U", HAS_USER | IS_JOINED | IS_APART },
	{ "curl", "--user", HAS_USER | IS_JOINED | IS_APART },
	{ "curl", "--proxy-user", HAS_USER | IS_JOINED | IS_APART },
	{ "mysql", "-p", IS_JOINED },
	{ "mariadb", "-p", IS_JOINED },
	{ "sshpass", "-p", IS_JOINED | IS_APART },
	{ "mongo", "-p", IS_JOINED | IS_APART },
	{ "redis-cli", "-a", IS_APART },
	{ "ldap", "-w", IS_JOINED | IS_APART },
};

/* How they stand in a text, and in an argument of a record. */
static const char *const option_trigger[] = {
	" -u", "\"-u", " -U", "\"-U", "--u", "--p", " -p", "\"-p", " -a", "\"-a", " -w", "\"-w",
};

#define OPTION_TRIGGER_COUNT (sizeof(option_trigger) / sizeof(option_trigger[0]))

enum special {
	SPECIAL_JWT,
	SPECIAL_PEM,
	SPECIAL_URL,
	SPECIAL_BEARER,
	SPECIAL_BASIC,
	SPECIAL_AWS_LOWER,
	SPECIAL_AWS_UPPER,
	SPECIAL_AWS_CAMEL,
	SPECIAL_COUNT
};

static const char *const special_trigger[SPECIAL_COUNT] = {
	[SPECIAL_JWT] = "eyJ",	     [SPECIAL_PEM] = "BEG",	  [SPECIAL_URL] = "://",
	[SPECIAL_BEARER] = "rer",    [SPECIAL_BASIC] = "sic",	  [SPECIAL_AWS_LOWER] = "t_a",
	[SPECIAL_AWS_UPPER] = "T_A", [SPECIAL_AWS_CAMEL] = "tAc",
};

static const char *const other_kinds[] = { "jwt",	    "private-key", "url-password",
					   "authorization", "aws-secret",  "password",
					   "cookie" };

enum { KIND_JWT, KIND_KEY, KIND_URL, KIND_AUTHORIZATION, KIND_AWS, KIND_PASSWORD, KIND_COOKIE };

const char *token_trigger(size_t index)
{
	if (index < FORM_COUNT)
		return forms[index].prefix + forms[index].trigger;
	index -= FORM_COUNT;
	if (index < SPECIAL_COUNT)
		return special_trigger[index];
	index -= SPECIAL_COUNT;
	if (index < NAME_TRIGGER_COUNT)
		return name_trigger[index];
	index -= NAME_TRIGGER_COUNT;
	return index < OPTION_TRIGGER_COUNT ? option_trigger[index] : NULL;
}

static bool is_kind(const char *known, const char *kind, size_t length)
{
	return strlen(known) == length && memcmp(known, kind, length) == 0;
}

bool token_is_kind(const char *kind, size_t length)
{
	for (size_t i = 0; i < FORM_COUNT; i++)
		if (is_kind(forms[i].kind, kind, length))
			return true;
	for (size_t i = 0; i < sizeof(other_kinds) / sizeof(other_kinds[0]); i++)
		if (is_kind(other_kinds[i], kind, length))
			return true;
	return false;
}

/* ---- reading ---- */

static unsigned char byte_at(const struct token_text *text, size_t at)
{
	return at < text->length ? (unsigned char)text->bytes[at] : 0;
}

static bool is_of(const struct token_text *text, size_t at, unsigned class)
{
	return classes[byte_at(text, at)] & class;
}

static bool says(const struct token_text *text, size_t at, const char *word)
{
	size_t length = strlen(word);

	return at <= text->length && text->length - at >= length &&
	       memcmp(text->bytes + at, word, length) == 0;
}

static bool says_caseless(const struct token_text *text, size_t at, const char *word)
{
	size_t length = strlen(word);

	return at <= text->length && text->length - at >= length &&
	       strncasecmp(text->bytes + at, word, length) == 0;
}

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

/* Where the bytes of the class end, at most `limit` of them. */
static size_t run(const struct token_text *text, size_t at, unsigned class, size_t limit)
{
	size_t end = text->length - at < limit ? text->length : at + limit;

	while (at < end && (classes[(unsigned char)text->bytes[at]] & class))
		at++;
	return at;
}

static int hex_value(unsigned char digit)
{
	return digit >= '0' && digit <= '9' ? digit - '0' :
	       digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 :
	       digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 :
					      -1;
}

size_t token_unit(const struct token_text *text, size_t at, uint32_t *ret_value)
{
	static const char letters[] = "bfnrt\"\\/", values[] = "\b\f\n\r\t\"\\/";
	unsigned char byte = byte_at(text, at), next;
	const char *letter;
	uint32_t value = 0;

	*ret_value = byte;
	if (at >= text->length || (text->is_json && byte == '"'))
		return 0;
	if (!text->is_json || byte != '\\')
		return 1;
	next = byte_at(text, at + 1);
	letter = next ? strchr(letters, next) : NULL;
	if (letter) {
		*ret_value = (unsigned char)values[letter - letters];
		return 2;
	}
	if (next != 'u' || text->length - at < 6)
		return 0;
	for (size_t i = 2; i < 6; i++) {
		int digit = hex_value((unsigned char)text->bytes[at + i]);

		if (digit < 0)
			return 0;
		value = value << 4 | (uint32_t)digit;
	}
	*ret_value = value;
	return 6;
}

/* ESC [ ... m, which a terminal's colours end with; the escape may itself be escaped. */
static bool is_colour_before(const struct token_text *text, size_t at)
{
	size_t back = at - 1;

	if (text->bytes[back] != 'm')
		return false;
	for (size_t i = 0; i < 16 && back; i++) {
		back--;
		if (text->bytes[back] == '[')
			return (back >= 1 && text->bytes[back - 1] == 0x1b) ||
			       (back >= 4 && (memcmp(text->bytes + back - 4, "\\x1b", 4) == 0 ||
					      memcmp(text->bytes + back - 4, "\\033", 4) == 0)) ||
			       (back >= 6 && memcmp(text->bytes + back - 6, "\\u001b", 6) == 0);
		if (!is_of(text, back, DIGIT) && text->bytes[back] != ';')
			return false;
	}
	return false;
}

/* A letter or digit that belongs to an escape (\n, \u0009, %20) and not to a word. */
static bool is_escape_before(const struct token_text *text, size_t at)
{
	const char *bytes = text->bytes;

	if (at >= 2 && bytes[at - 2] == '\\' && strchr("abefnrtv0", bytes[at - 1]))
		return true;
	if (at >= 3 && bytes[at - 3] == '%')
		return hex_value((unsigned char)bytes[at - 1]) >= 0 &&
		       hex_value((unsigned char)bytes[at - 2]) >= 0;
	if (at < 6 || bytes[at - 6] != '\\' || bytes[at - 5] != 'u')
		return false;
	for (size_t i = at - 4; i < at; i++)
		if (hex_value((unsigned char)bytes[i]) < 0)
			return false;
	return true;
}

/* No token of the class begins in the middle of a word. */
static bool begins_word(const struct token_text *text, size_t at, unsigned class)
{
	if (!at || !(classes[(unsigned char)text->bytes[at - 1]] & (class | WORD)))
		return true;
	return is_escape_before(text, at) || is_colour_before(text, at);
}

/* What a part of the text is made of. */
struct look {
	size_t digits, uppers, lowers, longest; /* longest run of letters and digits */
};

static struct look look_at(const struct token_text *text, size_t from, size_t to)
{
	struct look look = { 0 };
	size_t row = 0;

	for (size_t i = from; i < to; i++) {
		unsigned class = classes[(unsigned char)text->bytes[i]];

		look.digits += (class & DIGIT) != 0;
		look.uppers += (class & UPPER) != 0;
		look.lowers += (class & LOWER) != 0;
		row = class & ALNUM ? row + 1 : 0;
		look.longest = row > look.longest ? row : look.longest;
	}
	return look;
}

static bool has(const struct look *look, unsigned needs)
{
	bool both = look->uppers && look->lowers;

	return (!(needs & A_DIGIT) || look->digits) && (!(needs & BOTH_CASES) || both) &&
	       (!(needs & A_FIGURE) || look->digits || both) &&
	       (!(needs & A_LONG_PART) || look->longest >= 20);
}

static bool hit(struct token_hit *ret_hit, size_t start, size_t end, const char *kind)
{
	*ret_hit = (struct token_hit){ start, end, kind };
	return true;
}

/* ---- forms ---- */

static bool match_form(const struct token_text *text, size_t at, const struct form *form,
		       struct token_hit *ret_hit)
{
	size_t start = at + strlen(form->prefix), end;
	struct look look;

	if (!says(text, at, form->prefix) || !begins_word(text, at, form->class & DASHED))
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
	look = look_at(text, start, end);
	return has(&look, form->needs) && hit(ret_hit, at, end, form->kind);
}

/* Those whose trigger is at `at`. */
static bool match_forms(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	const char *bytes = text->bytes + at;

	for (size_t i = 0; i < FORM_COUNT; i++) {
		const char *trigger = forms[i].prefix + forms[i].trigger;

		if (bytes[0] == trigger[0] && bytes[1] == trigger[1] && bytes[2] == trigger[2] &&
		    at >= forms[i].trigger &&
		    match_form(text, at - forms[i].trigger, &forms[i], ret_hit))
			return true;
	}
	return false;
}

/* One of them begins at `at`, which may be near the text's end. */
static bool begins_form(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	for (size_t i = 0; i < FORM_COUNT; i++)
		if (byte_at(text, at) == (unsigned char)forms[i].prefix[0] &&
		    match_form(text, at, &forms[i], ret_hit))
			return true;
	return false;
}

/* Three parts of base64url, the first two of them JSON objects (RFC 7519). */
static bool match_jwt(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	size_t end = at;

	if (!says(text, at, "eyJ") || !begins_word(text, at, DASHED))
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
	return hit(ret_hit, at, end, other_kinds[KIND_JWT]);
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
static bool match_pem(const struct token_text *text, size_t at, struct token_hit *ret_hit)
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
	return letters >= PEM_SHORTEST && hit(ret_hit, start, last, other_kinds[KIND_KEY]);
}

/* ---- values ---- */

/* What stands for a value and is none. */
static bool is_placeholder(const struct token_text *text, size_t from, size_t to)
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
	struct look look = look_at(text, from, to < from + WORD_LONGEST ? to : from + WORD_LONGEST);

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
static size_t value_end(const struct token_text *text, size_t at, uint32_t quote)
{
	size_t end = at, step;
	uint32_t value;

	while (end - at < VALUE_LONGEST && (step = token_unit(text, end, &value)) &&
	       !ends_value(value, quote))
		end += step;
	return end;
}

static bool is_quote(uint32_t value)
{
	return value == '"' || value == '\'' || value == '`';
}

/* Skips what may stand between a name, its sign and a value; at most `limit` units. */
static size_t skip(const struct token_text *text, size_t at, const char *of, unsigned limit)
{
	uint32_t value;
	size_t step;

	while (limit-- && (step = token_unit(text, at, &value)) && value && value < 0x80 &&
	       strchr(of, (int)value))
		at += step;
	return at;
}

/* The rest of an argument: all of it is the value, whatever it is made of. */
static bool take_rest(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	uint32_t value;
	size_t end = at, step;

	while (end - at < VALUE_LONGEST && (step = token_unit(text, end, &value)))
		end += step;
	if (end - at < 3 || is_placeholder(text, at, end))
		return false;
	if (begins_form(text, at, ret_hit) && ret_hit->end == end)
		return true;
	return hit(ret_hit, at, end, other_kinds[KIND_PASSWORD]);
}

/* `name=value` as an argument has it: almost everything is a value. */
static bool take_value(const struct token_text *text, size_t at, bool is_loose,
		       struct token_hit *ret_hit)
{
	uint32_t value = 0;
	size_t step = token_unit(text, at, &value), end;

	if (step && is_quote(value))
		at += step;
	end = value_end(text, at, step && is_quote(value) ? value : 0);
	if (end - at < 3 || is_placeholder(text, at, end) || byte_at(text, at) == '(')
		return false;
	/* its own form tells more than the name */
	if (begins_form(text, at, ret_hit) || match_jwt(text, at, ret_hit) ||
	    match_pem(text, at + 5, ret_hit))
		return true;
	/* a call, an index, a member of something: the source of a program */
	if (memchr(text->bytes + at, '(', end - at) || memchr(text->bytes + at, '[', end - at))
		is_loose = false;
	if (!is_loose && !looks_random(text, at, end))
		return false;
	return hit(ret_hit, at, end, other_kinds[KIND_PASSWORD]);
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
	look = look_at(text, at, end);
	return end - at >= 8 && has(&look, A_FIGURE) &&
	       hit(ret_hit, at, end, other_kinds[KIND_AUTHORIZATION]);
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
	       hit(ret_hit, at, end, other_kinds[KIND_COOKIE]);
}

/* curl -u name:password, as two arguments of a record. */
static bool take_user(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	size_t back = at < TOKEN_REACH_BACK ? at : TOKEN_REACH_BACK, end, colon;

	if (!memmem(text->bytes + at - back, back, "curl", 4))
		return false;
	end = value_end(text, at, '\n');
	for (colon = at; colon < end && text->bytes[colon] != ':';)
		colon++;
	return end - colon > 3 && !is_placeholder(text, colon + 1, end) &&
	       hit(ret_hit, colon + 1, end, other_kinds[KIND_PASSWORD]);
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
	at = skip(text, at, " \t", 2);
	step = token_unit(text, at, &value);
	if (!step || (value != ':' && value != '='))
		return 0;
	at = skip(text, at + step, ">", 1);
	return skip(text, at, " \t", 4);
}

static bool ends_in(const struct token_text *text, size_t from, size_t to, struct name name)
{
	return to - from >= name.length && says_name(text, to - name.length, &name);
}

/* What stands before `at` is a name; the trigger was its last two letters. */
static bool match_name(const struct token_text *text, size_t at, struct token_hit *ret_hit)
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
		at = at ? skip(text, at, "\"'", 1) : 0;
		return at && take_authorization(text, at, ret_hit);
	}
	if (ends_in(text, start, end, (struct name)NAME("cookie"))) {
		at = behind_sign(text, end, &is_loose);
		at = at ? skip(text, at, "\"'", 1) : 0;
		return at && take_cookie(text, at, ret_hit);
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

/* ---- options of programs ---- */

/* A command ends there, in a shell's text: what stands before it is another one. */
static bool ends_command(const struct token_text *text, size_t at)
{
	return byte_at(text, at) == ';' || byte_at(text, at) == '\n' || says(text, at, "\\n") ||
	       says(text, at, "| ") || says(text, at, "&& ");
}

/* The word of a program stands before `at`, and the same command goes on from there. */
static bool is_command_of(const struct token_text *text, size_t at, const char *program)
{
	size_t limit = at > TOKEN_REACH_BACK ? at - TOKEN_REACH_BACK : 0;

	/* most are of other programs */
	if (!memmem(text->bytes + limit, at - limit, program, strlen(program)))
		return false;
	while (at-- > limit) {
		if (ends_command(text, at))
			return false;
		if (says(text, at, program) && begins_word(text, at, DASHED))
			return true;
	}
	return false;
}

/* The secret in what stands from `at` to `end`; of name:SECRET the name stays to be read. */
static bool take_secret(const struct token_text *text, size_t at, size_t end, unsigned form,
			struct token_hit *ret_hit)
{
	while ((form & HAS_USER) && at < end && text->bytes[at] != ':')
		at++;
	at += (form & HAS_USER) != 0;
	return end > at + 2 && !is_placeholder(text, at, end) &&
	       hit(ret_hit, at, end, other_kinds[KIND_PASSWORD]);
}

/* Where the value of an option begins that ends at `at`; 0: none, or none of that form. */
static size_t option_value(const struct token_text *text, size_t at,
			   const struct secret_option *option, bool *ret_is_whole)
{
	bool is_long = option->option[1] == '-';

	*ret_is_whole = text->is_json && says(text, at, "\",\"");
	if (*ret_is_whole)
		return option->form & IS_APART ? at + 3 : 0;
	if (byte_at(text, at) == ' ')
		return option->form & IS_APART ? skip(text, at, " ", 4) : 0;
	if (!(option->form & IS_JOINED) || (is_long && byte_at(text, at) != '='))
		return 0;
	return at + (byte_at(text, at) == '=');
}

/* Behind the quote before a word, which may be quoted itself; ret_quote: it, or 0. */
static size_t unquote(const struct token_text *text, size_t at, uint32_t *ret_quote)
{
	uint32_t value = 0;
	size_t step = token_unit(text, at, &value);

	*ret_quote = 0;
	if (step && value == '\\') {
		at += step;
		step = token_unit(text, at, &value);
	}
	if (!step || !is_quote(value))
		return at;
	*ret_quote = value;
	return at + step;
}

static bool match_option(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	bool is_argument = text->is_json && at && byte_at(text, at - 1) == '"' &&
			   (at < 2 || byte_at(text, at - 2) != '\\');

	for (size_t i = 0; i < sizeof(secret_options) / sizeof(secret_options[0]); i++) {
		const struct secret_option *option = &secret_options[i];
		uint32_t quote = '\n';
		bool is_whole;
		size_t from;

		if (!says(text, at, option->option) || !is_command_of(text, at, option->program))
			continue;
		from = option_value(text, at + strlen(option->option), option, &is_whole);
		if (!from)
			continue;
		/* an argument of a record is the value whole; in a shell's text it is a word */
		if (!is_whole && !is_argument)
			from = unquote(text, from, &quote);
		if (take_secret(text, from, value_end(text, from, quote), option->form, ret_hit))
			return true;
	}
	return false;
}

/* Behind the word of a scheme: where its credentials begin, here or in the next argument. */
static size_t behind_scheme(const struct token_text *text, size_t at)
{
	if (byte_at(text, at) == ' ')
		return at + 1;
	return text->is_json && says(text, at, "\",\"") ? at + 3 : 0;
}

static int base64_value(unsigned char digit)
{
	return classes[digit] & UPPER ? digit - 'A' :
	       classes[digit] & LOWER ? digit - 'a' + 26 :
	       classes[digit] & DIGIT ? digit - '0' + 52 :
	       digit == '+'	      ? 62 :
	       digit == '/'	      ? 63 :
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

static bool match_basic(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	size_t end;

	if (at < 2 || !says_caseless(text, at - 2, "basic"))
		return false;
	at = behind_scheme(text, at + 3);
	end = at ? run(text, at, ALNUM | BASE64, LONGEST) : 0;
	return at && end - at >= 8 && is_user_and_password(text, at, end) &&
	       hit(ret_hit, at, end, other_kinds[KIND_AUTHORIZATION]);
}

static bool match_bearer(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	struct look look;
	size_t end;

	if (at < 3 || !says_caseless(text, at - 3, "bearer"))
		return false;
	at = behind_scheme(text, at + 3);
	if (!at)
		return false;
	end = run(text, at, TOKEN68, LONGEST);
	look = look_at(text, at, end);
	return end - at >= 20 && has(&look, A_DIGIT) && look.longest >= 16 &&
	       hit(ret_hit, at, end, other_kinds[KIND_AUTHORIZATION]);
}

#define AUTHORITY_LONGEST 512

/*
 * scheme://user:password@host (RFC 3986, 3.2.1): the password, up to the last @ of the authority.
 */
static bool match_url(const struct token_text *text, size_t at, struct token_hit *ret_hit)
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
	if (!colon || sign < colon + 3 || is_placeholder(text, colon + 1, sign))
		return false;
	/* something must be the host */
	return is_of(text, sign + 1, ALNUM) || byte_at(text, sign + 1) == '[' ?
		       hit(ret_hit, colon + 1, sign, other_kinds[KIND_URL]) :
		       false;
}

/* The secret access key beside its name: 40 digits of base64, exactly. */
static bool match_aws(const struct token_text *text, size_t at, struct token_hit *ret_hit)
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
		at = skip(text, end, " \t\"'=:>", 8);
	end = run(text, at, ALNUM | BASE64, 41);
	return at > 0 && end - at == 40 && hit(ret_hit, at, end, other_kinds[KIND_AWS]);
}

static bool same(const char *bytes, const char *trigger)
{
	return bytes[0] == trigger[0] && bytes[1] == trigger[1] && bytes[2] == trigger[2];
}

bool token_at(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	static bool (*const matches[SPECIAL_COUNT])(const struct token_text *, size_t,
						    struct token_hit *) = {
		[SPECIAL_JWT] = match_jwt,	 [SPECIAL_PEM] = match_pem,
		[SPECIAL_URL] = match_url,	 [SPECIAL_BEARER] = match_bearer,
		[SPECIAL_AWS_LOWER] = match_aws, [SPECIAL_AWS_UPPER] = match_aws,
		[SPECIAL_AWS_CAMEL] = match_aws, [SPECIAL_BASIC] = match_basic,
	};
	const char *bytes = text->bytes + at;

	switch (bytes[2]) {
	case '=':
	case ':':
	case '"':
	case '\'':
	case '\\':
		return match_name(text, at, ret_hit);
	default:
		break;
	}
	for (size_t i = 0; i < SPECIAL_COUNT; i++)
		if (same(bytes, special_trigger[i]))
			return matches[i](text, at, ret_hit);
	for (size_t i = 0; bytes[1] == '-' && i < OPTION_TRIGGER_COUNT; i++)
		if (same(bytes, option_trigger[i]))
			return match_option(text, at + (bytes[0] != '-'), ret_hit);
	return match_forms(text, at, ret_hit);
}
