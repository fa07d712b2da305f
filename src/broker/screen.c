#include "broker/screen.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

#define ESC 0x1b
#define BEL 0x07
#define CAN 0x18
#define SUB 0x1a
#define ENQ 0x05

/* Modes that would disturb whoever uses the terminal next, and how they are at rest. */
static const struct mode {
	unsigned short number;
	bool is_private;
	char rest;
} modes[] = {
	{ 2, false, 'l' },  /* keyboard locked */
	{ 4, false, 'l' },  /* insert */
	{ 20, false, 'l' }, /* newline */
	{ 1, true, 'l' },   /* cursor keys */
	{ 5, true, 'l' },   /* reverse video */
	{ 6, true, 'l' },   /* origin */
	{ 7, true, 'h' },   /* wrap */
	{ 9, true, 'l' },   /* mouse, 9 to 1016 */
	{ 1000, true, 'l' }, { 1001, true, 'l' }, { 1002, true, 'l' },
	{ 1003, true, 'l' }, { 1004, true, 'l' }, /* focus */
	{ 1005, true, 'l' }, { 1006, true, 'l' }, { 1015, true, 'l' },
	{ 1016, true, 'l' }, { 25, true, 'h' },	  /* cursor shown */
	{ 66, true, 'l' },			  /* keypad */
	{ 69, true, 'l' },			  /* margins left and right */
	{ 1042, true, 'l' },			  /* urgency */
	{ 2004, true, 'l' },			  /* bracketed paste */
	{ 2026, true, 'l' },			  /* updates held back */
	{ 2031, true, 'l' },			  /* reports of colour scheme, size */
	{ 2048, true, 'l' }, { 9001, true, 'l' }, /* win32 input */
	{ 47, true, 'l' }, /* alternate screens, last: they restore the cursor */
	{ 1047, true, 'l' }, { 1049, true, 'l' },
};

#define MODE_COUNT (sizeof(modes) / sizeof(modes[0]))
#define ALTERNATE_COUNT 3

/*
 * OSC by number: titles, palette, links, colours of text, cursor and selection, prompt marks. All
 * others drop.
 */
static const unsigned short strings[] = { 0,  1,   2,	4,   8,	  10,  11,  12,	 13,  14, 17,
					  19, 104, 110, 111, 112, 113, 114, 117, 119, 133 };

static char *emit(char *out, const void *bytes, size_t length)
{
	memcpy(out, bytes, length);
	return out + length;
}

static char *emit_held(struct screen_filter *filter, char *out)
{
	filter->is_touched = true;
	out = emit(out, filter->held, filter->held_length);
	filter->held_length = 0;
	filter->state = SCREEN_GROUND;
	return out;
}

static void drop(struct screen_filter *filter, enum screen_state next)
{
	filter->held_length = 0;
	filter->state = next;
	filter->dropped++;
}

static void hold(struct screen_filter *filter, unsigned char byte)
{
	filter->held[filter->held_length++] = byte;
}

static void begin(struct screen_filter *filter, enum screen_state state)
{
	filter->state = state;
	filter->held_length = 0;
	hold(filter, ESC);
}

/* The first parameter of a CSI or OSC; 0 when there is none, and something large beyond 65535. */
static unsigned first_number(const unsigned char *bytes, size_t length)
{
	unsigned number = 0;

	for (size_t i = 0; i < length && bytes[i] >= '0' && bytes[i] <= '9' && number < 100000; i++)
		number = number * 10 + (unsigned)(bytes[i] - '0');
	return number;
}

/* What of CSI may pass, by its intermediate byte: the final bytes, "" for none. */
static const char *finals_with(unsigned char intermediate)
{
	switch (intermediate) {
	case ' ':
		return "qtu@A"; /* cursor style, bell volume, scroll */
	case '!':
		return "p"; /* soft reset */
	case '"':
		return "q"; /* protection; not p, which makes answers 8-bit */
	case '$':
		return "prtvxz{"; /* modes asked for (a number), rectangles */
	case '#':
		return "{}pqPQ"; /* stacks of colours */
	case '\'':
		return "}~"; /* columns */
	default:
		return "";
	}
}

static bool may_control(const unsigned char *parameters, size_t length, unsigned char final)
{
	unsigned char prefix = length && parameters[0] >= '<' ? parameters[0] : 0;
	unsigned char last = length ? parameters[length - 1] : 0;

	if (last >= 0x20 && last <= 0x2f) {
		if (length > 1 && parameters[length - 2] >= 0x20 && parameters[length - 2] <= 0x2f)
			return false;
		return strchr(finals_with(last), final) != NULL;
	}
	switch (final) {
	case 'i': /* the printer */
	case 'y': /* self test */
		return false;
	case 't':
		if (!prefix)
			switch (first_number(parameters, length)) {
			case 14:
			case 15:
			case 16:
			case 18:
			case 19: /* sizes, in numbers */
			case 22:
			case 23: /* stack of titles */
				return true;
			default:
				return false;
			}
		return false;
	case 'T':
		return prefix != '>'; /* how titles are reported */
	default:
		return true;
	}
}

/* Whether the terminal may show the alternate screen, which has keyboard flags of its own. */
static unsigned is_alternate(const struct screen_filter *filter)
{
	uint64_t alternate = (1ull << MODE_COUNT) - (1ull << (MODE_COUNT - ALTERNATE_COUNT));

	return (filter->modes & alternate) != 0;
}

/* What is restored (XTRESTORE, final r) is what was saved at some time: maybe not at rest. */
static void note_mode(struct screen_filter *filter, unsigned number, bool is_private, char final)
{
	for (unsigned i = 0; i < MODE_COUNT; i++) {
		if (modes[i].number != number || modes[i].is_private != is_private)
			continue;
		if (modes[i].rest == final)
			filter->modes &= ~(1ull << i);
		else
			filter->modes |= 1ull << i;
	}
}

/* Keyboard flags are pushed (CSI > u), popped (CSI < u), or set as they are (CSI = u). */
static void note_flags(struct screen_filter *filter, unsigned char prefix, unsigned number)
{
	unsigned which = is_alternate(filter);
	unsigned *pushed = &filter->pushed[which];

	if (prefix == '>') {
		*pushed += *pushed < 99;
	} else if (prefix == '<') {
		number = number ? number : 1;
		*pushed = number < *pushed ? *pushed - number : 0;
	} else if (prefix == '=' && !*pushed) {
		filter->has_flags[which] = true;
	}
}

static void note_control(struct screen_filter *filter, const unsigned char *parameters,
			 size_t length, unsigned char final)
{
	unsigned char prefix = length && parameters[0] >= '<' ? parameters[0] : 0;

	if (length && parameters[length - 1] < 0x30)
		return; /* with an intermediate: something else, that changes none of these */
	if (((final == 'h' || final == 'l') && (prefix == '?' || !prefix)) ||
	    (final == 'r' && prefix == '?')) {
		for (size_t i = prefix ? 1 : 0; i <= length; i++) {
			note_mode(filter, first_number(parameters + i, length - i), prefix != 0,
				  (char) final);
			while (i < length && parameters[i] != ';')
				i++;
		}
	} else if (final == 'r') {
		filter->has_region |= !prefix;
	} else if (final == 'm') {
		filter->has_modified |= prefix == '>';
	} else if (final == 'u') {
		note_flags(filter, prefix, first_number(parameters + 1, length ? length - 1 : 0));
	}
}

static char *end_control(struct screen_filter *filter, unsigned char final, char *out)
{
	const unsigned char *parameters = filter->held + 2;
	size_t length = filter->held_length - 2;

	if (!may_control(parameters, length, final)) {
		drop(filter, SCREEN_GROUND);
		return out;
	}
	note_control(filter, parameters, length, final);
	hold(filter, final);
	return emit_held(filter, out);
}

static bool may_string(unsigned number)
{
	for (unsigned i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		if (strings[i] == number)
			return true;
	return false;
}

/* The number of an OSC is whole; what follows it passes or does not. */
static char *begin_string(struct screen_filter *filter, char *out)
{
	unsigned number = first_number(filter->held + 2, filter->held_length - 2);

	if (filter->held_length == 2 || !may_string(number)) {
		drop(filter, SCREEN_DROP);
		return out;
	}
	filter->is_linked |= number == 8;
	filter->is_coloured |= number == 4 || (number >= 10 && number <= 19);
	filter->string_length = 0;
	out = emit_held(filter, out);
	filter->state = SCREEN_STRING;
	return out;
}

/* Ends a string that passes, in the form given; back to the ground. */
static char *end_string(struct screen_filter *filter, const char *end, char *out)
{
	filter->state = SCREEN_GROUND;
	return emit(out, end, strlen(end));
}

static const char st[] = "\033\\", bel[] = "\a";

static char *step(struct screen_filter *filter, unsigned char byte, char *out);

static char *step_ground(struct screen_filter *filter, unsigned char byte, char *out)
{
	if (byte == ESC)
		begin(filter, SCREEN_ESCAPE);
	else if (byte == ENQ)
		drop(filter, SCREEN_GROUND);
	else
		*out++ = (char)byte;
	return out;
}

/* A C1 control by its number, 0x80-0x9f: the same as ESC and the byte 0x40 below. */
static char *step_c1(struct screen_filter *filter, unsigned char control, char *out)
{
	if (filter->state == SCREEN_STRING || filter->state == SCREEN_STRING_ESCAPE)
		out = end_string(filter, st, out);
	/* IND, NEL, HTS, RI, DCS, SOS, CSI, OSC, PM, APC; the others do nothing anywhere */
	if (!memchr("\x84\x85\x88\x8d\x90\x98\x9b\x9d\x9e\x9f", control, 10)) {
		drop(filter, SCREEN_GROUND);
		return out;
	}
	begin(filter, SCREEN_ESCAPE);
	return step(filter, (unsigned char)(control - 0x40), out);
}

static char *step_escape(struct screen_filter *filter, unsigned char byte, char *out)
{
	switch (byte) {
	case '[':
		hold(filter, byte);
		filter->state = SCREEN_CONTROL;
		return out;
	case ']':
		hold(filter, byte);
		filter->is_osc = true;
		filter->state = SCREEN_NUMBER;
		return out;
	case 'P':
	case 'X':
	case '^':
	case '_':
	case 'k': /* a title for screen and tmux, up to ST */
		filter->is_osc = false;
		drop(filter, SCREEN_DROP);
		return out;
	case '\\':
		drop(filter, SCREEN_GROUND);
		return out;
	default:
		break;
	}
	if (byte >= 0x20 && byte <= 0x2f) {
		hold(filter, byte);
		filter->state = SCREEN_INTERMEDIATE;
		return out;
	}
	if (byte >= 0x30 && byte <= 0x7e) {
		if (byte == '=' || byte == '>')
			filter->has_keypad = byte == '=';
		hold(filter, byte);
		return emit_held(filter, out);
	}
	/* a control in the middle: what was begun is no sequence */
	drop(filter, SCREEN_GROUND);
	return step(filter, byte, out);
}

/* Character sets and the alignment pattern; other encodings and announcements drop. */
static char *step_intermediate(struct screen_filter *filter, unsigned char byte, char *out)
{
	unsigned char first = filter->held[1];

	if (byte >= 0x20 && byte <= 0x2f && filter->held_length < 4) {
		hold(filter, byte);
		return out;
	}
	if (byte < 0x30 || byte > 0x7e) {
		drop(filter, SCREEN_GROUND);
		return step(filter, byte, out);
	}
	if ((first >= '(' && first <= '/' && first != ',') ||
	    (first == '#' && filter->held_length == 2)) {
		hold(filter, byte);
		return emit_held(filter, out);
	}
	drop(filter, SCREEN_GROUND);
	return out;
}

static char *step_control(struct screen_filter *filter, unsigned char byte, char *out)
{
	if (byte >= 0x40 && byte <= 0x7e)
		return end_control(filter, byte, out);
	if (byte < 0x20 || byte > 0x7e) {
		drop(filter, SCREEN_GROUND);
		return step(filter, byte, out);
	}
	/* <=>? come first or not at all; no parameter behind an intermediate */
	if ((byte >= '<' && byte <= '?' && filter->held_length > 2) ||
	    (byte >= 0x30 && filter->held_length > 2 &&
	     filter->held[filter->held_length - 1] <= 0x2f) ||
	    filter->held_length + 1 >= SCREEN_SEQUENCE_BYTES) {
		drop(filter, SCREEN_CONTROL_DROP);
		return out;
	}
	hold(filter, byte);
	return out;
}

static char *step_control_drop(struct screen_filter *filter, unsigned char byte, char *out)
{
	if (byte >= 0x20 && byte <= 0x3f)
		return out;
	filter->state = SCREEN_GROUND;
	return byte >= 0x40 && byte <= 0x7e ? out : step(filter, byte, out);
}

static char *step_number(struct screen_filter *filter, unsigned char byte, char *out)
{
	if (byte >= '0' && byte <= '9' && filter->held_length < 2 + 5) {
		hold(filter, byte);
		return out;
	}
	/* the Linux console's palette has no end of its own: R, or P and seven digits */
	if (filter->held_length == 2 && (byte == 'R' || byte == 'P')) {
		filter->string_length = 7;
		drop(filter, byte == 'R' ? SCREEN_GROUND : SCREEN_SKIP);
		return out;
	}
	/* anything else behind the digits could make another number of them */
	if (byte != ';' && byte != BEL && byte != ESC && byte != CAN && byte != SUB) {
		drop(filter, SCREEN_DROP);
		return step(filter, byte, out);
	}
	out = begin_string(filter, out);
	if (byte != ';' || filter->state != SCREEN_STRING)
		return step(filter, byte, out);
	*out++ = ';';
	return out;
}

/* Printable text of a title or link, an end, or what ends it all the same. */
static char *step_string(struct screen_filter *filter, unsigned char byte, char *out)
{
	if (byte == ESC) {
		filter->state = SCREEN_STRING_ESCAPE;
	} else if (byte == BEL) {
		out = end_string(filter, bel, out);
	} else if (byte == CAN || byte == SUB) {
		out = end_string(filter, st, out);
	} else if (byte < 0x20 || byte == 0x7f) {
		/* no text */
	} else if (filter->string_length++ >= SCREEN_STRING_BYTES) {
		out = end_string(filter, st, out);
		filter->state = SCREEN_DROP;
	} else {
		*out++ = (char)byte;
	}
	return out;
}

static void step_drop(struct screen_filter *filter, unsigned char byte)
{
	if (byte == ESC)
		filter->state = SCREEN_DROP_ESCAPE;
	else if (byte == CAN || byte == SUB || (byte == BEL && filter->is_osc))
		filter->state = SCREEN_GROUND;
}

/* ESC in a string: its end with \, else the string is over and another sequence begins. */
static char *step_string_escape(struct screen_filter *filter, unsigned char byte, char *out)
{
	if (filter->state == SCREEN_STRING_ESCAPE)
		out = end_string(filter, st, out);
	filter->state = SCREEN_GROUND;
	if (byte == '\\')
		return out;
	begin(filter, SCREEN_ESCAPE);
	return step(filter, byte, out);
}

/* Hexadecimal digits, as many as it takes; what is none ends it, and a code point stays whole. */
static char *step_skip(struct screen_filter *filter, unsigned char byte, char *out)
{
	bool is_digit = byte && strchr("0123456789abcdefABCDEF", byte);

	if (!is_digit || --filter->string_length == 0)
		filter->state = SCREEN_GROUND;
	return is_digit ? out : step(filter, byte, out);
}

/* One byte below 0x80, or any byte of text. At most two levels deep: a byte is retried once. */
static char *step(struct screen_filter *filter, unsigned char byte, char *out)
{
	switch (filter->state) {
	case SCREEN_GROUND:
		return step_ground(filter, byte, out);
	case SCREEN_ESCAPE:
		return step_escape(filter, byte, out);
	case SCREEN_INTERMEDIATE:
		return step_intermediate(filter, byte, out);
	case SCREEN_CONTROL:
		return step_control(filter, byte, out);
	case SCREEN_CONTROL_DROP:
		return step_control_drop(filter, byte, out);
	case SCREEN_NUMBER:
		return step_number(filter, byte, out);
	case SCREEN_STRING:
		return step_string(filter, byte, out);
	case SCREEN_DROP:
		step_drop(filter, byte);
		return out;
	case SCREEN_STRING_ESCAPE:
	case SCREEN_DROP_ESCAPE:
		return step_string_escape(filter, byte, out);
	case SCREEN_SKIP:
		return step_skip(filter, byte, out);
	}
	return out;
}

static bool is_string(const struct screen_filter *filter)
{
	return filter->state == SCREEN_STRING || filter->state == SCREEN_DROP;
}

/* A code point that is whole: its bytes are text, or it is a C1 control. */
static char *step_point(struct screen_filter *filter, uint32_t point, char *out)
{
	if (point >= 0x80 && point < 0xa0) {
		if (point == 0x9c && filter->state == SCREEN_STRING)
			return end_string(filter, st, out);
		if (point == 0x9c && filter->state == SCREEN_DROP)
			filter->state = SCREEN_GROUND;
		if (point == 0x9c || is_string(filter))
			return out;
		return step_c1(filter, (unsigned char)point, out);
	}
	for (size_t i = 0; i < filter->point_length; i++)
		out = step(filter, filter->point[i], out);
	return out;
}

/* A byte that is no part of UTF-8: an 8-bit control, or noise, which stays as it is in text. */
static char *step_stray(struct screen_filter *filter, unsigned char byte, char *out)
{
	if (is_string(filter))
		return out;
	if (byte >= 0x80 && byte < 0xa0)
		return step_c1(filter, byte, out);
	return step(filter, byte, out);
}

static char *step_byte(struct screen_filter *filter, unsigned char byte, char *out)
{
	uint32_t point;

	if (!filter->point_length && byte < 0x80)
		return step(filter, byte, out);
	filter->point[filter->point_length++] = byte;
	while (filter->point_length) {
		size_t used = filter->point[0] < 0x80 ? 0 :
							utf8_decode((const char *)filter->point,
								    filter->point_length, &point);

		if (!used && utf8_is_cut(filter->point, filter->point_length))
			return out;
		if (used) {
			/* all that was held: a shorter one would have been found before */
			out = step_point(filter, point, out);
			filter->point_length = 0;
			return out;
		}
		byte = filter->point[0];
		filter->point_length--;
		memmove(filter->point, filter->point + 1, filter->point_length);
		out = byte < 0x80 ? step(filter, byte, out) : step_stray(filter, byte, out);
	}
	return out;
}

size_t screen_filter(struct screen_filter *filter, const void *bytes, size_t length, char *out)
{
	const unsigned char *at = bytes, *end = at + length;
	char *start = out;

	while (at < end) {
		if (filter->state == SCREEN_GROUND && !filter->point_length && *at >= 0x20 &&
		    *at < 0x7f)
			*out++ = (char)*at++;
		else
			out = step_byte(filter, *at++, out);
	}
	return (size_t)(out - start);
}

static char *emit_text(char *out, const char *text)
{
	return emit(out, text, strlen(text));
}

static char *end_flags(const struct screen_filter *filter, unsigned which, char *out,
		       const char *end)
{
	if (filter->pushed[which])
		out += snprintf(out, (size_t)(end - out), "\033[<%uu", filter->pushed[which]);
	if (filter->has_flags[which])
		out = emit_text(out, "\033[=0u");
	return out;
}

size_t screen_filter_end(struct screen_filter *filter, char *out)
{
	char *start = out, *end = out + SCREEN_END_BYTES;

	if (filter->state == SCREEN_STRING || filter->state == SCREEN_STRING_ESCAPE)
		out = emit_text(out, st);
	if (filter->is_linked)
		out = emit_text(out, "\033]8;;\033\\");
	if (filter->is_coloured)
		out = emit_text(out, "\033]104\a\033]110\a\033]111\a\033]112\a");
	if (filter->has_region)
		/* it moves the cursor home */
		out = emit_text(out, "\0337\033[r\0338");
	if (is_alternate(filter))
		out = end_flags(filter, 1, out, end);
	if (filter->has_modified)
		out = emit_text(out, "\033[>4m");
	if (filter->has_keypad)
		out = emit_text(out, "\033>");
	for (unsigned i = 0; i < MODE_COUNT; i++)
		if (filter->modes >> i & 1)
			out += snprintf(out, (size_t)(end - out), "\033[%s%u%c",
					modes[i].is_private ? "?" : "", modes[i].number,
					modes[i].rest);
	out = end_flags(filter, 0, out, end);
	if (filter->is_touched)
		out = emit_text(out, "\033[0m\033(B\017");
	*filter = (struct screen_filter){ .dropped = filter->dropped };
	return (size_t)(out - start);
}
