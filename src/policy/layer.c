#include "policy/layer.h"

static const struct {
	const char *name, *keeps;
} layers[LAYER_COUNT] = {
#define LAYER(name, word, keeps) { word, keeps },
#include "policy/layer.def"
#undef LAYER
};

const char *layer_name(enum layer layer)
{
	return layers[layer].name;
}

const char *layer_keeps(enum layer layer)
{
	return layers[layer].keeps;
}

const char *enforcement_name(enum enforcement enforcement)
{
	static const char *const names[ENFORCEMENT_COUNT] = { "absent", "inferred", "polled",
							      "exact" };

	return names[enforcement];
}
