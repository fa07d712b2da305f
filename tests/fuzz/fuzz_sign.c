/* Lines of heads and public keys: whatever is read is written again as the same bytes. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trace/sign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* of its own size, so that a read beyond it is seen */
	char *text = malloc(size ? size : 1);
	unsigned char public[SIGN_PUBLIC_BYTES];
	char line[SIGN_LINE_BYTES], pem[SIGN_PEM_BYTES];
	struct sign_claim claim;

	if (!text)
		abort();
	if (size)
		memcpy(text, data, size);
	if (sign_line_read(text, size, &claim) == 0) {
		sign_line(&claim, line);
		if (strlen(line) != size || memcmp(line, text, size) != 0)
			abort();
	}
	if (sign_pem_read(text, size, public) == 0) {
		sign_pem(public, pem);
		if (strlen(pem) - size > 1 || memcmp(pem, text, size) != 0)
			abort();
	}
	free(text);
	return 0;
}
