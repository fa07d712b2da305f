/*
 * Denials inferred from what programs really said. Every text below was printed by the program of
 * its first word (Debian 12: coreutils, git, gcc, python, node, npm, pip, java, rust, go, curl,
 * wget, apt, ssh) in front of a missing path, a read-only mount or a missing network.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "broker/infer.h"
#include "policy/denial.h"
#include "policy/policy.h"

#define OPERANDS 6

/* 0-7 as in the rows of the view below */
static struct rule_ref rules[] = {
	{ .id = "system.read-only" },
	{ .id = "workspace.write" },
	{ .id = "flag.hide", .file = "--hide", .line = 3 },
	{ .id = "flag.protect", .file = "--protect", .line = 5 },
	{ .id = "toolchain.read" },
	{ .id = "toolchain.credential" },
	{ .id = "flag.read", .file = "--read", .line = 7 },
};

static struct view_path paths[] = {
	{ .class = PATH_READ, .source = "/usr", .target = "/usr", .rule = 0 },
	{ .class = PATH_LINK, .source = "usr/bin", .target = "/bin", .rule = 0 },
	{ .class = PATH_FILE, .source = "", .target = "/etc/passwd", .rule = 0 },
	{ .class = PATH_DEVICE, .source = "/dev/null", .target = "/dev/null", .rule = 0 },
	{ .class = PATH_WRITE, .source = "/home/u/src/ws", .target = "/home/u/src/ws", .rule = 1 },
	{ .class = PATH_HIDE, .source = "", .target = "/home/u/src/ws/.env", .rule = 2 },
	{ .class = PATH_HIDE, .source = "", .target = "/home/u/src/ws/secret", .rule = 2 },
	{ .class = PATH_PROTECT, .source = "", .target = "/home/u/src/ws/ci", .rule = 3 },
	{ .class = PATH_READ, .source = "/home/u/.cargo", .target = "/home/u/.cargo", .rule = 4 },
	{ .class = PATH_HIDE, .source = "", .target = "/home/u/.cargo/credentials", .rule = 5 },
	{ .class = PATH_READ, .source = "/ro", .target = "/ro", .rule = 6 },
};

static const struct policy policy = {
	.user = "u",
	.home = "/home/u",
	.workspace = "/home/u/src/ws",
	.cwd = "/home/u/src/ws",
	.rules = rules,
	.rule_count = sizeof(rules) / sizeof(rules[0]),
	.view = { .paths = paths, .count = sizeof(paths) / sizeof(paths[0]) },
};

struct row {
	const char *argv[OPERANDS];
	const char *tail;
	const char *wanted; /* "code object rule" of each denial, joined by "; " */
};

static void infer(const char *const *argv, const char *cwd, const char *tail, size_t length,
		  char *text, size_t size)
{
	static struct denial_list list;
	size_t used = 0;

	memset(&list, 0, sizeof(list));
	infer_denials(&policy, argv, cwd, tail, length, &list);
	text[0] = '\0';
	for (uint32_t i = 0; i < list.count; i++) {
		const struct denial *denial = &list.items[i];

		assert_false(denial->measured);
		used += (size_t)snprintf(text + used, size - used, "%s%s %s %s", i ? "; " : "",
					 denial_text(denial->kind)->code, denial->object,
					 denial->rule.id);
		assert_true(used < size);
	}
}

static void check(const struct row *rows, size_t count, const char *cwd)
{
	char got[4096];
	int failed = 0;

	for (size_t i = 0; i < count; i++) {
		const char *wanted = rows[i].wanted ? rows[i].wanted : "";

		infer(rows[i].argv, cwd, rows[i].tail, strlen(rows[i].tail), got, sizeof(got));
		if (strcmp(got, wanted) == 0)
			continue;
		failed++;
		print_error("# of: %s\n#   wanted: %s\n#   got:    %s\n", rows[i].tail, wanted,
			    got);
	}
	if (failed)
		fail_msg("%d of %zu rows differ", failed, count);
}

#define CHECK(rows, cwd) check(rows, sizeof(rows) / sizeof(rows[0]), cwd)
#define WS "/home/u/src/ws"
#define UNMADE "fs.write /opt/none/x system.absent"
#define ABSENT "fs.read /opt/none/x system.absent"

static void absent_paths(void **state)
{
	static const struct row rows[] = {
		{ { "cat", "/opt/none/x" },
		  "cat: /opt/none/x: No such file or directory\n",
		  ABSENT },
		{ { "cat", "/home/u/.ssh/id_rsa" },
		  "cat: /home/u/.ssh/id_rsa: No such file or directory\n",
		  "fs.read /home/u/.ssh/id_rsa home.private" },
		{ { "sh", "-c", "cat ~/.aws/credentials" },
		  "cat: /home/u/.aws/credentials: No such file or directory\n",
		  "fs.read /home/u/.aws/credentials home.private" },
		{ { "ls", "/opt/none/x" },
		  "ls: cannot access '/opt/none/x': No such file or directory\n",
		  ABSENT },
		{ { "ls", "/opt/my dir" },
		  "ls: cannot access '/opt/my dir': No such file or directory\n",
		  "fs.read /opt/my dir system.absent" },
		{ { "stat", "/opt/it's" },
		  "stat: cannot statx \"/opt/it's\": No such file or directory\n",
		  "fs.read /opt/it's system.absent" },
		{ { "git", "-C", "/opt/none/x", "status" },
		  "fatal: cannot change to '/opt/none/x': No such file or directory\n",
		  ABSENT },
		{ { "git", "clone", "/opt/none/x" },
		  "fatal: repository '/opt/none/x' does not exist\n",
		  ABSENT },
		{ { "gcc", "/opt/none/x" },
		  "cc1: fatal error: /opt/none/x: No such file or directory\n"
		  "compilation terminated.\n",
		  ABSENT },
		{ { "make" },
		  "cat: /opt/none/x: No such file or directory\n"
		  "make: *** [Makefile:2: all] Error 1\n",
		  ABSENT },
		{ { "make", "-C", "/opt/none/x" },
		  "make: *** /opt/none/x: No such file or directory.  Stop.\n",
		  ABSENT },
		{ { "make" },
		  "make: *** No rule to make target '/opt/none/x', needed by 'all'.  Stop.\n",
		  ABSENT },
		{ { "python3", "-c", "open('/opt/none/x')" },
		  "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n"
		  "FileNotFoundError: [Errno 2] No such file or directory: '/opt/none/x'\n",
		  ABSENT },
		{ { "python3", "-c", "open('/opt/none/x')" },
		  "PermissionError: [Errno 13] Permission denied: '/opt/none/x'\n",
		  ABSENT },
		{ { "python3", "/opt/none/x" },
		  "/usr/bin/python3: can't open file '/opt/none/x': [Errno 2] No such file or "
		  "directory\n",
		  ABSENT },
		{ { "node", "a.js" },
		  "Error: ENOENT: no such file or directory, open '/opt/none/x'\n"
		  "    at Object.openSync (node:fs:596:3)\n  errno: -2,\n  code: 'ENOENT',\n"
		  "  syscall: 'open',\n  path: '/opt/none/x'\n}\n\nNode.js v20.20.2\n",
		  ABSENT },
		{ { "node", "/opt/none/x.js" },
		  "Error: Cannot find module '/opt/none/x.js'\n"
		  "    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)\n",
		  "fs.read /opt/none/x.js system.absent" },
		{ { "tar", "xf", "/opt/none/x" },
		  "tar: /opt/none/x: Cannot open: No such file or directory\n"
		  "tar: Error is not recoverable: exiting now\n",
		  ABSENT },
		{ { "tar", "cf", "o.tar", "/opt/none/x" },
		  "tar: Removing leading `/' from member names\n"
		  "tar: /opt/none/x: Cannot stat: No such file or directory\n",
		  ABSENT },
		{ { "sh", "-c", "cat < /opt/none/x" },
		  "sh: 1: cannot open /opt/none/x: No such file\n",
		  ABSENT },
		{ { "sh", "-c", "echo > /opt/none/x" },
		  "sh: 1: cannot create /opt/none/x: Directory nonexistent\n",
		  UNMADE },
		{ { "sh", "-c", "/opt/none/x" }, "sh: 1: /opt/none/x: not found\n", ABSENT },
		{ { "bash", "-c", "cat < /opt/none/x" },
		  "bash: line 1: /opt/none/x: No such file or directory\n",
		  ABSENT },
		{ { "mkdir", "/opt/none/x" },
		  "mkdir: cannot create directory \xe2\x80\x98/opt/none/x\xe2\x80\x99: No "
		  "such file "
		  "or directory\n",
		  UNMADE },
		{ { "sh", "-c", "echo >/etc/foo" },
		  "sh: 1: cannot create /etc/foo: Read-only file system\n",
		  "fs.write /etc/foo system.absent" },
		{ { "bash", "-c", "echo >/etc/foo" },
		  "bash: line 1: /etc/foo: Read-only file system\n",
		  "fs.write /etc/foo system.absent" },
		{ { "touch", "/opt/none/x" },
		  "touch: cannot touch '/opt/none/x': No such file or directory\n",
		  UNMADE },
		{ { "git", "clone", "../b", "x" },
		  "fatal: repository '../b' does not exist\n",
		  "fs.read /home/u/src/b home.private" },
		{ { "sh", "-c", "cat ../b/f" },
		  "cat: ../b/f: No such file or directory\n",
		  "fs.read /home/u/src/b/f home.private" },
		{ { "sh", "-c", "cd deep && cat ../b/f" },
		  "cat: ../b/f: No such file or directory\n",
		  NULL },
		{ { "make" }, "cat: ../b/f: No such file or directory\n", NULL },
		{ { "find", "/opt/none/x" },
		  "find: \xe2\x80\x98/opt/none/x\xe2\x80\x99: No such file or directory\n",
		  ABSENT },
		{ { "perl", "/opt/none/x" },
		  "Can't open perl script \"/opt/none/x\": No such file or directory\n",
		  ABSENT },
		{ { "perl", "a.pl", "/opt/none/x" },
		  "cannot: No such file or directory at a.pl line 1.\n",
		  ABSENT },
		{ { "head", "/opt/none/x" },
		  "head: cannot open '/opt/none/x' for reading: No such file or directory\n",
		  ABSENT },
		{ { "sed", "p", "/opt/none/x" },
		  "sed: can't read /opt/none/x: No such file or directory\n",
		  ABSENT },
		{ { "awk", "1", "/opt/none/x" },
		  "awk: cannot open /opt/none/x (No such file or directory)\n",
		  ABSENT },
		{ { "dd", "if=/opt/none/x" },
		  "dd: failed to open '/opt/none/x': No such file or directory\n",
		  ABSENT },
		{ { "jq", ".", "/opt/none/x" },
		  "jq: error: Could not open file /opt/none/x: No such file or directory\n",
		  ABSENT },
		{ { "java", "-jar", "/opt/none/x" },
		  "Error: Unable to access jarfile /opt/none/x\n",
		  ABSENT },
		{ { "java", "J" },
		  "Exception in thread \"main\" java.io.FileNotFoundException: "
		  "/opt/none/x (No such "
		  "file or directory)\n"
		  "\tat java.base/java.io.FileInputStream.open0(Native Method)\n",
		  ABSENT },
		{ { "java", "J" },
		  "Exception in thread \"main\" java.nio.file.NoSuchFileException: /opt/none/x\n",
		  ABSENT },
		{ { "rustc", "/opt/none/x" },
		  "error: couldn't read `/opt/none/x`: No such file or directory (os error 2)\n\n"
		  "error: aborting due to 1 previous error\n",
		  ABSENT },
		{ { "cargo", "build", "--manifest-path", "/opt/none/x" },
		  "error: manifest path `/opt/none/x` does not exist\n",
		  ABSENT },
		{ { "./reader", "/opt/none/x" },
		  "called `Result::unwrap()` on an `Err` value: Os { code: 2, kind: NotFound, "
		  "message: \"No such file or directory\" }\n",
		  ABSENT },
		{ { "./reader", "--input=/opt/none/x" },
		  "called `Result::unwrap()` on an `Err` value: Os { code: 2, kind: NotFound, "
		  "message: \"No such file or directory\" }\n",
		  ABSENT },
		{ { "go", "run", "." },
		  "panic: open /opt/none/x: no such file or directory\n",
		  ABSENT },
		{ { "go", "run", "." },
		  "2024/01/02 03:04:05 open /opt/none/x: permission denied\n",
		  ABSENT },
		{ { "ssh", "-i", "/opt/none/x", "h" },
		  "Warning: Identity file /opt/none/x not accessible: No such file or directory.\n",
		  ABSENT },
		{ { "curl", "file:///opt/none/x" },
		  "curl: (37) Couldn't open file /opt/none/x\n",
		  ABSENT },
		{ { "pip", "install", "-r", "/opt/none/x" },
		  "ERROR: Could not open requirements file: [Errno 2] No such file or directory: "
		  "'/opt/none/x'\n",
		  ABSENT },
		{ { "npm", "--prefix", "/opt/none", "test" },
		  "npm error code ENOENT\nnpm error syscall open\n"
		  "npm error path /opt/none/package.json\nnpm error errno -2\n"
		  "npm error enoent Could not read package.json: Error: ENOENT: no such file or "
		  "directory, open '/opt/none/package.json'\n"
		  "npm error A complete log of this run can be found in: "
		  "/home/u/.npm/_logs/1.log\n",
		  "fs.read /opt/none/package.json system.absent" },
		{ { "clang", "/opt/none/x" },
		  "clang: error: no such file or directory: '/opt/none/x'\n",
		  ABSENT },
		{ { "clang", "a.c" },
		  "a.c:1:10: fatal error: '/opt/none/x' file not found\n",
		  ABSENT },
		{ { "docker", "ps" },
		  "error during connect: dial unix /opt/none/x: connect: no such file or "
		  "directory\n",
		  ABSENT },
		{ { "cat", "../other/x" },
		  "cat: ../other/x: No such file or directory\n",
		  "fs.read /home/u/src/other/x home.private" },
		{ { "tool", "~/.netrc" },
		  "tool: cannot open ~/.netrc: Permission denied\n",
		  "fs.read /home/u/.netrc home.private" },
		{ { "ls", "--color" },
		  "\x1b[31mls\x1b[0m: cannot access '\x1b[1m/opt/none/x\x1b[0m': No such file\n",
		  ABSENT },
		{ { "tool", "x" },
		  "tool: file:///opt/none/x: No such file or directory\n",
		  ABSENT },
		{ { "cat", "/opt//none/./x/" },
		  "cat: /opt//none/./x/: No such file or directory\n",
		  ABSENT },
	};

	(void)state;
	CHECK(rows, WS);
}

static void hidden_and_protected(void **state)
{
	static const struct row rows[] = {
		{ { "cat", ".env" },
		  "cat: .env: No such file or directory\n",
		  "fs.hidden " WS "/.env flag.hide" },
		{ { "cat", ".env" },
		  "cat: .env: Permission denied\n",
		  "fs.hidden " WS "/.env flag.hide" },
		{ { "cat", "./secret/a" },
		  "cat: ./secret/a: No such file or directory\n",
		  "fs.hidden " WS "/secret/a flag.hide" },
		{ { "ls", "secret" },
		  "ls: cannot access 'secret': No such file or directory\n",
		  "fs.hidden " WS "/secret flag.hide" },
		{ { "rm", ".env" },
		  "rm: cannot remove '.env': Device or resource busy\n",
		  "fs.hidden " WS "/.env flag.hide" },
		{ { "cargo", "publish" },
		  "error: failed to read `/home/u/.cargo/credentials`: No such file (os error 2)\n",
		  "fs.hidden /home/u/.cargo/credentials toolchain.credential" },
		{ { "perl", "a.pl", ".env" },
		  "cannot: No such file or directory at a.pl line 1.\n",
		  "fs.hidden " WS "/.env flag.hide" },
		{ { "touch", "ci/x" },
		  "touch: cannot touch 'ci/x': Read-only file system\n",
		  "fs.protected " WS "/ci/x flag.protect" },
		{ { "touch", "ci/x" },
		  "touch: cannot touch 'ci/x': Permission denied\n",
		  "fs.protected " WS "/ci/x flag.protect" },
		{ { "rm", "-r", "ci" },
		  "rm: cannot remove 'ci': Device or resource busy\n",
		  "fs.protected " WS "/ci flag.protect" },
	};

	(void)state;
	CHECK(rows, WS);
}

static void read_only_paths(void **state)
{
	static const struct row rows[] = {
		{ { "touch", "/ro/x" },
		  "touch: cannot touch '/ro/x': Read-only file system\n",
		  "fs.write /ro/x flag.read" },
		{ { "touch", "/usr/x" },
		  "touch: cannot touch '/usr/x': Read-only file system\n",
		  "fs.write /usr/x system.read-only" },
		{ { "cp", "a", "/ro/x" },
		  "cp: cannot create regular file '/ro/x': Read-only file system\n",
		  "fs.write /ro/x flag.read" },
		{ { "sh", "-c", "echo > /etc/passwd" },
		  "sh: 1: cannot create /etc/passwd: Read-only file system\n",
		  "fs.write /etc/passwd system.read-only" },
		{ { "python3", "-c", "..." },
		  "OSError: [Errno 30] Read-only file system: '/ro/x'\n",
		  "fs.write /ro/x flag.read" },
		{ { "node", "a.js" },
		  "Error: EROFS: read-only file system, open '/ro/x'\n  code: 'EROFS',\n",
		  "fs.write /ro/x flag.read" },
		{ { "git", "init", "/ro/g" },
		  "fatal: cannot mkdir /ro/g: Read-only file system\n",
		  "fs.write /ro/g flag.read" },
		/* the linker that speaks is itself read-only, and is not what was refused */
		{ { "gcc", "-o", "/ro/a.out", "a.c" },
		  "/usr/bin/ld: cannot open output file /ro/a.out: Read-only file system\n"
		  "collect2: error: ld returned 1 exit status\n",
		  "fs.write /ro/a.out flag.read" },
		{ { "wget", "-O", "/ro/x", "http://127.0.0.1:1/" },
		  "/ro/x: Read-only file system\n",
		  "fs.write /ro/x flag.read" },
		{ { "mv", "b.c", "/ro" },
		  "mv: inter-device move failed: '" WS
		  "/b.c' to '/ro/b.c'; unable to remove target: "
		  "Read-only file system\n",
		  "fs.write /ro/b.c flag.read" },
		{ { "make" },
		  "/bin/sh: 1: cannot create /ro/q: Read-only file system\n"
		  "make: *** [/ro/mk:2: all] Error 2\n",
		  "fs.write /ro/q flag.read" },
		{ { "mkdir", "/opt" },
		  "mkdir: cannot create directory \xe2\x80\x98/opt/y\xe2\x80\x99: Read-only file "
		  "system\n",
		  "fs.write /opt/y system.absent" },
		{ { "cp", "/usr/share/x", "/ro/y" },
		  "cp: cannot create regular file '/ro/y': Read-only file system\n",
		  "fs.write /ro/y flag.read" },
	};
	static const struct row below_read_only[] = {
		{ { "touch", "x" },
		  "touch: cannot touch 'x': Read-only file system\n",
		  "fs.write /ro/x flag.read" },
		{ { "mkdir", "d" },
		  "mkdir: cannot create directory \xe2\x80\x98"
		  "d\xe2\x80\x99: Read-only file system\n",
		  "fs.write /ro/d flag.read" },
		{ { "bash", "-c", "echo > x" },
		  "bash: line 1: x: Read-only file system\n",
		  "fs.write /ro/x flag.read" },
		{ { "tar", "xf", "a.tar" },
		  "tar: a2.c: Cannot open: Read-only file system\n"
		  "tar: Exiting with failure status due to previous errors\n",
		  "fs.write /ro/a2.c flag.read" },
	};

	(void)state;
	CHECK(rows, WS);
	CHECK(below_read_only, "/ro");
}

#define LOOPBACK " network.loopback"

static void network(void **state)
{
	static const struct row rows[] = {
		{ { "curl", "https://example.org/x" },
		  "curl: (6) Could not resolve host: example.org\n",
		  "net.resolve example.org" LOOPBACK },
		{ { "curl", "-sS", "http://1.2.3.4:8080/" },
		  "curl: (7) Failed to connect to 1.2.3.4 port 8080 after 0 ms: Couldn't "
		  "connect to "
		  "server\n",
		  "net.connect 1.2.3.4:8080" LOOPBACK },
		{ { "wget", "https://example.org/x" },
		  "--2026-11-30 02:22:55--  https://example.org/x\n"
		  "Resolving example.org (example.org)... failed: Temporary failure in name "
		  "resolution.\n"
		  "wget: unable to resolve host address \xe2\x80\x98"
		  "example.org\xe2\x80\x99\n",
		  "net.resolve example.org" LOOPBACK },
		{ { "wget", "http://1.2.3.4/" },
		  "Connecting to 1.2.3.4:80... failed: Network is unreachable.\n",
		  "net.connect 1.2.3.4:80" LOOPBACK },
		{ { "git", "clone", "https://github.com/a/b" },
		  "Cloning into 'b'...\nfatal: unable to access "
		  "'https://github.com/a/b/': Could not "
		  "resolve host: github.com\n",
		  "net.resolve github.com" LOOPBACK },
		{ { "git", "clone", "git@github.com:a/b" },
		  "Cloning into 'b'...\nssh: Could not resolve hostname github.com: "
		  "Temporary failure "
		  "in name resolution\nfatal: Could not read from remote repository.\n",
		  "net.resolve github.com" LOOPBACK },
		{ { "ssh", "x" },
		  "ssh: Could not resolve hostname x: Name or service not known\n",
		  "net.resolve x" LOOPBACK },
		{ { "ssh", "1.2.3.4" },
		  "ssh: connect to host 1.2.3.4 port 22: Network is unreachable\n",
		  "net.connect 1.2.3.4:22" LOOPBACK },
		{ { "python3", "-c", "u.urlopen('https://example.org/')" },
		  "  File \"/usr/lib/python3.11/urllib/request.py\", line 1351, in do_open\n"
		  "    raise URLError(err)\n"
		  "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name "
		  "resolution>\n",
		  "net.resolve example.org" LOOPBACK },
		{ { "python3", "a.py" },
		  "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name "
		  "resolution>\n",
		  "net.resolve " LOOPBACK },
		{ { "python3", "a.py" },
		  "OSError: [Errno 101] Network is unreachable\n",
		  "net.connect " LOOPBACK },
		{ { "ping", "1.2.3.4" },
		  "ping: connect: Network is unreachable\n",
		  "net.connect 1.2.3.4" LOOPBACK },
		{ { "node", "a.js" },
		  "Error: getaddrinfo EAI_AGAIN example.org\n  errno: -3001,\n  code: "
		  "'EAI_AGAIN',\n"
		  "  syscall: 'getaddrinfo',\n  hostname: 'example.org'\n}\n",
		  "net.resolve example.org" LOOPBACK },
		{ { "node", "a.js" },
		  "Error: connect ENETUNREACH 1.2.3.4:80 - Local (0.0.0.0:0)\n  code: "
		  "'ENETUNREACH',\n",
		  "net.connect 1.2.3.4:80" LOOPBACK },
		{ { "node", "a.js" },
		  "Error: connect ENETUNREACH 2606:4700::1111:443 - Local (:::0)\n",
		  "net.connect 2606:4700::1111:443" LOOPBACK },
		{ { "npm", "install", "left-pad" },
		  "npm error code EAI_AGAIN\nnpm error syscall getaddrinfo\n"
		  "npm error errno EAI_AGAIN\nnpm error request to "
		  "https://registry.npmjs.org/left-pad failed, reason: getaddrinfo EAI_AGAIN "
		  "registry.npmjs.org\n",
		  "net.resolve registry.npmjs.org" LOOPBACK },
		{ { "pip", "install", "requests" },
		  "WARNING: Retrying (Retry(total=0, connect=None, read=None, redirect=None, "
		  "status=None)) after connection broken by "
		  "'NewConnectionError('<pip._vendor.urllib3."
		  "connection.HTTPSConnection object at 0x7f1>: Failed to establish a new "
		  "connection: "
		  "[Errno -3] Temporary failure in name resolution')': /simple/requests/\n",
		  "net.resolve " LOOPBACK },
		{ { "./client" },
		  "called `Result::unwrap()` on an `Err` value: Custom { kind: "
		  "Uncategorized, error: "
		  "\"failed to lookup address information: Temporary failure in name "
		  "resolution\" }\n",
		  "net.resolve " LOOPBACK },
		{ { "java", "J" },
		  "Exception in thread \"main\" java.net.UnknownHostException: example.org\n"
		  "\tat java.base/sun.nio.ch.NioSocketImpl.connect(NioSocketImpl.java:567)\n",
		  "net.resolve example.org" LOOPBACK },
		{ { "go", "get" },
		  "go: Get \"https://proxy.golang.org/x\": dial tcp: lookup proxy.golang.org on "
		  "127.0.0.53:53: no such host\n",
		  "net.resolve proxy.golang.org" LOOPBACK },
		{ { "go", "run", "." },
		  "dial tcp 1.2.3.4:443: connect: network is unreachable\n",
		  "net.connect 1.2.3.4:443" LOOPBACK },
		{ { "go", "run", "." },
		  "dial tcp [2606:4700::1]:443: connect: network is unreachable\n",
		  "net.connect [2606:4700::1]:443" LOOPBACK },
		{ { "bash", "-c", "echo > /dev/tcp/1.2.3.4/80" },
		  "bash: connect: Network is unreachable\n"
		  "bash: line 1: /dev/tcp/1.2.3.4/80: Network is unreachable\n",
		  "net.connect 1.2.3.4:80" LOOPBACK },
		{ { "bash", "-c", "echo > /dev/tcp/example.org/80" },
		  "bash: line 1: example.org: Temporary failure in name resolution\n"
		  "bash: line 1: /dev/tcp/example.org/80: Invalid argument\n",
		  "net.resolve example.org" LOOPBACK },
		{ { "cargo", "install", "x" },
		  "warning: spurious network error (3 tries remaining): [6] Could not "
		  "resolve hostname "
		  "(Could not resolve host: index.crates.io)\n",
		  "net.resolve index.crates.io" LOOPBACK },
		{ { "apt-get", "update" },
		  "W: Failed to fetch "
		  "http://deb.debian.org/debian/dists/bookworm/InRelease  Temporary "
		  "failure resolving 'deb.debian.org'\n",
		  "net.resolve deb.debian.org" LOOPBACK },
		/* a password of a URL is never repeated */
		{ { "tool", "https://me:pass@example.org:8443/x" },
		  "tool: Network is unreachable\n",
		  "net.connect example.org:8443" LOOPBACK },
	};

	(void)state;
	CHECK(rows, WS);
}

static void nothing(void **state)
{
	static const struct row rows[] = {
		{ { "true" }, "", NULL },
		{ { "gcc", "a.c" },
		  "a.c:1:10: fatal error: none.h: No such file or directory\n    1 | #include "
		  "\"none.h\"\n      |          ^~~~~~~~\ncompilation terminated.\n",
		  NULL },
		{ { "gcc", WS "/a.c" },
		  WS "/a.c:1:10: fatal error: sub/none.h: No such file or directory\n",
		  NULL },
		{ { "gcc", "src/a.c" },
		  "src/a.c:1:10: fatal error: ../none.h: No such file or directory\n",
		  NULL },
		{ { "./configure", "--prefix=/opt/none" },
		  "a.c:1:10: fatal error: none.h: No such file or directory\n",
		  NULL },
		{ { "gcc", "-I/opt/none", "b.c" },
		  "b.c: In function \xe2\x80\x98main\xe2\x80\x99:\nb.c:1:20: error: "
		  "\xe2\x80\x98x\xe2\x80"
		  "\x99 undeclared (first use in this function)\n",
		  NULL },
		{ { "foo", "/opt/none/x" }, "foo.c:3: error\n", NULL },
		{ { "gcc", "-L/opt/none", "-lfoo" },
		  "/usr/bin/ld: cannot find -lfoo: No such file or directory\n"
		  "collect2: error: ld returned 1 exit status\n",
		  NULL },
		{ { "make", "-f", "mk2" },
		  "make: *** No rule to make target 'none.o', needed by 'all'.  Stop.\n",
		  NULL },
		{ { "make", "PREFIX=/opt/none" }, "make: *** [Makefile:2: all] Error 1\n", NULL },
		{ { "python3", "-c", "import nonex" },
		  "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n"
		  "ModuleNotFoundError: No module named 'nonex'\n",
		  NULL },
		{ { "python3", "a.py" },
		  "  File \"/opt/none/a.py\", line 3, in <module>\n    "
		  "1/0\nZeroDivisionError: division "
		  "by zero\n",
		  NULL },
		{ { "node", "a.js" },
		  "Error: Cannot find module 'left-pad'\nRequire stack:\n- " WS "/a.js\n",
		  NULL },
		{ { "bash", "-c", "none" }, "bash: line 1: none: command not found\n", NULL },
		{ { "sh", "-c", "none" }, "sh: 1: none: not found\n", NULL },
		{ { "env", "python9" },
		  "/usr/bin/env: \xe2\x80\x98python9\xe2\x80\x99: No such file or directory\n",
		  NULL },
		{ { "ls", "/usr/none" },
		  "ls: cannot access '/usr/none': No such file or directory\n",
		  NULL },
		{ { "cat", "none" }, "cat: none: No such file or directory\n", NULL },
		{ { "cat", WS "/none" }, "cat: " WS "/none: No such file or directory\n", NULL },
		{ { "cat", "/tmp/none" }, "cat: /tmp/none: No such file or directory\n", NULL },
		{ { "cat", "/proc/9999999/stat" },
		  "cat: /proc/9999999/stat: No such file or directory\n",
		  NULL },
		{ { "cat", "/dev/none" }, "cat: /dev/none: No such file or directory\n", NULL },
		{ { "ls", "/run/user/1" },
		  "ls: cannot access '/run/user/1': No such file\n",
		  NULL },
		{ { "ls", "/home/u/src" },
		  "ls: cannot open directory '/home/u/src': Permission denied\n",
		  NULL },
		{ { "touch", "/" }, "touch: cannot touch '/': Permission denied\n", NULL },
		{ { "cat", "~" }, "cat: /home/u: Permission denied\n", NULL },
		{ { "cat", "/usr/secret" }, "cat: /usr/secret: Permission denied\n", NULL },
		{ { "touch", "/usr/x" },
		  "touch: cannot touch '/usr/x': Permission denied\n",
		  NULL },
		{ { "touch", "x" }, "touch: cannot touch 'x': Permission denied\n", NULL },
		{ { "cat", "ci/none" }, "cat: ci/none: No such file or directory\n", NULL },
		{ { "./a.out" },
		  "./a.out: error while loading shared libraries: libfoo.so.1: cannot "
		  "open shared object "
		  "file: No such file or directory\n",
		  NULL },
		{ { "perl", "a.pl" },
		  "Can't locate Foo.pm in @INC (you may need to install the Foo module) "
		  "(@INC contains: "
		  "/etc/perl /opt/none/perl) at a.pl line 1.\n",
		  NULL },
		{ { "git", "status" },
		  "fatal: not a git repository (or any of the parent directories): .git\n",
		  NULL },
		{ { "grep", "x", "/opt/none/x" }, "", NULL },
		{ { "tool", "/opt/none/x" }, "tool: bad magic in /opt/none/x\n", NULL },
		{ { "npm", "test" },
		  "npm error A complete log of this run can be found in: "
		  "/home/u/.npm/_logs/1.log\n",
		  NULL },
		{ { "docker", "ps" },
		  "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is "
		  "the docker "
		  "daemon running?\n",
		  NULL },
		{ { "curl", "http://127.0.0.1:1/" },
		  "curl: (7) Failed to connect to 127.0.0.1 port 1 after 0 ms: Couldn't connect to "
		  "server\n",
		  NULL },
		{ { "curl", "http://localhost:1/" },
		  "curl: (7) Failed to connect to localhost port 1 after 0 ms: Couldn't connect to "
		  "server\n",
		  NULL },
		{ { "curl", "https://example.org/" },
		  "curl: (22) The requested URL returned error: 404\n",
		  NULL },
		{ { "python3", "a.py" },
		  "ConnectionRefusedError: [Errno 111] Connection refused\n",
		  NULL },
		{ { "node", "a.js" }, "Error: connect ECONNREFUSED 127.0.0.1:5432\n", NULL },
		{ { "tool" }, "tool: failed to connect to database\n", NULL },
		{ { "tool" }, "Resolving dependencies from https://example.org/... done\n", NULL },
		{ { "rustc", "a.rs" },
		  "error[E0583]: file not found for module `none`\n --> a.rs:1:1\n",
		  NULL },
		{ { "rm", "x" }, "rm: cannot remove 'x': Device or resource busy\n", NULL },
		{ { "npm", "install" },
		  "npm error code ERESOLVE\nnpm error ERESOLVE could not resolve\n",
		  NULL },
		{ { "esbuild", "a.js" }, "error: Could not resolve \"react\"\n", NULL },
		{ { "mvn", "-o", "test" },
		  "[ERROR] Could not resolve dependencies for project a:b:jar:1.0\n",
		  NULL },
		{ { "npm", "test" },
		  "Error: expected 200, got 404: Not Found: GET /api/users\n",
		  NULL },
		{ { "npm", "test" }, "Error: for /api/users the user does not exist\n", NULL },
		{ { "psql" }, "ERROR:  relation \"users\" does not exist\n", NULL },
		{ { "pytest" },
		  "FileNotFoundError: [Errno 2] No such file or directory: '/nonexistent/a'\n",
		  NULL },
		{ { "pytest" }, "OSError: /path/to/file: No such file or directory\n", NULL },
		{ { "clang", "a.c" }, "a.c:1:10: fatal error: 'none.h' file not found\n", NULL },
	};

	(void)state;
	CHECK(rows, WS);
}

/* A full tail may begin inside of a path: its first line is not believed. */
static void cut_tail(void **state)
{
	static const char *const argv[] = { "cat", NULL };
	static const char *const none[] = { NULL };
	static const char line[] = "/none/x: No such file or directory\n";
	char tail[INFER_TAIL_BYTES], got[256];

	(void)state;
	memset(tail, '\n', sizeof(tail));
	memcpy(tail, line, strlen(line));
	infer(argv, WS, tail, sizeof(tail), got, sizeof(got));
	assert_string_equal(got, "");
	infer(argv, WS, tail, sizeof(tail) - 1, got, sizeof(got));
	assert_string_equal(got, "fs.read /none/x system.absent");
	memset(tail, '/', sizeof(tail));
	infer(argv, WS, tail, sizeof(tail), got, sizeof(got));
	assert_string_equal(got, "");
	infer(none, WS, line, strlen(line), got, sizeof(got));
	assert_string_equal(got, "fs.read /none/x system.absent");
}

static void many_paths(void **state)
{
	static const char *const argv[] = { "cat", NULL };
	static struct denial_list list;
	char tail[INFER_TAIL_BYTES];
	size_t used = 0;

	(void)state;
	for (unsigned i = 0; used + 40 < sizeof(tail); i++)
		used += (size_t)snprintf(tail + used, sizeof(tail) - used, "/o%u: No such file\n",
					 i);
	infer_denials(&policy, argv, WS, tail, used, &list);
	assert_int_equal(list.count, DENIAL_LIMIT);
	assert_true(list.dropped > 0);
}

/* The port that a remedy needs, where it is not one of the web. */
static void ports_of_remedies(void **state)
{
	static const struct {
		const char *line, *grant;
	} rows_of[] = {
		{ "ssh: Could not resolve hostname github.com: Temporary failure in name "
		  "resolution\n",
		  "github.com:22" },
		{ "fatal: unable to look up 'git://example.org/x': could not resolve host: "
		  "example.org\n",
		  "example.org:9418" },
		{ "curl: (6) Could not resolve host: example.org\n", "" },
	};
	static const char *const argv[] = { "x", NULL };
	static struct denial_list list;

	(void)state;
	for (size_t i = 0; i < sizeof(rows_of) / sizeof(rows_of[0]); i++) {
		memset(&list, 0, sizeof(list));
		infer_denials(&policy, argv, WS, rows_of[i].line, strlen(rows_of[i].line), &list);
		assert_int_equal(list.count, 1);
		assert_string_equal(list.items[0].grant, rows_of[i].grant);
	}
}

static void set_id_bits(void **state)
{
	static const struct row rows_of[] = {
		{ { "chmod", "g+s", "." },
		  "chmod: changing permissions of '.': Operation not permitted\n",
		  "sys.setid " WS " syscall.allowlist" },
		{ { "chmod", "-R", "2775", "sub" },
		  "chmod: changing permissions of 'sub': Operation not permitted\n",
		  "sys.setid " WS "/sub syscall.allowlist" },
		{ { "sh", "-c", "umask 2; chmod u=rwxs x" },
		  "chmod: changing permissions of 'x': Operation not permitted\n",
		  "sys.setid " WS "/x syscall.allowlist" },
		/* of a file that is another's */
		{ { "chmod", "0755", "x" },
		  "chmod: changing permissions of 'x': Operation not permitted\n",
		  NULL },
		{ { "chmod", "g-s", "sources" },
		  "chmod: changing permissions of 'sources': Operation not permitted\n",
		  NULL },
	};

	(void)state;
	CHECK(rows_of, WS);
}

#define UNFOUND                                                                             \
	"ERROR: Could not find a version that satisfies the requirement x (from versions: " \
	"none)\nERROR: No matching distribution found for x\n"

/* Without retries pip says no word of the network. */
static void pip(void **state)
{
	static const struct row rows_of[] = {
		{ { "pip", "download", "x" }, UNFOUND, "net.resolve pypi.org network.loopback" },
		{ { "pip", "install", "-i", "https://pip.example.org/simple", "x" },
		  UNFOUND,
		  "net.resolve pip.example.org network.loopback" },
		{ { "pip", "install", "-i", "http://127.0.0.1:3141/", "x" }, UNFOUND, NULL },
		{ { "pip", "install", "--no-index", "x" }, UNFOUND, NULL },
		/* where it was more talkative its index is named already */
		{ { "make" },
		  "WARNING: Retrying: HTTPSConnection(host='pip.example.org', port=443): Failed to "
		  "resolve 'pip.example.org' ([Errno -3] Temporary failure in name "
		  "resolution)\n" UNFOUND,
		  "net.resolve pip.example.org network.loopback" },
	};

	(void)state;
	CHECK(rows_of, WS);
}

/* What was to be made is not there for an option to show: its directory is. */
static void remedies_of_writing(void **state)
{
	static const char *const argv[] = { "x", NULL };
	static const struct {
		const char *line, *grant;
	} rows_of[] = {
		{ "touch: cannot touch '/opt/none/x': No such file or directory\n", "/opt/none" },
		{ "sh: 1: cannot create /etc/foo: Read-only file system\n", "/etc" },
		{ "sh: 1: cannot create /foo: Read-only file system\n", "/" },
		{ "mkdir: cannot create directory '/usr/none/x': Read-only file system\n", "/usr" },
		{ "touch: cannot touch '/usr': Read-only file system\n", "" },
	};
	static struct denial_list list;

	(void)state;
	for (size_t i = 0; i < sizeof(rows_of) / sizeof(rows_of[0]); i++) {
		memset(&list, 0, sizeof(list));
		infer_denials(&policy, argv, WS, rows_of[i].line, strlen(rows_of[i].line), &list);
		assert_int_equal(list.count, 1);
		assert_int_equal(list.items[0].kind, DENIAL_FS_WRITE);
		infer_settle(&policy, &list.items[0]);
		assert_string_equal(list.items[0].grant, rows_of[i].grant);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(absent_paths),
		cmocka_unit_test(hidden_and_protected),
		cmocka_unit_test(read_only_paths),
		cmocka_unit_test(network),
		cmocka_unit_test(nothing),
		cmocka_unit_test(cut_tail),
		cmocka_unit_test(many_paths),
		cmocka_unit_test(ports_of_remedies),
		cmocka_unit_test(set_id_bits),
		cmocka_unit_test(pip),
		cmocka_unit_test(remedies_of_writing),
	};

	return cmocka_run_group_tests_name("infer", tests, NULL, NULL);
}
