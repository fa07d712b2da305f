#include "base/clock.h"

#include "base/fd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The call itself: the vDSO's way costs three page faults before the first answer. */
uint64_t clock_of_ns(clockid_t id)
{
	struct timespec now = { 0 };

	/* cannot fail for an id that there is (clock_gettime(2)) */
	(void)syscall(SYS_clock_gettime, id, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t clock_monotonic_ns(void)
{
	return clock_of_ns(CLOCK_MONOTONIC);
}

uint64_t clock_wall_ns(void)
{
	return clock_of_ns(CLOCK_REALTIME);
}

static char *put(char *at, uint64_t value, unsigned digits)
{
	for (unsigned i = digits; i; i--, value /= 10)
		at[i - 1] = (char)('0' + value % 10);
	return at + digits;
}

/* By hand: gmtime(3) and snprintf(3) would be half of what a record costs. */
void clock_text(uint64_t wall_ns, char ret_text[static CLOCK_TEXT_BYTES])
{
	uint64_t seconds = wall_ns / 1000000000u, left = seconds % 86400u;
	/* days since 0000-03-01, in which a leap day is the last of its year */
	uint64_t days = seconds / 86400u + 719468u;
	uint64_t era = days / 146097u, of_era = days % 146097u;
	uint64_t year = (of_era - of_era / 1460u + of_era / 36524u - of_era / 146096u) / 365u;
	uint64_t of_year = of_era - (365u * year + year / 4u - year / 100u);
	uint64_t month = (5u * of_year + 2u) / 153u, day = of_year - (153u * month + 2u) / 5u + 1u;
	char *at = ret_text;

	month = month < 10u ? month + 3u : month - 9u;
	at = put(at, year + era * 400u + (month <= 2u), 4);
	*at++ = '-';
	at = put(at, month, 2);
	*at++ = '-';
	at = put(at, day, 2);
	*at++ = 'T';
	at = put(at, left / 3600u, 2);
	*at++ = ':';
	at = put(at, left / 60u % 60u, 2);
	*at++ = ':';
	at = put(at, left % 60u, 2);
	*at++ = '.';
	at = put(at, wall_ns % 1000000000u, 9);
	*at++ = 'Z';
	*at = '\0';
}

const char *clock_boot_id(void)
{
	static char id[CLOCK_BOOT_BYTES];

	if (!id[0]) {
		int CLEANUP_FD fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
		ssize_t length = fd < 0 ? 0 : read(fd, id, sizeof(id) - 1);

		id[length > 0 ? length : 0] = '\0';
		id[strcspn(id, "\n")] = '\0';
	}
	return id;
}
