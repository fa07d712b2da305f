/* What is public of a signature, as text: pure. */
#include "trace/sign.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char line_begin[] = "bawn-head-v1 ";

static const char pem_begin[] = "-----BEGIN PUBLIC KEY-----\n";
static const char pem_end[] = "\n-----END PUBLIC KEY-----\n";
/* SubjectPublicKeyInfo of RFC 8410 up to the key. */
static const unsigned char prefix[12] = { 0x30, 0x2a, 0x30, 0x05, 0x06, 0x03,
					  0x2b, 0x65, 0x70, 0x03, 0x21, 0x00 };
#define DER_BYTES (sizeof(prefix) + SIGN_PUBLIC_BYTES)
#define BASE64_BYTES ((DER_BYTES + 2) / 3 * 4)

static void put_hex(const unsigned char *bytes, size_t length, char *ret_text)
{
	for (size_t i = 0; i < length; i++)
		(void)snprintf(ret_text + 2 * i, 3, "%02x", bytes[i]);
}

void sign_line(const struct sign_claim *claim, char ret_line[static SIGN_LINE_BYTES])
{
	char public[2 * SIGN_PUBLIC_BYTES + 1], signature[2 * SIGN_SIGNATURE_BYTES + 1];

	put_hex(claim->public, SIGN_PUBLIC_BYTES, public);
	put_hex(claim->signature, SIGN_SIGNATURE_BYTES, signature);
	(void)snprintf(ret_line, SIGN_LINE_BYTES, "%s%s %" PRIu64 " %s %s %s", line_begin,
		       claim->installation, claim->seq, claim->hash, public, signature);
}

/* A text that is read from the left; the first that does not fit latches. */
struct reading {
	const char *at, *end;
	bool failed;
};

static int digit(char byte)
{
	return byte >= '0' && byte <= '9' ? byte - '0' :
	       byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 :
					    -1;
}

static const char *take(struct reading *reading, size_t length)
{
	const char *at = reading->at;

	if (reading->failed || (size_t)(reading->end - at) < length) {
		reading->failed = true;
		return NULL;
	}
	reading->at += length;
	return at;
}

static void expect(struct reading *reading, const char *text)
{
	const char *at = take(reading, strlen(text));

	if (at && memcmp(at, text, strlen(text)) != 0)
		reading->failed = true;
}

static void read_digits(struct reading *reading, char *ret_text, size_t length)
{
	const char *at = take(reading, length);

	for (size_t i = 0; at && i < length; i++) {
		if (digit(at[i]) < 0)
			reading->failed = true;
		ret_text[i] = at[i];
	}
	ret_text[length] = '\0';
}

static void read_bytes(struct reading *reading, unsigned char *ret_bytes, size_t length)
{
	const char *at = take(reading, 2 * length);

	for (size_t i = 0; at && i < length; i++) {
		int high = digit(at[2 * i]), low = digit(at[2 * i + 1]);

		if (high < 0 || low < 0) {
			reading->failed = true;
			return;
		}
		ret_bytes[i] = (unsigned char)(high << 4 | low);
	}
}

/* As it is printed: no sign, no zeros in front. */
static uint64_t read_number(struct reading *reading)
{
	const char *start = reading->at;
	uint64_t value = 0;

	while (!reading->failed && reading->at < reading->end && *reading->at >= '0' &&
	       *reading->at <= '9') {
		unsigned next = (unsigned)(*reading->at++ - '0');

		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, next, &value))
			reading->failed = true;
	}
	if (reading->at == start || (*start == '0' && reading->at - start > 1))
		reading->failed = true;
	return value;
}

int sign_line_read(const char *line, size_t length, struct sign_claim *ret_claim)
{
	struct reading reading = { line, line + length, false };
	struct sign_claim claim = { 0 };

	expect(&reading, line_begin);
	read_digits(&reading, claim.installation, SIGN_INSTALLATION_BYTES);
	expect(&reading, " ");
	claim.seq = read_number(&reading);
	expect(&reading, " ");
	read_digits(&reading, claim.hash, SIGN_HASH_BYTES);
	expect(&reading, " ");
	read_bytes(&reading, claim.public, SIGN_PUBLIC_BYTES);
	expect(&reading, " ");
	read_bytes(&reading, claim.signature, SIGN_SIGNATURE_BYTES);
	if (reading.failed || reading.at != reading.end)
		return -EBADMSG;
	*ret_claim = claim;
	return 0;
}

static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* RFC 4648; DER_BYTES leaves a rest of two bytes, so one "=". */
static void encode(const unsigned char der[static DER_BYTES], char ret_text[static BASE64_BYTES])
{
	unsigned char bytes[BASE64_BYTES / 4 * 3] = { 0 };

	memcpy(bytes, der, DER_BYTES);
	for (size_t i = 0; i < BASE64_BYTES; i++) {
		const unsigned char *three = bytes + i / 4 * 3;
		unsigned word = (unsigned)three[0] << 16 | (unsigned)three[1] << 8 | three[2];

		ret_text[i] = base64[word >> (18 - 6 * (i % 4)) & 63];
	}
	ret_text[BASE64_BYTES - 1] = '=';
}

void sign_pem(const unsigned char public[static SIGN_PUBLIC_BYTES],
	      char ret_pem[static SIGN_PEM_BYTES])
{
	unsigned char der[DER_BYTES];
	char *text = ret_pem + sizeof(pem_begin) - 1;

	_Static_assert(sizeof(pem_begin) + sizeof(pem_end) + BASE64_BYTES <= SIGN_PEM_BYTES,
		       "room for a key");
	memcpy(der, prefix, sizeof(prefix));
	memcpy(der + sizeof(prefix), public, SIGN_PUBLIC_BYTES);
	memcpy(ret_pem, pem_begin, sizeof(pem_begin) - 1);
	encode(der, text);
	memcpy(text + BASE64_BYTES, pem_end, sizeof(pem_end));
}

int sign_pem_read(const char *text, size_t length,
		  unsigned char ret_public[static SIGN_PUBLIC_BYTES])
{
	unsigned char der[BASE64_BYTES / 4 * 3] = { 0 };
	struct reading reading = { text, text + length, false };
	const char *at, *found;
	char again[SIGN_PEM_BYTES];

	expect(&reading, pem_begin);
	at = take(&reading, BASE64_BYTES);
	for (size_t i = 0; at && i < BASE64_BYTES - 1; i++) {
		found = at[i] ? strchr(base64, at[i]) : NULL;
		if (!found)
			return -EBADMSG;
		for (size_t bit = 0; bit < 6; bit++)
			if ((size_t)(found - base64) >> (5 - bit) & 1)
				der[(6 * i + bit) / 8] |=
					(unsigned char)(0x80 >> (6 * i + bit) % 8);
	}
	expect(&reading, "\n-----END PUBLIC KEY-----");
	if (reading.failed)
		return -EBADMSG;
	/* exactly what is written for this key, though its last newline may be missing */
	sign_pem(der + sizeof(prefix), again);
	if (length > strlen(again) || length + 1 < strlen(again) ||
	    memcmp(text, again, length) != 0)
		return -EBADMSG;
	memcpy(ret_public, der + sizeof(prefix), SIGN_PUBLIC_BYTES);
	return 0;
}
