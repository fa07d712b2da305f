/*
 * The edge supervisor-scope. The request is in the role's sealed memfd, the connected socket of
 * systemd's manager is its first further descriptor, the answer one message:
 *
 *   request  u32 uid, string unit, string description
 *   answer   SCOPE_ANSWER: u32 enum systemd_outcome, string text
 *   taken    SCOPE_TAKEN, back: the supervisor lives; without it the scope is stopped
 */
#pragma once

enum { SCOPE_ANSWER = 1, SCOPE_TAKEN };

/* Two names of some 50 bytes. */
#define SCOPE_LIMIT_REQUEST_BYTES 512
/*
 * The manager answers within some 50 ms (systemd 252); a busy host's within a second. Who waits in
 * front of a terminal is told after this.
 */
#define SCOPE_TIME_NS (5ull * 1000 * 1000 * 1000)
