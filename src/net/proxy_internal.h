/*
 * The inside of bawn-proxy, shared by proxy*.c alone.
 *
 * A connection is a task's socket (client), perhaps an upstream one, a stream in each direction
 * (relay.h) and a state. Whatever happens to it (bytes, room, an answer, a deadline) ends in
 * connection_step(), which calls the function of its state until that has to wait. So each state is
 * one function that looks at what is there, and no order of events is special.
 *
 *   SNIFF    captured, or behind a door's yes: the first bytes tell the protocol
 *   DOOR     CONNECT, an absolute target or SOCKS are read
 *   TUNNEL   both directions pass as they are
 *   HTTP     one request and its response at a time, each one decided (proxy_http.c)
 *   LOOKUP   DNS over TCP
 *   FLUSH    a last word is sent (a refusal), then
 *   DRAIN    what still comes is dropped until the end of file: a reset would lose the word
 */
#pragma once

#include "base/arena.h"
#include "net/edge.h"
#include "net/http.h"
#include "net/http_body.h"
#include "net/names.h"
#include "net/relay.h"
#include "policy/egress.h"

#include <stdbool.h>
#include <stdint.h>

enum state {
	STATE_FREE,
	STATE_SNIFF,
	STATE_DOOR,
	STATE_LOOKUP,
	STATE_TUNNEL,
	STATE_HTTP,
	STATE_FLUSH,
	STATE_DRAIN,
	STATE_COUNT,
};

/* What a state's function says. */
enum step {
	STEP_WAIT,  /* for an event */
	STEP_AGAIN, /* its turn is over: others first */
	STEP_NEXT,  /* the state has changed */
	STEP_END,   /* the connection has been closed */
};

/*
 * How long a connection may stay as it is; each has its list, in the order of its ends, so that
 * nothing has to be searched.
 */
enum deadline {
	DEADLINE_NONE,
	DEADLINE_SILENT,   /* nothing was said yet: perhaps the server speaks first */
	DEADLINE_FIRST,	   /* the first byte */
	DEADLINE_HEAD,	   /* the rest of a head or hello */
	DEADLINE_DIAL,	   /* the dialer has limits of its own, below this one */
	DEADLINE_WHO,	   /* which program connects */
	DEADLINE_ASK,	   /* a person's answer */
	DEADLINE_ASK_LEFT, /* the same for a client that has said its last, and may have left */
	DEADLINE_ANSWER,   /* the head of a response */
	DEADLINE_LEFT,	   /* the same for a client that has said its last, and may have left */
	DEADLINE_KEEP,	   /* a kept connection without a request */
	DEADLINE_IDLE,	   /* nothing moves in a tunnel or body */
	DEADLINE_DRAIN,
	DEADLINE_PACE, /* bytes of a quota by time come again */
	DEADLINE_COUNT,
};

enum dial {
	DIAL_NONE,
	DIAL_QUEUED, /* the dialer takes nothing now */
	DIAL_ASKED,
	DIAL_DONE,
	DIAL_FAILED,
};

/* What a person was asked about, and said. */
enum leave {
	LEAVE_NONE,
	LEAVE_ASKED,
	LEAVE_YES,
	LEAVE_NO,
};

/* A request and its response; proxy_http.c has the rules. */
struct http_state {
	struct http_asked asked;
	struct http_body up, down;
	bool is_counted; /* among its rule's requests */
	bool is_sent; /* the request's head was written to the upstream, and taken out of up.in */
	bool has_response; /* the head of the final response was written to the client */
	bool keeps_client, keeps_upstream;
	bool is_fresh; /* the upstream had no request before this one */
	bool has_upgrade;
	uint16_t status;
	size_t scanned_down;
	char method[EGRESS_METHOD_BYTES];
	char path[EGRESS_PATH_BYTES];
};

struct connection {
	uint32_t id; /* with a generation in its upper bits; never 0 */
	uint8_t state, deadline, door;
	bool is_refused; /* the verdict is no: what is read only chooses the words */
	bool is_opened;	 /* OPENED was told, with opened_verdict and opened_rule */
	bool is_silent;	 /* nothing came within DEADLINE_SILENT */
	bool is_greeted; /* SOCKS: the greeting is done */
	bool is_named;	 /* at a door: host and port were said */
	bool has_http;	 /* its http_state was used */
	bool is_counted; /* among the connections of its rule's quota */
	bool is_opener;	 /* and that rule was one that opens a private service */
	bool is_waiting; /* in the list of those that go on in the next turn */
	bool is_starved; /* it goes on when memory was given back */
	uint64_t deadline_ns, started_ns;
	struct connection *previous, *next; /* of its deadline's list */
	struct connection *next_ready;

	struct end client, upstream;
	struct stream up, down;

	struct address peer, local; /* of the client's socket */
	uint16_t peer_port, local_port;

	/* the question, as far as it is known */
	struct host host;
	uint16_t port;
	uint32_t known;
	enum egress_protocol protocol;
	struct egress_tool tool;
	bool has_tool;
	bool is_partly;	 /* no rule allows this, and one allows something at this host and port */
	bool is_crowded; /* the task has too many open files to tell who connects */
	uint32_t action; /* the supervisor's number of the action that connects; 0: not known */
	enum leave who, may;
	enum leave heard; /* of a live task: its denial was, which needs the other end */
	bool is_reset;	  /* and then comes no word, but a reset */
	uint32_t may_rule;
	struct egress_answer answer;

	enum dial dial;
	uint32_t dial_id; /* the dialer's word for it; an answer with another is too late */
	uint32_t outcome;
	struct address address;	    /* connected to */
	size_t scanned;		    /* of the head of a request that is not whole yet */
	uint32_t upstream_requests; /* that the upstream had from us */
	uint32_t request;	    /* number of the request on this connection */
	uint32_t opened_verdict, opened_rule;
	const char *reason;	     /* of the refusal; a constant */
	uint64_t told_up, told_down; /* bytes in flows that were told already */
	uint64_t charged_up, charged_down;
};

/* What the rules' quotas were used for, of the whole task; one for each rule. */
struct usage {
	uint64_t bytes_up, bytes_down, connections;
	uint64_t minute, requests; /* requests in that minute of the monotonic clock */
	uint64_t second_ns, second_bytes;
	uint32_t action; /* EGRESS_ONCE: the one it is for */
};

struct deadline_list {
	struct connection *first, *last;
	uint32_t count;
};

struct repeated {
	uint64_t first_ns, count;
	struct egress_flow flow;
};

/* Heads and hellos that have begun and are not whole: of more the oldest is ended. */
#define PROXY_LIMIT_HEADS 512u

/* Kinds of refusals of the last second that are remembered, so that a flood is one record. */
#define PROXY_LIMIT_KINDS 32u

/*
 * Records that wait for the supervisor: while one does nothing new begins, so that each connection
 * leaves two at the most (of a request, and of the next one that is refused).
 */
#define PROXY_LIMIT_UNTOLD (2 * EGRESS_LIMIT_CONNECTIONS + 256)

/* One for each port of the rules at the most, and the door. */
#define PROXY_LIMIT_LISTENERS 72u

struct proxy {
	struct egress_order order;
	struct egress_policy policy;
	struct usage *usage;
	struct relay relay;
	struct names *names;
	struct connection *connections;
	uint32_t *free; /* a stack of indices */
	uint32_t free_count, limit_connections;
	struct deadline_list deadlines[DEADLINE_COUNT];
	struct connection *ready; /* goes on in the next turn */
	struct repeated repeated[PROXY_LIMIT_KINDS];
	uint64_t refused_accepts;   /* since the last record of it */
	struct egress_flow *untold; /* what the supervisor did not take yet, in its order */
	uint32_t untold_first, untold_end;
	uint64_t held_ns;	 /* since when the supervisor takes no records */
	uint64_t told_ns;	 /* when floods were last told */
	uint64_t rested_ns;	 /* when memory was last given back */
	uint64_t now_ns, wall_s; /* of this turn */
	uint32_t wall_part_ns;
	uint64_t dates_since_s, dates_until_s; /* no rule begins or ends within; 0: ever */
	uint64_t dates_ns;		       /* when to look at the dates again; 0: never */
	uint32_t dial_count;
	struct arena scratch; /* of one text at a time; its first block stays */
	int listeners[PROXY_LIMIT_LISTENERS];
	uint32_t listener_count;
	int epoll_fd, spare_fd;
	bool is_peer_full;   /* the dialer does not take dials: they are queued */
	bool is_held;	     /* the supervisor does not take records: nothing new begins */
	bool is_starved;     /* somebody waits for memory */
	bool is_over_full;   /* more records wait than there can be: a fault of ours */
	uint32_t mark;	     /* to be answered; 0: none */
	unsigned mark_turns; /* since it came */
	bool has_accepted;   /* in this turn */
	bool listens_again;  /* ending: there may be more at the listeners */
	bool is_ending;	     /* the task is over: what it sent is given on, and all is told */
	uint64_t ending_ns, quiet_ns; /* since when; and since when nothing happens any more */
	struct http_state *http;      /* one for each connection, by its index */
};

static inline struct http_state *http_of(const struct proxy *proxy,
					 const struct connection *connection)
{
	return &proxy->http[connection - proxy->connections];
}

/* --- proxy.c: the loop */

#define MILLISECOND_NS UINT64_C(1000000)
#define SECOND_NS (1000 * MILLISECOND_NS)

/* epoll's data of what is no connection; an id shifted by one is above all of them. */
enum watched { WATCH_CHANNEL = 1, WATCH_PEER, WATCH_UDP, WATCH_LISTENER };

/* Watches what is no connection, made non-blocking; events: epoll's; negative errno. */
int proxy_watch(struct proxy *proxy, int fd, uint32_t events, uint64_t data);

/*
 * Small writes do not wait, and urgent data stays among the rest (RFC 6093), else it is lost.
 * Of a door's unix socket neither is to be asked for.
 */
void proxy_tune(int fd);

/* The supervisor takes nothing now: nothing new is accepted until it has taken what waits. */
void proxy_hold(struct proxy *proxy);

/* --- proxy_table.c: the table of connections */

/* The number of a connection in the table is the end of its id, and of its dial's. */
#define CONNECTION_BITS 12u
_Static_assert(1u << CONNECTION_BITS == EGRESS_LIMIT_CONNECTIONS, "ids have room for all");

/* NULL: the table is full. */
struct connection *connection_new(struct proxy *proxy);
/* NULL: it has ended. */
struct connection *connection_of_id(struct proxy *proxy, uint32_t id);
/* Calls the function of its state until that has to wait; it may have ended then. */
void connection_step(struct proxy *proxy, struct connection *connection);
void connection_close(struct proxy *proxy, struct connection *connection);
/* Closed so that the client sees a reset. */
void connection_reset(struct proxy *proxy, struct connection *connection);
/* It goes on when all others had their turn. */
void connection_ready(struct proxy *proxy, struct connection *connection);
/* Whether it waits for a person; false: too many do, and none of them has left. */
bool connection_hold(struct proxy *proxy, struct connection *connection);
/* It waits until memory is given back: STEP_WAIT. */
enum step connection_starve(struct proxy *proxy, struct connection *connection);
/* Nobody waits for the dialer's answer any more. */
void connection_forget_dial(struct connection *connection);
/* Forgets the upstream, and what was on its way there or from there. */
void connection_drop_upstream(struct proxy *proxy, struct connection *connection);
/* Watches an end of the connection; negative errno. */
int connection_watch(struct proxy *proxy, struct connection *connection, struct end *end);

/* --- proxy_deadline.c: time */

/* (Re)starts its deadline; DEADLINE_NONE: it has none. */
void connection_wait(struct proxy *proxy, struct connection *connection, enum deadline deadline);
/* It has no deadline any more. */
void deadline_unlink(struct proxy *proxy, struct connection *connection);
/* What was asked of the supervisor is not answered, or not in time. */
void connection_give_up(struct connection *connection);
/* All whose deadline is over. */
void deadline_expire_all(struct proxy *proxy);
/* The oldest of too many unfinished heads (PROXY_LIMIT_HEADS). */
void deadline_trim_heads(struct proxy *proxy);
/* How long the loop may wait for events, for epoll_wait(2). */
int deadline_timeout_ms(const struct proxy *proxy);

/* --- proxy_accept.c: the listeners of the box */

/* Takes the descriptor in any case; negative errno: it is not watched. */
int listener_add(struct proxy *proxy, int fd);
/* As many connections as have a turn. */
void listener_accept(struct proxy *proxy, int listen_fd);
/* Whether anything new is listened to, at the listeners and of names. */
void listener_switch(struct proxy *proxy, bool is_on);

/* --- proxy_message.c: what the other processes say */

/* From ROLE_CHANNEL or EGRESS_FD_PEER: 0, -EPIPE when the peer has gone, else what it did wrong. */
int proxy_take_messages(struct proxy *proxy, int fd);

/* --- proxy_ending.c: the end of the task */

/* The supervisor says nothing more, and listens until we end. */
void ending_begin(struct proxy *proxy);
/* After a turn with so many events: whether all has gone that will. */
bool ending_is_over(struct proxy *proxy, bool has_events);
/* The next look, for epoll_wait(2). */
int ending_ms(const struct proxy *proxy);
/* What is to say is said, however long the supervisor takes to hear it; negative errno. */
int ending_say_last(struct proxy *proxy);

/* --- proxy_open.c: from the first byte to a verdict */

enum step step_sniff(struct proxy *proxy, struct connection *connection);
/* Sets host and door of a connection that was accepted; its first state. */
void connection_open(struct proxy *proxy, struct connection *connection);

/* A client that looked the name up itself gives the address that it got; meant is the name. */
void host_of_given(const struct proxy *proxy, struct host *host);

enum judgement {
	JUDGE_WAIT,  /* an answer is on its way; the state's function will be called again */
	JUDGE_MORE,  /* allowed as far as is known; protocol or request decide */
	JUDGE_ALLOW, /* and counted */
	JUDGE_DENY,  /* connection->reason and ->answer say why */
};

/* What the rules say of what is known now; asks the supervisor where they want to know. */
enum judgement connection_judge(struct proxy *proxy, struct connection *connection);
/* The same of one request. */
enum judgement connection_judge_request(struct proxy *proxy, struct connection *connection,
					const char *method, const char *path, bool upgrade);
/*
 * Whether what is open may go on by the rules that hold now, without asking anybody; else ->answer
 * and ->reason say why. method NULL: of what is no request.
 */
bool connection_may_go_on(struct proxy *proxy, struct connection *connection, const char *method,
			  const char *path, bool upgrade);
/* Asks the dialer once; DIAL_FAILED where it cannot. */
void connection_dial(struct proxy *proxy, struct connection *connection);
/* True while the dialer has not answered. */
bool connection_is_dialing(const struct connection *connection);
/* Why there is no upstream, in our words. */
const char *connection_trouble(const struct connection *connection);

/* The client went, or its time is up, without a word: where its server spoke, a denial and true. */
bool connection_note_silence(struct connection *connection);
/* From a verdict to bytes: tells that it is open. False: the record is held up; wait. */
bool connection_begin(struct proxy *proxy, struct connection *connection);

/* What its rule still permits, of bytes in a direction; 0 and *ret_pace: later. */
uint64_t quota_left(struct proxy *proxy, struct connection *connection, bool is_up, bool *ret_pace);
/* What its rule's quota of bytes still permits to go up, by pace or not. */
uint64_t quota_up(struct proxy *proxy, struct connection *connection);
/* After bytes were moved. */
void quota_charge(struct proxy *proxy, struct connection *connection);
/* One more connection or request for its rule; false: its quota is used up. */
bool quota_connection(struct proxy *proxy, struct connection *connection);
bool quota_request(struct proxy *proxy, struct connection *connection);

/* --- proxy_door.c */

enum step step_door(struct proxy *proxy, struct connection *connection);

/* --- proxy_tunnel.c */

enum step step_tunnel(struct proxy *proxy, struct connection *connection);
/* Ends it, and tells so. A reason (a constant): by a reset. */
enum step tunnel_end(struct proxy *proxy, struct connection *connection, const char *reason);
enum step step_flush(struct proxy *proxy, struct connection *connection);
enum step step_drain(struct proxy *proxy, struct connection *connection);

/* --- proxy_http.c */

/* What came so far is a request. */
enum step http_begin(struct proxy *proxy, struct connection *connection);
enum step step_http(struct proxy *proxy, struct connection *connection);

/* Whether its request, and what came of it, may go on by the rules that hold now. */
bool http_may_go_on(struct proxy *proxy, struct connection *connection);
/* The same; where it may not, it ends. */
void http_look_again(struct proxy *proxy, struct connection *connection);

/* --- proxy_dates.c: rules begin and end while connections are open */

/* Once the clocks were read. */
void dates_begin(struct proxy *proxy);
/* With the clocks of this turn: ends what may not go on. */
void dates_look(struct proxy *proxy);

/* --- proxy_lookup.c: names */

enum step step_lookup(struct proxy *proxy, struct connection *connection);
void lookup_datagrams(struct proxy *proxy);

/* --- proxy_refuse.c: a no, in the words of whoever asked */

enum step refuse_reset(struct proxy *proxy, struct connection *connection, const char *reason);
enum step refuse_tls(struct proxy *proxy, struct connection *connection, const char *reason);
/* status: 400, 403, 429, 431, 502, 503 or 504. */
enum step refuse_http(struct proxy *proxy, struct connection *connection, unsigned status,
		      const char *reason);
/* In the words of what it speaks, as far as that is known. */
enum step refuse(struct proxy *proxy, struct connection *connection, const char *reason);
/* The same where the dialer could not connect. */
enum step refuse_dial(struct proxy *proxy, struct connection *connection);

/* --- proxy_report.c: what the supervisor and the dialer are told */

/*
 * What has begun: false where the supervisor takes nothing now, and proxy->is_held is set then. All
 * other records wait in that case.
 */
bool report_opened(struct proxy *proxy, struct connection *connection);
void report_closed(struct proxy *proxy, struct connection *connection, unsigned status,
		   const char *method, const char *path);
/* A refusal or failure; method and path NULL: not known. */
void report_stopped(struct proxy *proxy, struct connection *connection, const char *method,
		    const char *path);
/* A name was asked for that gets no address, or none of use; reason: a constant. */
void report_lookup(struct proxy *proxy, const struct host *host, const struct egress_answer *answer,
		   const struct address *peer, uint16_t peer_port, const char *reason);
/* Whether something is held back that report_repeated() will tell. */
bool report_is_due(const struct proxy *proxy);
/* What was held back of floods; called now and then. */
void report_repeated(struct proxy *proxy);
/* What waits for the supervisor; false: it does not take all of it now. */
bool report_untold(struct proxy *proxy);

/* After a turn, with events or a signal: the supervisor's mark is answered if it can be by now. */
void report_mark(struct proxy *proxy, bool has_events);
/* All that is open ends, and nothing is held back any more; the channel has to block. */
void report_last(struct proxy *proxy);
/* Sends a question; false: it could not be. */
bool report_question(struct proxy *proxy, struct connection *connection,
		     enum egress_question_kind kind, const char *method, const char *path);
