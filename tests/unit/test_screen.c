#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "broker/screen.h"

#define ROOM_BYTES 65536

/* Filters in chunks (0 = at once), without the end. */
static size_t filter_chunks(const char *text, size_t length, size_t chunk, char *out,
			    struct screen_filter *filter)
{
	size_t used = 0;

	for (size_t at = 0; at < length;) {
		size_t part = chunk && chunk < length - at ? chunk : length - at;
		/* a copy of exact size: a read beyond the chunk is seen by ASan */
		char *copy = malloc(part);

		assert_non_null(copy);
		memcpy(copy, text + at, part);
		used += screen_filter(filter, copy, part, out + used);
		free(copy);
		at += part;
	}
	return used;
}

static void expect_bytes(const char *text, size_t length, const char *wanted, size_t wanted_length)
{
	char out[ROOM_BYTES];

	for (size_t chunk = 0; chunk <= 8; chunk++) {
		struct screen_filter filter = { 0 };
		size_t used = filter_chunks(text, length, chunk, out, &filter);

		if (used != wanted_length || memcmp(out, wanted, used) != 0) {
			for (size_t i = 0; i < used; i++)
				if (out[i] == 0x1b)
					out[i] = '~';
			fail_msg("chunks of %zu: '%.*s'", chunk, (int)used, out);
		}
	}
}

static void expect(const char *text, const char *wanted)
{
	expect_bytes(text, strlen(text), wanted, strlen(wanted));
}

static void what_programs_need_passes(void **state)
{
	static const char *const texts[] = {
		"text\r\n\ttab \b\b \a\v\f",
		"\033[31;1mred\033[0m \033[38;2;1;2;3;48:2::4:5:6m",
		"\033[?1049h\033[22;0;0t\033[?1h\033=\033[1;24r\033[?25l\033[H\033[2J",
		"\033[c\033[>c\033[=c\033[6n\033[?6n\033[>q\033[?2026$p\033[14t\033[18t",
		"\033]0;title\a\033]2;title \303\251\033\\\033]10;?\a\033]11;?\033\\\033]4;1;?\a",
		"\033]8;id=1;https://example.org/\033\\link\033]8;;\033\\",
		"\033]104\a\033]112\033\\\033]133;A\a",
		"\033(B\033)0\016lqk\017\0337\0338\033D\033M\033c\033#8",
		"\033[2 q\033[!p\033[1\"q\033[?1000h\033[?1006h\033[>4;2m\033[>1u\033[<u\033[?u",
		"\303\251 \346\274\242 \360\237\230\200 \342\200\213",
		"\303", /* held until more comes, below */
	};

	(void)state;
	for (size_t i = 0; i + 1 < sizeof(texts) / sizeof(texts[0]); i++)
		expect(texts[i], texts[i]);
	expect("\303", "");
	expect("\303\303\251", "\303\303\251");
	/* noise of other encodings stays noise */
	expect("caf\351 \377\300", "caf\351 \377\300");
}

static void what_types_or_reads_is_dropped(void **state)
{
	static const char *const texts[] = {
		"\033]52;c;cm0gLXJm\a", /* the clipboard, written */
		"\033]52;c;?\033\\",	/* and read */
		"\033]5522;type=read\033\\",
		"\033[21t",
		"\033[20t",
		"\033[;21t",
		"\033[021t",	    /* titles typed */
		"\033[4294967317t", /* 21 for one who overflows */
		"\005",		    /* answerback */
		"\033P$q\"p\033\\",
		"\033P+q544e\033\\",
		"\033P1;1|17/6c73\033\\",
		"\033P0;1;0!z6c\033\\",
		"\033[1*z",
		"\033[1;1;1;1;5;5*y",
		"\033[1$w",
		"\033[#y",
		"\033[&w",
		"\033[5i",
		"\033[?5i",
		"\033[i", /* printer */
		"\033[8;1;1t",
		"\033[3;0;0t",
		"\033[2t",
		"\033[>2t",
		"\033[>2T",
		"\033[2;1y",
		"\033]1337;File=name=YQ==;inline=0:YQ==\a",
		"\033]777;notify;a;b\a",
		"\033]9;a\a",
		"\033]50;#1\a",
		"\033]7;file:///\a",
		"\033]633;E;ls\a",
		"\033]l\033\\",
		"\033_Ga=T,t=f;L2V0Yy9wYXNzd2Q=\033\\",
		"\033^x\033\\",
		"\033Xx\033\\",
		"\033Ptmux;\033\033]52;c;YQ==\a\033\\",
		"\033ktitle\033\\",
		"\033%@",
		"\033%G",
		"\033 G",
		"\033[62;0\"p",
		"\033$(C",
		"\033\\",
		"\033]R",
		"\033]P0123456",
		/* C1 controls, as code points and as bytes */
		"\302\233"
		"21t",
		"\302\235"
		"52;c;YQ==\302\234",
		"\302\220$q\302\234",
		"\23321t",
		"\23552;c;YQ==\a",
		"\220$q\033\\",
		"\302\2335i",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char text[256];

		(void)snprintf(text, sizeof(text), "A%sB", texts[i]);
		expect(text, "AB");
	}
}

/* What could make an emulator see another sequence than we do. */
static void tricks_do_not_work(void **state)
{
	(void)state;
	/* a number continued behind what ends it for us */
	expect("\033]1\001337;File=:YQ==\aB", "B");
	expect("\033]0000052;c;YQ==\aB", "B");
	expect("\033]0\17752;\aB", "B");
	expect("\033]1\302\200337;x\aB", "337;x\aB");
	/* a title ended early, in ways that emulators differ about */
	expect("\033]0;a\033]52;c;YQ==\aB", "\033]0;a\033\\B");
	expect("\033]0;a\030\033[21tB", "\033]0;a\033\\B");
	expect("\033]0;a\302\234\033[21tB", "\033]0;a\033\\B");
	expect("\033]0;a\234\033[21tB", "\033]0;a\033\\B");
	expect("\033]0;a\nb\001c\aB", "\033]0;abc\aB");
	expect("\033]0;a\033\302\23321tB", "\033]0;a\033\\B");
	expect("\033]0;a\033\303\251B", "\033]0;a\033\\\303\251B");
	/* controls inside of a sequence */
	expect("\033[2\0331;21tB", "\0331;21tB");
	expect("\033[2\n1tB", "\n1tB");
	expect("\033\033[21tB", "B");
	expect("\033[\0301;31mB", "\0301;31mB");
	expect("\033[1 ?tB", "B");
	expect("\033[1;?tB", "B");
	/* a continuation byte is a control of its own when its code point is none */
	expect("\342\23321tB", "\342B");
	expect("\300\23321tB", "\300B");
}

/* \0 in a text is no end of it for us. */
static void nul_is_no_end(void **state)
{
	static const char text[] = "\033]5\0002;c;YQ==\aB";

	(void)state;
	expect_bytes(text, sizeof(text) - 1, "B", 1);
	expect_bytes("a\0b", 3, "a\0b", 3);
}

static void long_sequences_are_bounded(void **state)
{
	char text[8192], out[ROOM_BYTES];
	struct screen_filter filter = { 0 };
	size_t used;

	(void)state;
	memset(text, '1', sizeof(text));
	memcpy(text, "\033[", 2);
	memcpy(text + 4000, "mB", 2);
	expect_bytes(text, 4002, "B", 1);
	memset(text, 'x', sizeof(text));
	memcpy(text, "\033]2;", 4);
	memcpy(text + sizeof(text) - 2, "\aB", 2);
	used = screen_filter(&filter, text, sizeof(text), out);
	assert_int_equal(used, 4 + SCREEN_STRING_BYTES + 2 + 1);
	assert_memory_equal(out + used - 3, "\033\\B", 3);
	/* dropped without a bound, and without memory */
	memcpy(text, "\033P", 2);
	expect_bytes(text, sizeof(text) - 2, "", 0);
}

static void expect_end(const char *text, const char *wanted)
{
	char out[ROOM_BYTES];
	struct screen_filter filter = { 0 };
	size_t used;

	(void)screen_filter(&filter, text, strlen(text), out);
	used = screen_filter_end(&filter, out);
	if (used != strlen(wanted) || memcmp(out, wanted, used) != 0)
		fail_msg("'%.*s'", (int)used - 1, out + 1);
}

static void the_end_undoes_what_was_left(void **state)
{
#define REST "\033[0m\033(B\017"
	(void)state;
	expect_end("plain text\n", "");
	expect_end("\033[31m", REST);
	expect_end("\033[?1049h\033[?25l\033[?1002;1006h",
		   "\033[?1002l\033[?1006l\033[?25h\033[?1049l" REST);
	expect_end("\033[?1049h\033[?25l\033[?25h\033[?1049l", REST);
	expect_end("\033[4h\033[?4h", "\033[4l" REST);
	expect_end("\033=\033[2;5r", "\0337\033[r\0338\033>" REST);
	expect_end("\033[>1u\033[>5u\033[<1u", "\033[<1u" REST);
	expect_end("\033[>1u\033[<u", REST);
	/* the flags below what was pushed; of the alternate screen, and of the main one */
	expect_end("\033[=1;1u", "\033[=0u" REST);
	expect_end("\033[>1u\033[=1;1u\033[<u", REST);
	expect_end("\033[>1u\033[?1049h\033[>3u\033[>3u", "\033[<2u\033[?1049l\033[<1u" REST);
	expect_end("\033[?1049h\033[>3u\033[?1049l", REST);
	/* saved and restored: no reset was seen */
	expect_end("\033[?1000h\033[?1000s\033[?1000l\033[?1000r", "\033[?1000l" REST);
	expect_end("\033[>4;2m", "\033[>4m" REST);
	expect_end("\033]8;;x\033\\", "\033]8;;\033\\" REST);
	expect_end("\033]11;#000\a", "\033]104\a\033]110\a\033]111\a\033]112\a" REST);
	/* an open title is closed, an open sequence forgotten */
	expect_end("\033]0;a", "\033\\" REST);
	expect_end("\033[3", "");
	expect_end("\033]52;c;", "");
}

static void the_end_fits_its_room(void **state)
{
	static const char rest[] = "\033[?25l\033[>1m\033=\033[r\033]8;;x\a\033]4\a\033]0;";
	char text[4096], out[ROOM_BYTES];
	struct screen_filter filter = { 0 };
	size_t used = 0;

	(void)state;
	for (unsigned i = 0; i < 10000; i++) {
		int length = snprintf(text, sizeof(text), "\033[?%uh\033[%uh\033[?%ul", i, i, 7u);

		(void)screen_filter(&filter, text, (size_t)length, out);
	}
	(void)screen_filter(&filter, rest, sizeof(rest) - 1, out);
	for (unsigned i = 0; i < 200; i++)
		(void)screen_filter(&filter, "\033[>1u", 5, out);
	used = screen_filter_end(&filter, out);
	assert_true(used > 200 && used <= SCREEN_END_BYTES);
}

/* What was let through is let through again, as it is; and where it is cut does not matter. */
static void the_output_is_canonical(void **state)
{
	static const char *const pieces[] = {
		"\033", "\033[", "\033]", "\033P", "\033\\",   "\a",	   ";",	   "?",
		"0",	"2",	 "52;c;", "21t",   "1",	       "m",	   "h",	   "a",
		"\n",	"\302",	 "\233",  "\235",  "\234",     "\303\251", "\030", " ",
		"\"",	"8;;",	 "\005",  "\177",  "\342\202", "\254",	   "(",	   "B",
		"k",	"R",	 "i",	  "$",	   "*",	       "\001",
	};
	static char text[4096], once[ROOM_BYTES], twice[ROOM_BYTES], cut[ROOM_BYTES];
	uint32_t seed = 12345;

	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		struct screen_filter first = { 0 }, second = { 0 }, third = { 0 };
		size_t length = 0, used, again;

		for (unsigned i = 0; i < 24; i++) {
			const char *piece;

			seed = seed * 1664525u + 1013904223u;
			piece = pieces[(seed >> 16) % (sizeof(pieces) / sizeof(pieces[0]))];
			memcpy(text + length, piece, strlen(piece));
			length += strlen(piece);
		}
		/* nothing stays open */
		memcpy(text + length, "\030\030", 2);
		length += 2;
		used = filter_chunks(text, length, 0, once, &first);
		assert_true(used <= SCREEN_GROWTH * (length + SCREEN_SEQUENCE_BYTES));
		assert_int_equal(filter_chunks(text, length, 1, cut, &third), used);
		assert_memory_equal(cut, once, used);
		again = filter_chunks(once, used, 0, twice, &second);
		if (used != again || memcmp(once, twice, used) != 0)
			fail_msg("round %u: %zu became %zu", round, used, again);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_programs_need_passes),
		cmocka_unit_test(what_types_or_reads_is_dropped),
		cmocka_unit_test(tricks_do_not_work),
		cmocka_unit_test(nul_is_no_end),
		cmocka_unit_test(long_sequences_are_bounded),
		cmocka_unit_test(the_end_undoes_what_was_left),
		cmocka_unit_test(the_end_fits_its_room),
		cmocka_unit_test(the_output_is_canonical),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
