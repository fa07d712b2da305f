#include "trace/when.h"

#include "base/quantity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)
#define DAY_SECONDS 86400
#define LAST_YEAR 2261

struct civil {
	int64_t year;
	unsigned month, day; /* from 1 on */
};

/* Years of the calculation begin in March, so that the leap day is the last: H. Hinnant, 2013,
 * "chrono-compatible low-level date algorithms". */
static int64_t days_of(struct civil date)
{
	int64_t year = date.year - (date.month <= 2);
	int64_t era = year / 400;
	int64_t of_era = year - era * 400;
	int64_t of_year = (153 * (date.month + (date.month > 2 ? -3 : 9)) + 2) / 5 + date.day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static struct civil civil_of(int64_t days)
{
	int64_t shifted = days + 719468;
	int64_t era = shifted / 146097;
	int64_t of_era = shifted - era * 146097;
	int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
	int64_t month = (5 * of_year + 2) / 153;
	struct civil date = { .year = year + era * 400,
			      .month = (unsigned)(month < 10 ? month + 3 : month - 9),
			      .day = (unsigned)(of_year - (153 * month + 2) / 5 + 1) };

	date.year += date.month <= 2;
	return date;
}

static unsigned days_in(int64_t year, unsigned month)
{
	static const unsigned char days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return days[month - 1] + (month == 2 && is_leap);
}

struct cursor {
	const char *at, *end;
	bool failed;
};

static unsigned number(struct cursor *cursor, unsigned digits)
{
	unsigned value = 0;

	for (unsigned i = 0; i < digits; i++) {
		if (cursor->at == cursor->end || *cursor->at < '0' || *cursor->at > '9') {
			cursor->failed = true;
			return 0;
		}
		value = value * 10 + (unsigned)(*cursor->at++ - '0');
	}
	return value;
}

static char one_of(struct cursor *cursor, const char *letters)
{
	if (cursor->at < cursor->end && *cursor->at && strchr(letters, *cursor->at))
		return *cursor->at++;
	cursor->failed = true;
	return '\0';
}

static uint64_t fraction(struct cursor *cursor)
{
	uint64_t ns = 0, unit = SECOND_NS / 10;
	const char *first;

	if (cursor->at == cursor->end || *cursor->at != '.')
		return 0;
	first = ++cursor->at;
	for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; unit /= 10)
		ns += (uint64_t)(*cursor->at++ - '0') * unit;
	if (cursor->at == first || cursor->at - first > 9)
		cursor->failed = true;
	return ns;
}

/* Seconds east of Greenwich. */
static int64_t offset(struct cursor *cursor)
{
	char sign = one_of(cursor, "Zz+-");
	unsigned hours, minutes;

	if (sign != '+' && sign != '-')
		return 0;
	hours = number(cursor, 2);
	(void)one_of(cursor, ":");
	minutes = number(cursor, 2);
	if (hours > 23 || minutes > 59)
		cursor->failed = true;
	return (sign == '-' ? -1 : 1) * (int64_t)(hours * 3600 + minutes * 60);
}

static struct civil date(struct cursor *cursor)
{
	struct civil found = { .year = number(cursor, 4) };

	(void)one_of(cursor, "-");
	found.month = number(cursor, 2);
	(void)one_of(cursor, "-");
	found.day = number(cursor, 2);
	if (cursor->failed || found.year < 1970 || found.year > LAST_YEAR || found.month < 1 ||
	    found.month > 12 || found.day < 1 || found.day > days_in(found.year, found.month))
		cursor->failed = true;
	return found;
}

bool when_parse(const char *text, size_t length, uint64_t *ret_ns)
{
	struct cursor cursor = { .at = text, .end = text + length };
	struct civil day = date(&cursor);
	unsigned hour, minute, second;
	int64_t seconds;
	uint64_t ns;

	(void)one_of(&cursor, "Tt ");
	hour = number(&cursor, 2);
	(void)one_of(&cursor, ":");
	minute = number(&cursor, 2);
	(void)one_of(&cursor, ":");
	second = number(&cursor, 2);
	ns = fraction(&cursor);
	seconds = -offset(&cursor);
	if (cursor.failed || cursor.at != cursor.end || hour > 23 || minute > 59 || second > 59)
		return false;
	seconds += days_of(day) * DAY_SECONDS + hour * 3600 + minute * 60 + second;
	if (seconds < 0)
		return false;
	*ret_ns = (uint64_t)seconds * SECOND_NS + ns;
	return true;
}

int when_parse_said(const char *text, uint64_t now_ns, uint64_t *ret_ns)
{
	struct cursor cursor = { .at = text, .end = text + strlen(text) };
	struct civil day;
	uint64_t ago;
	int result;

	if (when_parse(text, strlen(text), ret_ns))
		return 0;
	day = date(&cursor);
	if (!cursor.failed && cursor.at == cursor.end) {
		*ret_ns = (uint64_t)days_of(day) * DAY_SECONDS * SECOND_NS;
		return 0;
	}
	result = quantity_duration(text, &ago);
	if (result < 0)
		return result;
	if (ago > now_ns)
		return -ERANGE;
	*ret_ns = now_ns - ago;
	return 0;
}

void when_tell(uint64_t ns, char text[static WHEN_TEXT_BYTES])
{
	uint64_t seconds = ns / SECOND_NS;
	struct civil day = civil_of((int64_t)(seconds / DAY_SECONDS));
	unsigned of_day = (unsigned)(seconds % DAY_SECONDS);

	(void)snprintf(text, WHEN_TEXT_BYTES, "%04u-%02u-%02u %02u:%02u:%02uZ",
		       (unsigned)day.year % 10000, day.month % 100, day.day % 100, of_day / 3600,
		       of_day / 60 % 60, of_day % 60);
}
