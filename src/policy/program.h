/*
 * What is known of programs, as data: program.def and the files it includes. Pure.
 *
 * PROGRAM(name, way, base, operands, options)
 *   name      as called; "git log" is the subcommand, "git remote show" one below it
 *   way       how its words are read (enum program_way)
 *   base      letters of what each use does, whatever the words say
 *   operands  one letter for each operand; see below
 *   options   the options that are known, separated by blanks
 *
 * Letters with an object (an operand, or the argument of an option):
 *   t  text, harmless          r  file read              w  file written
 *   d  file removed            u  URL or host            x  text for a shell
 *   p  program that is run     q  code that is run       k  credential read from a file
 *   v  NAME=VALUE for programs c  process                i  package
 *   e  something outside       s  what runs later        y  state of the system
 *   l  outside of the wall     a  cannot be told         g  directory whose configuration counts
 *   f  setting of git          @  text, or @FILE read    h  host to listen on
 *   S  script of sed           A  program of awk         m  HTTP method
 *   J  program of jq or yq     F  words of "git config": a key alone is a question
 *   M  options of ps without a dash, of which "e" shows environments
 *   n  file read, or HOST:PATH z  file written, or HOST:PATH
 *   o  revision, path or both with ':' between: only secrets are requests
 *   b  NAME or NAME=VALUE of the shell's own             j  "+format", or the time to set
 *   G  name of an option of the shell's                 V  mark that other words take the place of
 *   %  format or key of git's, of which signatures run a program
 *   /  name of the program's own, or a file read where a '/' is in it
 *   #  format of printf's, of which "%n" sets a variable
 *   ^  setting of the kernel's, which is changed where there is a '='
 * Letters without (of an option, or in `base`): the same in capitals say that using it is enough:
 *   X  code of the project or of the words runs
 *   N  connects   I  installs   E  changes outside   K  uses a credential   P  plants
 *   Y  system     L  leaves     C  processes         U  cannot be told      T  identity
 *   B  wrapper    D  operands are removed            W  operands are written
 *   R  operands are read with all below them        O  writes into the working directory
 *   H  listens    1  the first operand's role is taken by the option's argument
 *   Q  a plain question: what `base` says does not apply
 *   Z  the first operand is text for a shell            0  the operands are in a file
 *   2  the first operand is code that is read and not run
 * In `operands` alone:
 *   *  the letter before for all that follow but as many as letters come behind
 *   =  assignments NAME=VALUE, as many as there are
 *   >  the rest is a command; ">+" with words that come at run time
 *   $  the rest, joined, is text for a shell
 * Operands beyond the roles cannot be told.
 *
 * Options, and before all of them settings:
 *   *        any option that is not listed is harmless (no program gets it lightly)
 *   !stop    options end at the first operand
 *   !single  long options have one dash, as find's
 *   !operands  what base says applies only where there are operands
 *   !expression  "(", ")", "!" and "," join tests
 *   !number  -5 is an option
 *   !plus    +x is an option that cannot be told
 *   !here    where it stands decides what it runs: another place than the task's asks
 *   !restores  operands that are files for sure, as behind "--", are put back as they were: D
 *   !response  a word "@FILE" stands for options in that file
 *   !loads     operands behind the first may be programs of yq too
 *   !version "-v" alone asks for the version
 *   !code    even "--version" may run what the project says
 *   -abc     short ones, no argument, harmless     --long      the same
 *   -a:w     a needs an argument, with its letters --long:w    both "--long x" and "--long=x"
 *   -a?w     an argument only if attached          --long?w    only with "="
 *   -a!X     no argument, letters without object   --long!X
 *   :w,t     two arguments                         :t1         letters of both kinds may follow
 *   -x:>     what follows, up to ";" or "{} +", is a command; ">+" with words that come later on;
 *            letters without object may follow
 * A long option may be shortened to any prefix, as GNU's may; where several begin so, the worst is
 * taken to be meant.
 */
#pragma once

#include <stddef.h>

enum program_way {
	WAY_PLAIN,
	WAY_COMMANDS, /* has subcommands, each a row of its own */
	WAY_SHELL,    /* only a shell's built-in has this name */
	WAY_TAR,      /* options of the first word need no dash */
	WAY_DD,	      /* operands NAME=VALUE */
	WAY_ALIAS,    /* `base` is the name of the row that is meant */
};

struct program {
	const char *name;
	enum program_way way;
	const char *base, *operands, *options;
};

/* The row of the name, or of "name sub"; NULL where it is not known. */
const struct program *program_find(const char *name);

/* As program_find(), of the first `length` bytes. */
const struct program *program_find_bytes(const char *name, size_t length);

/* "grep" of "/bin/grep", as programs are called by. */
const char *program_name(const char *word);

/* What a program does with what it is given. */
enum program_nature {
	PROGRAM_TAKES_DATA,   /* by what is known of it */
	PROGRAM_TAKES_CODE,   /* an interpreter: whoever may start it may do what it can */
	PROGRAM_IS_NOT_KNOWN, /* no row tells */
};

/* Of a name or path, where a version may stand at its end ("python3.11"). */
enum program_nature program_nature(const char *word);

/* All rows, for tests. */
const struct program *program_at(size_t index);
