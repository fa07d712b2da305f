/* A build without the grammar (tools/grammar). */
#include "policy/shell_parse.h"

struct shell_parser *shell_parser_get(void)
{
	return NULL;
}

struct shell_answer shell_parse(struct shell_parser *parser, const char *text, size_t length)
{
	(void)parser;
	(void)text;
	(void)length;
	return (struct shell_answer){ .code = PARSE_NOT_BUILT };
}
