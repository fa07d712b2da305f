/*
 * Secrets in records and streams. The tokens below are made up in the forms that the services
 * document; each is put together from two parts, so that no scanner takes this file for a leak.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/json.h"
#include "trace/mask.h"

#define HEX32 "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
#define A36 "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"

static const unsigned char key[MASK_KEY_BYTES] = "the key of one installation, 32b";

static void begin(struct mask *mask)
{
	*mask = MASK_NONE;
	mask_begin(mask, key);
}

/* The text as a record has it: an argument of a command line. */
static void record(const char *bytes, size_t length, struct buffer *buffer)
{
	struct json json;

	buffer->length = 0;
	json_begin(&json, buffer);
	json_object(&json, NULL);
	json_array(&json, "argv");
	json_string(&json, NULL, "sh");
	json_bytes(&json, NULL, bytes, length);
	json_array_end(&json);
	json_object_end(&json);
	assert_false(buffer->failed);
}

static int gather(void *context, const void *bytes, size_t length)
{
	buffer_append(context, bytes, length);
	return 0;
}

static uint64_t stream_in_chunks(const struct mask *mask, const char *bytes, size_t length,
				 size_t chunk, struct buffer *out)
{
	struct mask_stream CLEANUP_MASK_STREAM stream;
	uint64_t count;

	out->length = 0;
	buffer_text(out, "");
	assert_int_equal(mask_stream_begin(&stream, mask, gather, out), 0);
	while (length) {
		size_t part = chunk && chunk < length ? chunk : length;

		assert_int_equal(mask_stream_feed(&stream, bytes, part), 0);
		bytes += part;
		length -= part;
	}
	assert_int_equal(mask_stream_finish(&stream), 0);
	count = stream.count;
	return count;
}

/* A mark of this kind and nothing of the secret. */
static bool is_masked(const struct buffer *buffer, const char *kind, const char *secret)
{
	char mark[128];

	(void)snprintf(mark, sizeof(mark), "[masked:%s:", kind);
	return strstr(buffer->data, mark) && !(secret && strstr(buffer->data, secret));
}

struct row {
	const char *kind, *text;
	const char *secret; /* what must be gone */
};

static const struct row everywhere[] = {
	{ "password",
	  "machine h login u password hunter"
	  "2XyZ",
	  "hunter2" },
	{ "password",
	  "machine h\n\tlogin u\n\tpassword hunter"
	  "2XyZ\nmachine i",
	  "hunter2" },
	{ "authorization",
	  "{\"auths\": {\"r.example\": {\"auth\": \"dXNlcjpw"
	  "YXNzd29yZA==\"}}}",
	  "dXNlcj" },
	{ "authorization",
	  "//r.example/:_auth=dXNlcjpw"
	  "YXNzd29yZA==",
	  "dXNlcj" },
	{ "linear", "lin_api_" A36 "aB3d", "aB3dE5" },
	{ "notion",
	  "ntn_"
	  "1234567890" A36,
	  "kL1mN3" },
	{ "postman",
	  "PMAK-"
	  "0a1b2c3d4e5f60718293a4b5-" HEX32 "0a",
	  "a1b2c3" },
	{ "doppler", "x dp.pt." A36 "aB3dE5f", "aB3dE5" },
	{ "pulumi", "pul-" HEX32 "0a1b2c3d", "a1b2c3" },
	{ "grafana",
	  "glsa_"
	  "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY_0a1b2c3d",
	  "kL1mN3" },
	{ "newrelic",
	  "NRAK-"
	  "ABCDEFGHIJKLMNOPQRSTUVWXYZ1",
	  "ABCDEF" },
	{ "sentry", "sntryu_" HEX32 HEX32, "a1b2c3" },
	{ "terraform", "TF=abcdefghij1234.atlasv1." A36 A36, "abcdefghij" },
	{ "azure",
	  "secret is aB38Q~"
	  "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z",
	  "kL1mN3" },
	{ "telegram",
	  "https://api.telegram.org/bot123456789:AA"
	  "E5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5b/getMe",
	  "123456789" },
	{ "mailchimp", "mc " HEX32 "-us12", "a1b2c3" },
	{ "fly", "FlyV1 fm2_" A36 A36, "kL1mN3" },
	{ "planetscale", "pscale_pw_" A36, "kL1mN3" },
	{ "supabase", "sbp_" HEX32 "0a1b2c3d", "a1b2c3" },
	{ "netlify", "nfp_" A36, "kL1mN3" },
	{ "replicate", "r8_" A36 "x", "kL1mN3" },
	{ "perplexity", "pplx-" A36 "aB3dE5fG7hJ9", "kL1mN3" },
	{ "fireworks",
	  "fw_"
	  "3ZaB3dE5fG7hJ9kL1mN3pQ5r",
	  "kL1mN3" },
	{ "nvidia", "nvapi-" A36 "aB3dE5fG7hJ9-kL1mN3pQ5rS7tU9", "kL1mN3" },
	{ "langsmith", "lsv2_pt_" HEX32 "_0a1b2c3d4e", "a1b2c3" },
	{ "databricks", "dapi" HEX32 "-2", "a1b2c3" },
	{ "rubygems", "rubygems_" HEX32 "0a1b2c3d4e5f6071", "a1b2c3" },
	{ "crates",
	  "cio"
	  "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY",
	  "kL1mN3" },
	{ "square",
	  "sq0atp-"
	  "aB3dE5fG7hJ9kL1mN3pQ5r",
	  "kL1mN3" },
	{ "shopify", "shpss_" HEX32, "a1b2c3" },
	{ "google",
	  "1//0"
	  "gaB3dE5fG7hJ9-kL1mN3pQ5rS7tU9vW1xY3zA5aB3dE5",
	  "kL1mN3" },
	{ "aws-bedrock", "ABSK" A36 A36 A36 "=", "kL1mN3" },
	{ "digitalocean", "dor_v1_" HEX32 HEX32, "a1b2c3" },
	{ "dynatrace",
	  "dt0c01."
	  "ABCDEFGHIJKLMNOPQRSTUVWX."
	  "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	  "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
	  "ABCDEF" },
	{ "sonar", "squ_" HEX32 "0a1b2c3d", "a1b2c3" },
	{ "circleci", "CCIPAT_" A36 "_" HEX32, "kL1mN3" },
	{ "brevo", "xkeysib-" HEX32 HEX32 "-0a1b2c3d4e5f6071", "a1b2c3" },
	{ "tavily",
	  "tvly-"
	  "dev-" A36,
	  "kL1mN3" },
	{ "pinecone", "pcsk_" A36 A36, "kL1mN3" },
	{ "e2b", "e2b_" HEX32 "0a1b2c3d", "a1b2c3" },
	{ "onepassword",
	  "ops_"
	  "eyJ" A36 A36 A36 "==",
	  "kL1mN3" },
	{ "openshift", "oc login --token=x sha256~" A36 "aB3dE5f", "kL1mN3" },
	{ "discord",
	  "https://discord.com/api/webhooks/"
	  "123456789012345678/" A36 A36,
	  "kL1mN3" },
	{ "docker", "dckr_oat_" A36, "kL1mN3" },
	{ "atlassian", "ATCTT3xFf" A36 A36, "kL1mN3" },
	{ "github", "ghp_" A36, "ghp_" },
	{ "github", "export X=gho_" A36 "; true", "gho_" },
	{ "github",
	  "github_pat_"
	  "11ABCDEFG0123456789abc_" A36,
	  A36 },
	{ "github", "remote: https://ghs_" A36 "@github.com/a/b", A36 },
	{ "github", "line\nghp_" A36 "\nline", A36 },
	{ "github", "\x1b[1;32mghp_" A36 "\x1b[0m", A36 },
	{ "github", "q=a%20ghp_" A36, A36 },
	{ "github", "{\"log\":\"a\\nghp_" A36 "\"}", A36 },
	{ "gitlab",
	  "glpat-"
	  "x1Y2z3A4b5C6d7E8f9G0",
	  "x1Y2z3" },
	{ "aws-key-id",
	  "AKIA"
	  "IOSFODNN7EXAMPLE",
	  "IOSFODNN7" },
	{ "aws-secret",
	  "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/"
	  "bPxRfiCYEXAMPLEKEY",
	  "wJalr" },
	{ "aws-secret",
	  "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/"
	  "bPxRfiCYEXAMPLEKEY",
	  "wJalr" },
	{ "aws-secret",
	  "{ \"SecretAccessKey\": \"wJalrXUtnFEMI/K7MDENG/"
	  "bPxRfiCYEXAMPLEKEY\" }",
	  "wJalr" },
	{ "google",
	  "key=AIza"
	  "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
	  "SyA1b2" },
	{ "slack",
	  "xoxb-"
	  "123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx",
	  "AbCdEf" },
	{ "slack",
	  "https://hooks.slack.com/services/T"
	  "0A1B2C3D/B0A1B2C3D/a1B2c3D4e5F6g7H8",
	  "a1B2c3" },
	{ "stripe",
	  "sk_live_"
	  "4eC39HqLyjWDarjtT1zdp7dc",
	  "4eC39" },
	{ "stripe",
	  "rk_live_"
	  "4eC39HqLyjWDarjtT1zdp7dc",
	  "4eC39" },
	{ "anthropic",
	  "sk-ant-"
	  "api03-aB3dE5fG7hJ9-kL1mN3pQ5rS7tU9vW1xY3zA5",
	  "kL1mN3" },
	{ "openai",
	  "sk-"
	  "proj-aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5T3BlbkFJ",
	  "T3Blbk" },
	{ "openai",
	  "sk-"
	  "aB3dE5fG7hJ9kL1mN3pQT3BlbkFJ5rS7tU9vW1xY3zA5",
	  "T3Blbk" },
	{ "npm", "//registry.npmjs.org/:_authToken=npm_" A36, A36 },
	{ "pypi",
	  "pypi-"
	  "AgEIcHlwaS5vcmcCJDAwMDAwMDAwLTAwMDAtMDAwMC0wMDAwLTAwMDAwMDAwMDAw",
	  "EIcHl" },
	{ "huggingface",
	  "hf_"
	  "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH",
	  "aBcDeF" },
	{ "jwt",
	  "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0."
	  "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
	  "dozjgN" },
	{ "private-key",
	  "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAx0123456789abcdefghijklmnopq\n"
	  "rstuvwxyzABCDEF+/==\n-----END RSA PRIVATE KEY-----\nrest",
	  "MIIEow" },
	{ "private-key",
	  "{\"private_key\": \"-----BEGIN PRIVATE KEY-----\\nMIIEowIBAAKCAQEAx0123456789abcdefghi"
	  "jklmnopq\\nabc=\\n-----END PRIVATE KEY-----\\n\"}",
	  "MIIEow" },
	{ "private-key",
	  "-----BEGIN OPENSSH PRIVATE KEY-----\r\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\r\n",
	  "b3Blb" },
	{ "url-password",
	  "postgres://app:s3cr3t"
	  "pw@db.example:5432/x",
	  "s3cr3t" },
	{ "url-password",
	  "git clone https://x:p@ss"
	  "w0rd@host/x",
	  "w0rd" },
	{ "url-password",
	  "redis://:longpass"
	  "word@localhost",
	  "longpass" },
	{ "authorization",
	  "curl -H 'Authorization: Bearer abcDEF"
	  "123456' http://h",
	  "abcDEF" },
	{ "authorization",
	  "Authorization: Basic dXNlcjpw"
	  "YXNzd29yZA==",
	  "dXNlcj" },
	{ "authorization",
	  "{\"authorization\": \"Bearer abcDEF"
	  "1234567\"}",
	  "abcDEF" },
	{ "authorization",
	  "using bearer a1b2c3d4e5"
	  "f6a7b8c9d0e1f2 now",
	  "f6a7b8" },
	{ "password",
	  "mysql --password=hunter2"
	  "XyZ db",
	  "hunter2" },
	{ "password",
	  "DB_PASSWORD='q8#hunter2"
	  "XyZ'",
	  "hunter2" },
	{ "password",
	  "password: \"a1b2c3d4e5"
	  "f6\"",
	  "a1b2c3" },
	{ "password",
	  "https://h/?api_key=9f8e7d6c5b"
	  "4a3f2e1d&x=1",
	  "9f8e7d" },
	{ "password",
	  "X-Api-Key: 9f8e7d6c5b"
	  "4a3f2e1d",
	  "9f8e7d" },
	{ "cookie", "curl -H 'Cookie: session=a1b2c3d4' u", "a1b2c3" },
	{ "password", "curl -u me:hunter http://h", "hunter" },
	{ "password", "curl -fsS -ume:hunter http://h", "hunter" },
	{ "password", "/usr/bin/curl --user 'me:hun ter' http://h", "hun ter" },
	{ "password", "curl 'http://h/?a=1&b=2' --proxy-user me:hunter", "hunter" },
	{ "password", "mysql -u root -phunter db", "hunter" },
	{ "password", "mysqldump -h h -phunter db >x", "hunter" },
	{ "password", "sshpass -p hunter ssh h", "hunter" },
	{ "password", "redis-cli -h h -a hunter get k", "hunter" },
	{ "authorization",
	  "x: Basic dXNlcjpw"
	  "YXNz",
	  "dXNlcj" },
};

/* What only a record's arguments are taken for. */
static const struct row arguments[] = {
	{ "password", "--password=hunter", "hunter" },
	{ "password", "--token=abc", "abc" },
	{ "password", "sh -c \"PGPASSWORD=postgres psql\"", "postgres" },
	{ "password", "--password=a\"b", "a\"b" },
	{ "password", "sh -c \"curl -u \\\"me:hunter\\\" h\"", "hunter" },
};

static void check_rows(const struct row *rows, size_t count, bool in_stream)
{
	struct buffer CLEANUP_BUFFER buffer = { 0 }, CLEANUP_BUFFER again = { 0 };
	struct mask CLEANUP_MASK mask;
	int failed = 0;

	begin(&mask);
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(rows[i].text);

		record(rows[i].text, length, &buffer);
		if (!mask_buffer(&mask, &buffer, 0) ||
		    !is_masked(&buffer, rows[i].kind, rows[i].secret)) {
			print_error("# record of %s: %s\n", rows[i].text, buffer.data);
			failed++;
		}
		if (mask_buffer(&mask, &buffer, 0)) {
			print_error("# twice: %s\n", buffer.data);
			failed++;
		}
		if (!in_stream)
			continue;
		if (!stream_in_chunks(&mask, rows[i].text, length, 0, &buffer) ||
		    !is_masked(&buffer, rows[i].kind, rows[i].secret)) {
			print_error("# stream of %s: %s\n", rows[i].text, buffer.data);
			failed++;
		}
		if (stream_in_chunks(&mask, buffer.data, buffer.length, 0, &again)) {
			print_error("# twice: %s\n", again.data);
			failed++;
		}
	}
	assert_int_equal(failed, 0);
}

static void test_tokens(void **state)
{
	(void)state;
	check_rows(everywhere, sizeof(everywhere) / sizeof(everywhere[0]), true);
	check_rows(arguments, sizeof(arguments) / sizeof(arguments[0]), false);
}

/* Two arguments, the second of which is the value of the first. */
static const char *const pairs[] = {
	"\"curl\",\"-u\",\"me:hunter\"",
	"\"curl\",\"-ume:hunter\"",
	"\"curl\",\"--user=me:hunter\"",
	"\"curl\",\"-U\",\"me:hun;ter hunter\"",
	"\"mysql\",\"-h\",\"h\",\"-phunter\"",
	"\"sshpass\",\"-p\",\"hunter\"",
	"\"redis-cli\",\"-a\",\"hunter\"",
	"\"Authorization: Basic\",\"dXNlcjpwYXNz\"",
	"\"Authorization:\",\"Basic\",\"dXNlcjpwYXNz\"",
};

static void test_pairs_of_arguments(void **state)
{
	struct buffer CLEANUP_BUFFER buffer = { 0 };
	struct mask CLEANUP_MASK mask;

	(void)state;
	begin(&mask);
	buffer_text(&buffer, "{\"argv\":[\"mysql\",\"--password\",\"hunter\",\"db\"]}");
	assert_int_equal(mask_buffer(&mask, &buffer, 0), 1);
	assert_non_null(strstr(buffer.data, "\"--password\",\"[masked:password:"));
	assert_non_null(strstr(buffer.data, "]\",\"db\"]}"));
	buffer.length = 0;
	buffer_text(&buffer, "{\"argv\":[\"curl\",\"-u\",\"me:hunter\",\"http://h\"]}");
	assert_int_equal(mask_buffer(&mask, &buffer, 0), 1);
	assert_non_null(strstr(buffer.data, "\"me:[masked:password:"));
	buffer.length = 0;
	/* of which name and host can still be read */
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		buffer.length = 0;
		buffer_format(&buffer, "{\"argv\":[%s,\"kept\"]}", pairs[i]);
		assert_int_equal(mask_buffer(&mask, &buffer, 0), 1);
		if (strstr(buffer.data, "hunter") || strstr(buffer.data, "dXNlcjpw") ||
		    !strstr(buffer.data, "]\",\"kept\"]}"))
			fail_msg("%s", buffer.data);
	}
	buffer.length = 0;
	buffer_text(
		&buffer,
		"{\"argv\":[\"docker\",\"-u\",\"1000:1000\",\"x\"],\"a\":[\"token\",\"word\"]}");
	assert_int_equal(mask_buffer(&mask, &buffer, 0), 0);
}

/* Everyday output: nothing of it is touched, as a record and as a stream. */
static const char *const everyday[] = {
	"commit 3d6c68219b9b760945885aa4b3ce9f6b4d972c251 (HEAD -> main)\nAuthor: A <a@b.c>\n",
	"id: 123e4567-e89b-12d3-a456-426614174000",
	"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
	"<img src=\"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAA"
	"DUlEQVR42mNk\">",
	"//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjp"
	"bImEuanMiXX0=",
	"def login(user, password=None, token: str = \"\"):\n    return auth(password=password)\n",
	"connect(user=user, password=os.environ[\"DB_PASSWORD\"], token=get_token(1))",
	"const token = await getToken(); headers: { Authorization: `Bearer ${token}` }",
	"if (line == \"-----BEGIN PRIVATE KEY-----\") parse();",
	"#define TOKEN_LENGTH 32\nstatic const char *secret; /* the secret: nobody knows it */",
	"password: \npasswd: password updated successfully\nEnter password: ",
	"npm WARN deprecated har-validator@5.1.5: this library is no longer supported",
	"npm_config_cache=/home/u/.npm npm_lifecycle_event=test",
	"export PASSWORD=$PASSWORD TOKEN=${TOKEN} --token=<token> --password=***",
	"sk-learn sk-fading-circle-1234 desk-top sk-SK task-"
	"3d6c68219b9b760945885aa4b3ce9f6b4d972c25",
	"https://example.com:8080/@scope/pkg http://[::1]:80/a@b git@github.com:a/b.git ss"
	"h://git@h/x",
	"gcc -Wall -c monkey.c -o monkey.o keyboard=us key=value monkey=12345678a",
	"login name password: ask; the login user password changed",
	"logical auth=none auth: basic auth=\"oauth2\" default login, then a password prompt",
	"fw_setenv pul-request fc-cache -fv dapi secret_key_base",
	"aio_context_t oy2 1//0 sqp_solver cio asyncio sk_buff ops_table",
	"etag 0a1b2c3d4e5f60718293a4b5c6d7e8f9-usage us-east-1",
	"rnd_seed=12 00:AA:BB:CC:DD:EE 12:AAAA",
	"AKIAlowercaseisnotone ASIAN AIzawa xoxo-hugs ghp_short glpat-short hf_hub_download",
	"eyJhbGciOiJIUzI1NiJ9 alone, eyJ.eyJ.eyJ",
	"mkdir -p a/b && cp -pR a b; sort -u x:yyy; docker run -p 8080:80 -u 1000:1000 -a x",
	"mysql -p -u root; curl -u $USER:$PASSWORD -u ${A}:${B} -u me: h; mysql && mkdir -parents",
	"curl -s h | sort -u a:bbbbb; basic knowledge, Basic auth, basic dXNlcm5hbWU",
	"the bearer of this letter is authorized; Basic authentication, bearer authenticat"
	"ion_required",
	"Cookie: yes please; cookies are fine",
	"  \"integrity\": \"sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+"
	"DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==\",",
	"drwxr-xr-x 2 root root 4096 Nov 30 12:00 token\n-rw-r--r-- 1 root root 0 secret",
	"next_token=null page_token: 5 max_tokens=4096 csrf_token=\"{{ csrf_token() }}\"",
	"key: usb-storage.quirks=174c:55aa:u token.cc:12: error: expected ';' before 'token'",
	"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5v1Uo0nXbK4b3oHj0T5e2m user@host",
	"-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQsw"
	"CQYD\n-----END CERTIFICATE-----",
	"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4r"
	"XAxZuE=\n-----END PUBLIC KEY-----",
};

static void test_everyday_output(void **state)
{
	struct buffer CLEANUP_BUFFER buffer = { 0 };
	struct mask CLEANUP_MASK mask;
	int failed = 0;

	(void)state;
	begin(&mask);
	for (size_t i = 0; i < sizeof(everyday) / sizeof(everyday[0]); i++) {
		size_t length = strlen(everyday[i]);

		record(everyday[i], length, &buffer);
		if (mask_buffer(&mask, &buffer, 0)) {
			print_error("# record: %s\n", buffer.data);
			failed++;
		}
		if (stream_in_chunks(&mask, everyday[i], length, 0, &buffer)) {
			print_error("# stream: %s\n", buffer.data);
			failed++;
		}
		assert_true(buffer.length == length || failed);
	}
	assert_int_equal(failed, 0);
}

static void test_values(void **state)
{
	static const char *const values[] = {
		"hunter", "with \"quote\\ and\nnewline", "caf\xc3\xa9 au lait", "not\xffutf8\xfe!",
		"123456", "\xf0\x9f\x94\x91 keys"
	};
	struct buffer CLEANUP_BUFFER buffer = { 0 }, CLEANUP_BUFFER text = { 0 };
	struct mask CLEANUP_MASK mask;
	char digest[64], other[64];

	(void)state;
	begin(&mask);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		assert_int_equal(mask_add(&mask, "MY_VALUE", values[i]), 0);
	assert_int_equal(mask_add(&mask, "SHORT", "12345"), -ERANGE);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		text.length = 0;
		buffer_format(&text, "before %s behind, %s", values[i], values[i]);
		record(text.data, text.length, &buffer);
		assert_int_equal(mask_buffer(&mask, &buffer, 0), 2);
		assert_non_null(strstr(buffer.data, "before [masked:env.MY_VALUE:"));
		(void)snprintf(digest, sizeof(digest), "%.16s",
			       strstr(buffer.data, "MY_VALUE:") + 9);
		/* the same digest in a stream */
		assert_int_equal(stream_in_chunks(&mask, text.data, text.length, 0, &buffer), 2);
		(void)snprintf(other, sizeof(other), "%.16s", strstr(buffer.data, "MY_VALUE:") + 9);
		assert_string_equal(digest, other);
		/* a JSON text in a stream, and one in an argument */
		record(text.data, text.length, &buffer);
		text.length = 0;
		buffer_append(&text, buffer.data, buffer.length);
		assert_int_equal(stream_in_chunks(&mask, text.data, text.length, 0, &buffer), 2);
		record(text.data, text.length, &buffer);
		assert_int_equal(mask_buffer(&mask, &buffer, 0), 2);
		(void)snprintf(other, sizeof(other), "%.16s", strstr(buffer.data, "MY_VALUE:") + 9);
		assert_string_equal(digest, other);
	}
}

/* A token in a record and in a stream has one digest, though JSON escapes what is around it. */
static void test_digests_of_tokens(void **state)
{
	static const char text[] = "password=\"a\\b1\"2 --password=c\xc3\xa9"
				   "12xyzABC";
	struct buffer CLEANUP_BUFFER buffer = { 0 }, CLEANUP_BUFFER out = { 0 };
	struct mask CLEANUP_MASK mask, CLEANUP_MASK foreign;
	unsigned char key2[MASK_KEY_BYTES] = { 1 };
	const char *mark;

	(void)state;
	begin(&mask);
	record(text, sizeof(text) - 1, &buffer);
	assert_true(mask_buffer(&mask, &buffer, 0) >= 1);
	(void)stream_in_chunks(&mask, text, sizeof(text) - 1, 0, &out);
	mark = strstr(out.data, "[masked:password:");
	assert_non_null(mark);
	assert_non_null(strstr(buffer.data, mark + 9 > out.data ? "masked:password" : ""));
	{
		char digest[40];

		(void)snprintf(digest, sizeof(digest), "%.34s", mark);
		assert_non_null(strstr(buffer.data, digest));
	}
	foreign = MASK_NONE;
	mask_begin(&foreign, key2);
	record(text, sizeof(text) - 1, &buffer);
	assert_true(mask_buffer(&foreign, &buffer, 0) >= 1);
	assert_null(strstr(buffer.data, mark));
}

/* Secrets that are words of the format, or numbers of it: the text stays JSON of the same shape. */
static void test_shape_stays(void **state)
{
	struct buffer CLEANUP_BUFFER buffer = { 0 };
	struct mask CLEANUP_MASK mask;

	(void)state;
	begin(&mask);
	assert_int_equal(mask_add(&mask, "A", "environment"), 0);
	assert_int_equal(mask_add(&mask, "B", "123456"), 0);
	assert_int_equal(mask_add(&mask, "C", "\",\"cwd\":"), 0);
	assert_int_equal(mask_add(&mask, "D", "0041bc"), 0);
	assert_int_equal(mask_add(&mask, "E", "x\",123456"), 0);
	buffer_text(&buffer,
		    "{\"environment\":{\"A\":\"environment\"},\"bytes\":123456,\"cwd\":\"/\","
		    "\"t\":\"\\u0041bc\\\\x\",\"e\":\"x\",\"n\":[\"x\",123456]}");
	assert_int_equal(mask_buffer(&mask, &buffer, 0), 1);
	assert_non_null(strstr(buffer.data, "{\"environment\":{\"A\":\"[masked:env.A:"));
	assert_non_null(
		strstr(buffer.data,
		       "]\"},\"bytes\":123456,\"cwd\":\"/\",\"t\":\"\\u0041bc\\\\x\",\"e\":\"x\","
		       "\"n\":[\"x\","
		       "123456]}"));
}

/* From where the caller says, and not before. */
static void test_from(void **state)
{
	struct buffer CLEANUP_BUFFER buffer = { 0 };
	struct mask CLEANUP_MASK mask;

	(void)state;
	begin(&mask);
	assert_int_equal(mask_add(&mask, "A", "execution"), 0);
	buffer_text(&buffer, "{\"layer\":\"execution\",\"body\":{\"a\":\"execution\"}}");
	assert_int_equal(mask_buffer(&mask, &buffer, strlen("{\"layer\":\"execution\",\"body\":")),
			 1);
	assert_non_null(
		strstr(buffer.data, "{\"layer\":\"execution\",\"body\":{\"a\":\"[masked:env.A:"));
}

/* A token within a value, a value within a token, and two that overlap: nothing of either stays. */
static void test_overlaps(void **state)
{
	static const char *const texts[] = { ("aa bb ghp_" A36 " cc dd"), ("ghp_" A36),
					     "postgres://u:Zq7PasswordX@h/Tail9word",
					     "--password=Zq7PasswordX@h/Tail9word",
					     "https://E5fG7hJ9:Zq7Passw0rd@h/" };
	struct buffer CLEANUP_BUFFER buffer = { 0 };
	struct mask CLEANUP_MASK mask;

	(void)state;
	begin(&mask);
	assert_int_equal(mask_add(&mask, "WHOLE", texts[0]), 0);
	assert_int_equal(mask_add(&mask, "PART", "E5fG7hJ9"), 0);
	assert_int_equal(mask_add(&mask, "REACH", "Zq7PasswordX@h/Tail9word"), 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		for (int in_stream = 0; in_stream < 2; in_stream++) {
			if (in_stream) {
				assert_int_equal(stream_in_chunks(&mask, texts[i], strlen(texts[i]),
								  0, &buffer),
						 1);
			} else {
				record(texts[i], strlen(texts[i]), &buffer);
				assert_int_equal(mask_buffer(&mask, &buffer, 0), 1);
			}
			assert_null(strstr(buffer.data, "aa bb"));
			assert_null(strstr(buffer.data, "cc dd"));
			assert_null(strstr(buffer.data, "E5fG7"));
			assert_null(strstr(buffer.data, "ghp_"));
			assert_null(strstr(buffer.data, "Tail9"));
			assert_null(strstr(buffer.data, "Zq7"));
		}
}

/* However a stream is cut, the same comes out; secrets of all lengths lie across the cuts. */
static void test_chunks(void **state)
{
	static const size_t chunks[] = { 1, 7, 64, 1000, 4096, 17000, 65536, 131072 };
	struct buffer CLEANUP_BUFFER text = { 0 }, CLEANUP_BUFFER whole = { 0 };
	struct buffer CLEANUP_BUFFER out = { 0 };
	struct mask CLEANUP_MASK mask;
	char *value = malloc(10001);
	uint64_t count;

	(void)state;
	begin(&mask);
	assert_non_null(value);
	for (unsigned i = 0; i < 10000; i++)
		value[i] = (char)('!' + (i * i + i / 7) % 90);
	value[10000] = '\0';
	assert_int_equal(mask_add(&mask, "LONG", value), 0);
	for (unsigned i = 0; i < 400; i++) {
		buffer_format(&text, "%*s", (int)(i * 37 % 991), "");
		buffer_text(&text,
			    everywhere[i % (sizeof(everywhere) / sizeof(everywhere[0]))].text);
		buffer_text(&text, " ");
		if (i % 50 == 0)
			buffer_text(&text, value);
		buffer_text(&text, everyday[i % (sizeof(everyday) / sizeof(everyday[0]))]);
	}
	count = stream_in_chunks(&mask, text.data, text.length, 0, &whole);
	assert_true(count > 400);
	for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
		assert_int_equal(stream_in_chunks(&mask, text.data, text.length, chunks[i], &out),
				 count);
		assert_int_equal(out.length, whole.length);
		assert_memory_equal(out.data, whole.data, whole.length);
	}
	for (unsigned i = 0; i + 100 < 10000; i += 100) {
		char part[33] = { 0 };

		memcpy(part, value + i, 32);
		assert_null(strstr(whole.data, part));
	}
	free(value);
}

static void test_unready(void **state)
{
	struct buffer CLEANUP_BUFFER buffer = { 0 };
	struct mask mask = MASK_NONE;
	struct mask_stream stream;

	(void)state;
	buffer_text(&buffer, "{\"a\":\"b\"}");
	assert_int_equal(mask_buffer(&mask, &buffer, 0), 0);
	assert_true(buffer.failed);
	assert_int_equal(mask_stream_begin(&stream, &mask, gather, &buffer), -EINVAL);
	assert_int_equal(mask_add(&mask, "A", "long enough"), -EINVAL);
}

static void test_forged_marks(void **state)
{
	static const char text[] = "[masked:ghp_" A36 ":0123456789abcdef]";
	struct buffer CLEANUP_BUFFER buffer = { 0 };
	struct mask CLEANUP_MASK mask;

	(void)state;
	begin(&mask);
	assert_int_equal(stream_in_chunks(&mask, text, sizeof(text) - 1, 0, &buffer), 1);
	assert_null(strstr(buffer.data, A36));
}

static void test_limit(void **state)
{
	struct mask CLEANUP_MASK mask;
	char value[32];

	(void)state;
	begin(&mask);
	for (unsigned i = 0; i < MASK_LIMIT_VALUES; i++) {
		(void)snprintf(value, sizeof(value), "value %u", i);
		assert_int_equal(mask_add(&mask, "A", value), 0);
		assert_int_equal(mask_add(&mask, "B", value), 0);
	}
	assert_int_equal(mask_add(&mask, "A", "one too many"), -E2BIG);
}

static void test_names(void **state)
{
	static const char *const secret[] = {
		"TOKEN",
		"GITHUB_TOKEN",
		"GH_TOKEN",
		"API_KEY",
		"OPENAI_API_KEY",
		"AWS_SECRET_ACCESS_KEY",
		"DB_PASSWORD",
		"PGPASSWORD",
		"MYSQL_PWD",
		"SECRET",
		"CLIENT_SECRET",
		"npm_config__authToken",
		"NPM_AUTH",
		"COOKIE",
		"SESSION_COOKIE",
		"CREDENTIALS",
		"GIT_CREDENTIAL",
		"SSHPASS",
		"GITHUB_PAT",
		"DATABASE_PASSWD",
		"PRIVATE_KEY",
		"signing-key",
		"APIKEY",
		"KEY",
		"AWS_SESSION_TOKEN",
		"DOCKER_AUTH",
		"SECRET_KEY_BASE",
		"GPG_PASSPHRASE",
		"API_TOKENS",
		"AUTH",
	};
	static const char *const plain[] = {
		"KEYBOARD",
		"MONKEY",
		"SSH_AUTH_SOCK",
		"TOKENIZERS_PARALLELISM",
		"PATH",
		"PWD",
		"OLDPWD",
		"XAUTHORITY",
		"GIT_ASKPASS",
		"AWS_ACCESS_KEY_ID",
		"TOKEN_FILE",
		"SECRETS_DIR",
		"AUTH_URL",
		"PUBLIC_KEY",
		"CACHE_KEY",
		"KEYMAP",
		"XKB_KEYBOARD",
		"COMPASS",
		"MAX_TOKENS",
		"GPG_KEY",
		"KEY_PATH",
		"AUTHOR",
		"GIT_AUTHOR_NAME",
		"PASSENGER",
		"",
		"_",
		"DBUS_SESSION_BUS_ADDRESS",
		"SSH_ASKPASS",
		"PATHEXT",
		"COLORTERM",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(secret) / sizeof(secret[0]); i++)
		if (!mask_is_secret_name(secret[i]))
			fail_msg("%s is secret", secret[i]);
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (mask_is_secret_name(plain[i]))
			fail_msg("%s is not secret", plain[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_pairs_of_arguments),
		cmocka_unit_test(test_everyday_output),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_digests_of_tokens),
		cmocka_unit_test(test_shape_stays),
		cmocka_unit_test(test_from),
		cmocka_unit_test(test_overlaps),
		cmocka_unit_test(test_chunks),
		cmocka_unit_test(test_unready),
		cmocka_unit_test(test_forged_marks),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
