"""What the benches work on: a C project, a git repository, a package of npm, a home in use."""
import subprocess

C_FILES = 60
GIT_FILES = 10_000
GIT_PER_DIRECTORY = 100

CACHES = (".npm/_cacache", ".cache/pip", ".cache/uv", ".cargo/registry", "go/pkg/mod",
          ".cache/go-build", ".m2/repository", ".gradle/caches", ".cache/ccache")
TOOLCHAINS = (".nvm/versions/node/v20.0.0/bin/node", ".pyenv/versions/3.11.0/bin/python",
              ".cargo/bin/cargo", ".rustup/toolchains/stable/bin/rustc", "go/bin/gopls",
              ".local/bin/tool", ".local/share/uv/python/cpython-3.11/bin/python",
              ".asdf/shims/node", ".local/share/mise/installs/node/20/bin/node",
              ".sdkman/candidates/java/17/bin/java")


def write(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def c_project(root):
    """About 60 sources with a few system headers each, and a Makefile."""
    for number in range(C_FILES):
        body = "".join(
            f"int f{number}_{part}(int n)\n{{\n\tchar text[64];\n\n"
            f"\tsnprintf(text, sizeof(text), \"%d\", n + {part});\n"
            "\treturn n > 0 ? atoi(text) * n : (int)strlen(text);\n}\n\n" for part in range(3))
        write(root / f"part{number}.c",
              f"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n{body}")
    write(root / "main.c", "int f0_0(int n);\n\nint main(void)\n{\n\treturn f0_0(0) < 0;\n}\n")
    write(root / "Makefile",
          "CFLAGS := -O0 -w\nOBJECTS := $(patsubst %.c,%.o,$(wildcard *.c))\n"
          "program: $(OBJECTS)\n\t@gcc -o $@ $^\n%.o: %.c\n\t@gcc $(CFLAGS) -c -o $@ $<\n"
          "clean:\n\t@rm -f *.o program\n")


def git_repository(root, environment):
    for number in range(GIT_FILES):
        directory = root / f"d{number // GIT_PER_DIRECTORY:03}"
        if number % GIT_PER_DIRECTORY == 0:
            directory.mkdir(parents=True)
        (directory / f"file{number}.txt").write_text(f"line {number}\n")
    for command in (["init", "-q"], ["add", "."],
                    ["-c", "user.name=b", "-c", "user.email=b@localhost", "commit", "-qm", "all"]):
        subprocess.run(["git", *command], cwd=root, env=environment, check=True, timeout=120)


def npm_package(root):
    write(root / "package.json",
          '{"name": "b", "version": "1.0.0", "private": true, "scripts": {"say": "echo said"}}\n')
    # nothing asked of the network, and no log in a home that is a tmpfs in the box alone
    write(root / ".npmrc", "offline=true\nupdate-notifier=false\nfund=false\naudit=false\n"
                           "logs-max=0\n")


def used_home(root):
    """The caches and toolchains of a developer's home, each with a few files."""
    for path in CACHES:
        for number in range(20):
            write(root / path / f"{number % 4}" / f"entry{number}", "cached\n")
    for path in TOOLCHAINS:
        write(root / path, "#!/bin/sh\nexit 0\n", 0o755)
