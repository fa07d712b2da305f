/*
 * bawn-init: process 1 of a box. Freestanding: no C library, no memory beyond its stack, no
 * environment, one descriptor (3, the supervisor-init edge). It reaps what is left to it and ends
 * when the supervisor does; the kernel then kills everything else in the box.
 */
#include <asm/unistd.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/signal.h>
#include <linux/types.h>

enum { CONTROL = 3, BOX_READY = 4 };

/* linux/wait.h and linux/signalfd.h say no more than this */
enum { WNOHANG_FLAG = 1, SIGNALFD_RECORD_BYTES = 128 };

#if defined(__x86_64__)
static long call(long number, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return result;
}

__asm__(".globl _start\n_start:\n\txor %ebp,%ebp\n\tand $-16,%rsp\n\tcall init_main\n\thlt\n");
#elif defined(__aarch64__)
static long call(long number, long a, long b, long c, long d, long e)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
			 : "memory");
	return x0;
}

__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tbl init_main\n");
#else
#error "bawn-init knows no system calls of this processor"
#endif

static void leave(int status)
{
	for (;;)
		(void)call(__NR_exit_group, status, 0, 0, 0, 0);
}

static void reap(void)
{
	while (call(__NR_wait4, -1, 0, WNOHANG_FLAG, 0, 0) > 0)
		;
}

void init_main(void) __attribute__((noreturn));
void init_main(void)
{
	static const __u32 ready[2] = { BOX_READY, 0 };
	__u64 mask = ~0ULL;
	long signals;

	/* nothing in the box may look into us; we hold nothing, and this says that it stays so */
	if (call(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    call(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		leave(125);
	if (call(__NR_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof(mask), 0) < 0)
		leave(125);
	mask = 1ULL << (SIGCHLD - 1);
	signals = call(__NR_signalfd4, -1, (long)&mask, sizeof(mask), 0, 0);
	if (signals < 0)
		leave(125);
	if (call(__NR_write, CONTROL, (long)ready, sizeof(ready), 0, 0) != sizeof(ready))
		leave(125);
	for (;;) {
		struct pollfd watched[2] = { { CONTROL, POLLIN, 0 }, { (int)signals, POLLIN, 0 } };
		unsigned char record[SIGNALFD_RECORD_BYTES];

		if (call(__NR_ppoll, (long)watched, 2, 0, 0, 0) < 0)
			continue;
		if (watched[0].revents)
			/* the supervisor never speaks here: it has gone */
			leave(0);
		if (watched[1].revents) {
			(void)call(__NR_read, signals, (long)record, sizeof(record), 0, 0);
			reap();
		}
	}
}
