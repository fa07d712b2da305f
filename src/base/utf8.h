/* Strict UTF-8 (RFC 3629) and what of it may be shown to a person. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decodes one code point of the `left` bytes at text. Returns its length in bytes, or 0 where the
 * bytes are no valid UTF-8 (overlong forms, surrogates and values above 0x10ffff included).
 */
size_t utf8_decode(const char *text, size_t left, uint32_t *ret_point);

/* False for C0, C1, DEL, bidi controls, zero-width and other format characters. */
bool utf8_is_visible(uint32_t point);

/* True when more bytes could make a code point of these (at least one), by lead and tails. */
bool utf8_is_cut(const void *text, size_t length);
