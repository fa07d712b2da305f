#include "base/utf8.h"

size_t utf8_decode(const char *text, size_t left, uint32_t *ret_point)
{
	const unsigned char *bytes = (const unsigned char *)text;
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t point;
	size_t length;

	if (!left)
		return 0;
	if (bytes[0] < 0x80) {
		*ret_point = bytes[0];
		return 1;
	}
	if (bytes[0] >= 0xc2 && bytes[0] <= 0xdf)
		length = 2;
	else if (bytes[0] >= 0xe0 && bytes[0] <= 0xef)
		length = 3;
	else if (bytes[0] >= 0xf0 && bytes[0] <= 0xf4)
		length = 4;
	else
		return 0;
	if (left < length)
		return 0;
	point = bytes[0] & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | (bytes[i] & 0x3f);
	}
	if (point < least[length] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
		return 0;
	*ret_point = point;
	return length;
}

bool utf8_is_visible(uint32_t point)
{
	/* Unicode general categories Cc, Cf and Zl/Zp that change how a line reads */
	static const struct {
		uint32_t first, last;
	} hidden[] = {
		{ 0x00, 0x1f },	      { 0x7f, 0x9f },	    { 0xad, 0xad },
		{ 0x34f, 0x34f },     { 0x61c, 0x61c },	    { 0x115f, 0x1160 },
		{ 0x17b4, 0x17b5 },   { 0x180b, 0x180f },   { 0x200b, 0x200f },
		{ 0x2028, 0x202e },   { 0x2060, 0x206f },   { 0x3164, 0x3164 },
		{ 0xfe00, 0xfe0f },   { 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 },
		{ 0xfff0, 0xfffb },   { 0x13430, 0x1343f }, { 0x1bca0, 0x1bca3 },
		{ 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
	};

	if (point >= 0x20 && point < 0x7f)
		return true;
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (point >= hidden[i].first && point <= hidden[i].last)
			return false;
	return true;
}

bool utf8_is_cut(const void *text, size_t length)
{
	const unsigned char *bytes = text;
	size_t whole = bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : 2;

	if (bytes[0] < 0xc2 || bytes[0] > 0xf4 || length >= whole)
		return false;
	for (size_t i = 1; i < length; i++)
		if ((bytes[i] & 0xc0) != 0x80)
			return false;
	return true;
}
