/*
 * Feeds every file of a corpus directory to LLVMFuzzerTestOneInput() and reports in TAP, so that
 * the inputs of a fuzzer are a unit test of every build, without libFuzzer.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* The copy is exactly as long as the input, so that a read beyond it is seen by ASan. */
static int replay(const char *dir, const char *name)
{
	char path[4096];
	FILE *file;
	long size;
	uint8_t *data;
	int r = -1;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "rbe");
	if (!file)
		return -1;
	if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0) {
		rewind(file);
		data = malloc((size_t)size);
		if ((data || size == 0) && fread(data, 1, (size_t)size, file) == (size_t)size) {
			LLVMFuzzerTestOneInput(data, (size_t)size);
			r = 0;
		}
		free(data);
	}
	fclose(file);
	return r;
}

int main(int argc, char **argv)
{
	struct dirent **entries;
	int n, failed = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	n = scandir(argv[1], &entries, visible, alphasort);
	if (n <= 0) {
		printf("1..1\nnot ok 1 - corpus %s is missing or empty\n", argv[1]);
		return 1;
	}
	printf("1..%d\n", n);
	for (int i = 0; i < n; i++) {
		/* Printed before a crash could take it: the name of the input. */
		fprintf(stderr, "# %s\n", entries[i]->d_name);
		int r = replay(argv[1], entries[i]->d_name);

		printf("%s %d - %s\n", r ? "not ok" : "ok", i + 1, entries[i]->d_name);
		failed += r != 0;
		free(entries[i]);
	}
	free(entries);
	return failed ? 1 : 0;
}
