/* Linux capabilities (capabilities(7)): only their removal. Negative errno. */
#pragma once

/*
 * Empties the bounding, ambient, inheritable, permitted and effective sets of the calling thread
 * and locks the securebits that would let uid 0 get capabilities back. Needs CAP_SETPCAP in its
 * user namespace (a process that just made or joined one has it).
 */
int capability_drop_all(void);

/* The part of it that children inherit: the bounding and ambient sets and the securebits. */
int capability_drop_future(void);

/*
 * Empties the inheritable, permitted and effective sets alone, which needs nothing. With
 * no_new_privs set this is for good too.
 */
int capability_drop_held(void);
