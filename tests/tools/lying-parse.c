/*
 * A bawn-parse that was taken over: it answers every shell string with a lie of the kind that the
 * string's first byte names, and has no jail. Put beside a copy of bawn by
 * tests/run/test_decide.py; never installed.
 */
#include "ipc/message.h"
#include "ipc/parse.h"
#include "ipc/role.h"
#include "policy/shell.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

struct tree {
	uint32_t code, count;
	struct shell_node nodes[4];
};

/* What "ls" is to a parser. */
static const struct tree tree_of_ls = {
	PARSE_DONE,
	4,
	{ { SHELL_PROGRAM, 0, 2, 0 },
	  { SHELL_COMMAND, 0, 2, 0 },
	  { SHELL_COMMAND_NAME, 0, 2, 1 },
	  { SHELL_WORD, 0, 2, 2 } },
};

static void send_tree(const struct tree *tree, size_t length)
{
	(void)message_send(ROLE_CHANNEL, PARSE_TREE, tree, length, NULL, 0);
}

static void lie(char kind)
{
	static const int null = 0;
	struct tree tree = tree_of_ls;

	switch (kind) {
	case 'd': /* dies */
		_exit(3);
	case 'g': /* another message */
		(void)message_send(ROLE_CHANNEL, 99, "garbage", 7, NULL, 0);
		break;
	case 's': /* a short one */
		send_tree(&tree, 5);
		break;
	case 'n': /* more nodes than announced */
		tree.count = 1;
		send_tree(&tree, sizeof(tree));
		break;
	case 'm': /* more nodes than there may be */
		tree.count = UINT32_MAX;
		send_tree(&tree, sizeof(tree));
		break;
	case 'c': /* no code that there is */
		tree.code = 77;
		send_tree(&tree, sizeof(tree));
		break;
	case 'e': /* ends within the tree */
		tree.count = 9;
		send_tree(&tree, sizeof(tree));
		_exit(0);
	case 'f': /* a descriptor comes with it */
		(void)message_send(ROLE_CHANNEL, PARSE_TREE, &tree, sizeof(tree), &null, 1);
		break;
	case 'o': /* nodes that are no tree */
		tree.nodes[2].parent = 3;
		tree.nodes[3].end = UINT32_MAX;
		send_tree(&tree, sizeof(tree));
		break;
	case '0': /* an empty one */
		tree.count = 0;
		send_tree(&tree, 8);
		break;
	case 'h': /* never answers */
		for (;;)
			pause();
	default: /* whatever it is: "ls" */
		send_tree(&tree, sizeof(tree));
	}
}

int main(void)
{
	static struct message message;

	while (message_receive(ROLE_CHANNEL, &message) == 0) {
		if (message.type != PARSE_TEXT)
			continue;
		lie(message.length > 4 ? (char)message.bytes[4] : 'l');
	}
	return 0;
}
