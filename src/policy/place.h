/*
 * The addresses inside of a box whose network is the policy's. Constants alone: what the builder
 * sets up (kernel/capture.h), what programs are told (resolv.conf, the proxy variables), and what
 * the proxy and its table of names give out and recognise are one set of numbers.
 *
 * All of them lie in ranges that are on no network: 198.18.0.0/15 is for measurements (RFC 2544),
 * fd77::/16 a prefix of local use (RFC 4193) in which we never dial. A fake address of version 6
 * has the one of version 4 in its last 32 bits, so that one number stands for a name.
 *
 *   198.18.0.1 ...       of names, in the order in which they are asked for, without the last
 *                        address of the range and without 198.18.255.0/24, which is ours:
 *   198.18.255.252:53    the name server of /etc/resolv.conf (any other address answers, too)
 *   198.18.255.253:3128  the door for programs that like proxies: CONNECT, absolute form, SOCKS5
 *   198.18.255.254       the box's own, on its loopback; with fd77::2 the source of connections
 */
#pragma once

/* Numbers in the host's order. */
#define PLACE_NAMES_V4 0xC6120000u /* 198.18.0.0/15 */
#define PLACE_NAMES_V4_BITS 15u
#define PLACE_NAMES_V4_FIRST 0xC6120001u
#define PLACE_NAMES_V4_LAST 0xC613FFFEu
#define PLACE_OURS_V4 0xC612FF00u /* 198.18.255.0/24: never a name's */
#define PLACE_OURS_V4_BITS 24u

/* fd77::/96: the first 12 bytes; the last four are the address of version 4. */
#define PLACE_NAMES_V6_PREFIX                            \
	{                                                \
		0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
	}
#define PLACE_NAMES_V6_BITS 96u

#define PLACE_NAMESERVER_V4 0xC612FFFCu
#define PLACE_NAMESERVER_TEXT "198.18.255.252"
#define PLACE_NAMESERVER_PORT 53u

#define PLACE_DOOR_V4 0xC612FFFDu
#define PLACE_DOOR_TEXT "198.18.255.253"
#define PLACE_DOOR_PORT 3128u
#define PLACE_DOOR_URL "http://" PLACE_DOOR_TEXT ":3128"

/* What programs reach without the door: the box itself. */
#define PLACE_NO_PROXY "localhost,127.0.0.1,::1,bawn," PLACE_BOX_TEXT

#define PLACE_BOX_TEXT "198.18.255.254"
#define PLACE_BOX_V4 0xC612FFFEu
#define PLACE_BOX_V6                                                 \
	{                                                            \
		0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2 \
	}

/*
 * Where the listener of all captured connections is bound: below 1024, where no payload can bind.
 * getsockname(2) of what it accepts tells where the program wanted to go.
 */
#define PLACE_LISTENER_PORT 1u
