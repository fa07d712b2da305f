/* The layers of the wall, as one table (layer.def), and how well a layer is in force. */
#pragma once

enum layer {
#define LAYER(name, word, keeps) LAYER_##name,
#include "policy/layer.def"
#undef LAYER
	LAYER_COUNT,
};

/* The same words in doctor, explain, result and trace. */
enum enforcement {
	ENFORCEMENT_ABSENT,
	ENFORCEMENT_INFERRED,
	ENFORCEMENT_POLLED,
	ENFORCEMENT_EXACT,
	ENFORCEMENT_COUNT,
};

const char *layer_name(enum layer layer);
const char *layer_keeps(enum layer layer);
const char *enforcement_name(enum enforcement enforcement);
