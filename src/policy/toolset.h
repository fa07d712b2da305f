/* Sets of programs that a policy forbids by one word (toolset.def). Pure. */
#pragma once

/* The programs of the set, separated by blanks; "" where there is none of the name. */
const char *toolset_programs(const char *word);
