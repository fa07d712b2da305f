#include "policy/preset.h"

#include <string.h>

/* Made from presets/ by tools/embed. */
#define PRESETS PRESET(review) PRESET(develop) PRESET(ci) PRESET(browse) PRESET(quarantine)

#define PRESET(name)                                       \
	extern const unsigned char preset_##name##_text[]; \
	extern const size_t preset_##name##_text_size;
PRESETS
#undef PRESET

bool preset_find(const char *name, struct preset *ret_preset)
{
	const struct preset presets[] = {
#define PRESET(name) { #name, (const char *)preset_##name##_text, preset_##name##_text_size },
		PRESETS
#undef PRESET
	};

	for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++)
		if (strcmp(presets[i].name, name) == 0) {
			*ret_preset = presets[i];
			return true;
		}
	return false;
}
