#include "base/error.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int positive(int code)
{
	if (code == INT_MIN)
		return INT_MAX;
	return code < 0 ? -code : code;
}

const char *error_text(int code)
{
	/* strerrordesc_np: glibc 2.32, async-signal-safe, untranslated */
	const char *text = strerrordesc_np(positive(code));

	return text ? text : "unknown error";
}

__attribute__((format(printf, 3, 0))) static void set(struct error *error, int code,
						      const char *format, va_list arguments)
{
	error->code = -positive(code);
	(void)vsnprintf(error->message, sizeof(error->message), format, arguments);
}

int error_set(struct error *error, int code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	set(error, code, format, arguments);
	va_end(arguments);
	return error->code;
}

int error_errno(struct error *error, int code, const char *format, ...)
{
	va_list arguments;
	size_t used;

	va_start(arguments, format);
	set(error, code, format, arguments);
	va_end(arguments);
	used = strlen(error->message);
	(void)snprintf(error->message + used, sizeof(error->message) - used, ": %s",
		       error_text(code));
	return error->code;
}

int error_append(struct error *error, const char *text)
{
	size_t used = strlen(error->message);

	(void)snprintf(error->message + used, sizeof(error->message) - used, "%s", text);
	return error->code;
}

int error_context(struct error *error, const char *format, ...)
{
	char inner[ERROR_MESSAGE_BYTES];
	va_list arguments;
	size_t used;

	memcpy(inner, error->message, sizeof(inner));
	inner[sizeof(inner) - 1] = '\0';
	va_start(arguments, format);
	(void)vsnprintf(error->message, sizeof(error->message), format, arguments);
	va_end(arguments);
	used = strlen(error->message);
	/* the cut falls on the inner text, which snprintf ends properly */
	if (used + 2 < sizeof(error->message)) {
		memcpy(error->message + used, ": ", 2);
		used += 2;
		size_t room = sizeof(error->message) - used - 1;
		size_t length = strnlen(inner, room);

		memcpy(error->message + used, inner, length);
		error->message[used + length] = '\0';
	}
	return error->code;
}
