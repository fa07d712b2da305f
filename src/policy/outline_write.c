/* The bytes of an outline. Linked into bawn-parse, and into tests. */
#include "policy/outline.h"

#include "base/buffer.h"
#include "ipc/codec.h"

#include <errno.h>

int outline_write(const struct outline *outline, struct buffer *buffer)
{
	size_t count = outline->fault.line ? 0 : outline->count;

	codec_put_u32(buffer, outline->fault.line);
	codec_put_u32(buffer, outline->fault.column);
	if (outline->fault.line)
		codec_put_string(buffer, outline->fault.text);
	codec_put_u32(buffer, (uint32_t)count);
	for (size_t i = 0; i < count; i++) {
		const struct outline_node *node = &outline->nodes[i];

		codec_put_u32(buffer, node->kind);
		codec_put_u32(buffer, node->is_plain);
		codec_put_u32(buffer, node->line);
		codec_put_u32(buffer, node->column);
		codec_put_u32(buffer, node->end);
		if (node->kind == OUTLINE_TEXT)
			codec_put_string(buffer, node->text);
	}
	return buffer->failed ? -ENOMEM : 0;
}
