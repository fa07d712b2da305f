/*
 * glibc reads the processor's features when a program starts (about 55 CPUID instructions, each a
 * trap in a virtual machine); here the few that are asked for are read when they are, and once:
 * a trap (30 us) for each record of a trace would be most of what it costs.
 */
#pragma once

#include <cpuid.h>
#include <stdbool.h>

enum { SHA, SSE4_1, SSSE3, MUSL_CPU_FEATURES };

static inline bool musl_cpu_ask(int feature)
{
	unsigned a, b, c, d;

	if (feature == SHA)
		return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
	/* every x86-64 has leaf 1: asking whether it does would be one trap more */
	__cpuid(1, a, b, c, d);
	return c & (feature == SSE4_1 ? bit_SSE4_1 : bit_SSSE3);
}

static inline bool musl_cpu_feature(int feature)
{
	/* 0: not asked yet; else 1 + the answer. Who asks at the same time gets the same. */
	static unsigned char answers[MUSL_CPU_FEATURES];
	unsigned char answer = __atomic_load_n(&answers[feature], __ATOMIC_RELAXED);

	if (!answer) {
		answer = (unsigned char)(1 + musl_cpu_ask(feature));
		__atomic_store_n(&answers[feature], answer, __ATOMIC_RELAXED);
	}
	return answer > 1;
}

#define CPU_FEATURE_ACTIVE(name) musl_cpu_feature(name)
