/*
 * bawn-proxy: where each connection and each name question of a task's box ends.
 *
 * It takes what the box's listener gets, finds out which host is meant (by the fake
 * address that our own answer to a question of names gave, by CONNECT, SOCKS or a request's head),
 * has the rules judge it, asks the dialer for a connected socket, and moves the bytes. It parses
 * what a task sends, so it can do nothing else: in its jail there is no socket(2), no connect(2),
 * no file and no exec. What it may reach is what the dialer, which has its own copy of the rules
 * and never sees a byte of the task's, hands over.
 *
 * No byte of the task's goes to an upstream before the verdict on it is final and the supervisor
 * has taken the record of it. All memory is taken at the start.
 */
#pragma once

#include <stddef.h>

/*
 * Runs until the dialer closes its channel, or the supervisor says no more on its own, which is the
 * end of the task: then what the task sent is given on as far as that goes at once, and each
 * connection that is open is told as ended, with its bytes: 0. Descriptors as in net/edge.h;
 * `config` are the bytes of the sealed memfd, which stay where they are. Negative errno: it could
 * not begin, or a peer broke the protocol (-EBADMSG).
 */
int proxy_run(const unsigned char *config, size_t length);
