#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/secret.h"

#include <string.h>

static void names_of_secrets(void **state)
{
	static const char *const names[] = { ".env",
					     ".env.local",
					     ".env.production",
					     "prod.env",
					     "id_rsa",
					     "id_ed25519",
					     "server.p12",
					     "release.jks",
					     ".netrc",
					     ".pypirc",
					     ".git-credentials",
					     "kubeconfig",
					     "admin.kubeconfig",
					     "secrets.yaml",
					     "deploy.token",
					     "github_token",
					     "npm-token.txt" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (secret_of_name("", names[i]) != SECRET_ANY)
			fail_msg("%s", names[i]);
}

static void everyday_names(void **state)
{
	static const char *const names[] = {
		".envrc",	".env.example",	  ".env.sample",  ".env.template",
		".env.dist",	"example.env",	  ".environment", "env",
		"env.ts",	"environ",	  ".env.md",	  "id_rsa.pub",
		"package.json", "Makefile",	  "main.c",	  "keyboard.c",
		"token.c",	"tokenizer_test", "secrets",	  "secrets.py",
		"config",	"credentials",	  "config.json",  ".env.",
		"monkey",	"README.md",	  ".token.md",	  "pem",
		"key",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (secret_of_name("", names[i]) != SECRET_NONE)
			fail_msg("%s", names[i]);
}

static void the_directory_counts_where_it_must(void **state)
{
	(void)state;
	assert_int_equal(secret_of_name(".aws", "credentials"), SECRET_ANY);
	assert_int_equal(secret_of_name(".kube", "config"), SECRET_ANY);
	assert_int_equal(secret_of_name(".docker", "config.json"), SECRET_ACCOUNT);
	assert_int_equal(secret_of_name(".ssh", "work"), SECRET_PRIVATE_KEY);
	assert_int_equal(secret_of_name(".ssh", "work.pub"), SECRET_NONE);
	assert_int_equal(secret_of_name("src", "work"), SECRET_NONE);
}

static bool is_in(enum secret_content content, const char *text)
{
	return secret_is_in(content, text, strlen(text));
}

static void what_the_content_tells(void **state)
{
	(void)state;
	assert_int_equal(secret_of_name("", "a.pem"), SECRET_PRIVATE_KEY);
	assert_true(is_in(SECRET_PRIVATE_KEY, "x\n-----BEGIN RSA PRIVATE KEY-----\nMII"));
	assert_true(is_in(SECRET_PRIVATE_KEY, "-----BEGIN OPENSSH PRIVATE KEY-----\n"));
	assert_true(is_in(SECRET_PRIVATE_KEY, "-----BEGIN PGP PRIVATE KEY BLOCK-----\n"));
	assert_false(is_in(SECRET_PRIVATE_KEY, "-----BEGIN CERTIFICATE-----\nMII"));
	assert_false(is_in(SECRET_PRIVATE_KEY, "-----BEGIN PUBLIC KEY-----\n"));
	assert_false(is_in(SECRET_PRIVATE_KEY, ""));
	assert_int_equal(secret_of_name("", "credentials.json"), SECRET_ACCOUNT);
	assert_true(is_in(SECRET_ACCOUNT, "{\"private_key\": \"x\"}"));
	assert_false(is_in(SECRET_ACCOUNT, "{\"sub\": 1}"));
}

static void a_registry_token_and_a_reference_to_one(void **state)
{
	(void)state;
	assert_int_equal(secret_of_name("", ".npmrc"), SECRET_REGISTRY);
	assert_true(is_in(SECRET_REGISTRY, "//registry.npmjs.org/:_authToken=npm_x\n"));
	assert_true(is_in(SECRET_REGISTRY, "a=b\n//r/:_password = \"eA==\""));
	assert_true(is_in(SECRET_REGISTRY, "npmAuthToken: x"));
	assert_true(is_in(SECRET_REGISTRY, "//a/:_authToken=${T}\n//b/:_authToken=x\n"));
	assert_false(is_in(SECRET_REGISTRY, "//registry.npmjs.org/:_authToken=${NPM_TOKEN}\n"));
	assert_false(is_in(SECRET_REGISTRY, "npmAuthToken: \"${T}\"\nx: y\n"));
	assert_false(is_in(SECRET_REGISTRY, "//r/:_authToken=\nsave-exact=true\n"));
	assert_false(is_in(SECRET_REGISTRY, "//r/:_authToken="));
	assert_false(is_in(SECRET_REGISTRY, "save-exact=true\nfund=false\n"));
}

static void directories_of_others(void **state)
{
	(void)state;
	assert_true(secret_is_skipped("node_modules"));
	assert_true(secret_is_skipped(".git"));
	assert_false(secret_is_skipped("src"));
	assert_false(secret_is_skipped("packages"));
	assert_false(secret_is_skipped(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_secrets),
		cmocka_unit_test(everyday_names),
		cmocka_unit_test(the_directory_counts_where_it_must),
		cmocka_unit_test(what_the_content_tells),
		cmocka_unit_test(a_registry_token_and_a_reference_to_one),
		cmocka_unit_test(directories_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
