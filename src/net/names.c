#include "net/names.h"

#include "policy/place.h"

#include <errno.h>
#include <string.h>

static const uint8_t prefix[12] = PLACE_NAMES_V6_PREFIX;
static const uint8_t box[16] = PLACE_BOX_V6;

_Static_assert(PLACE_NAMES_V4_FIRST + NAMES_LIMIT <= PLACE_OURS_V4, "names lie below our own");
_Static_assert(NAMES_LIMIT < UINT16_MAX, "a slot holds every index");

/* FNV-1a, begun with the key: enough where nobody can see or time a single slot. */
static uint32_t hash(uint64_t key, const char *text, size_t length)
{
	uint64_t value = UINT64_C(0xcbf29ce484222325) ^ key;

	for (size_t i = 0; i < length; i++)
		value = (value ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
	value ^= value >> 32;
	return (uint32_t)(value * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

/* Where the name is, or would be: a free slot then. */
static uint32_t slot_of(const struct names *names, const char *name)
{
	uint32_t slot = hash(names->key, name, strlen(name)) % NAMES_SLOTS;

	/* half of the slots are free at least, so that this ends */
	while (names->slots[slot] &&
	       strcmp(names->text + names->begin[names->slots[slot] - 1u], name) != 0)
		slot = (slot + 1) % NAMES_SLOTS;
	return slot;
}

static bool is_too_long(const char *name)
{
	return strnlen(name, HOST_NAME_BYTES) == HOST_NAME_BYTES;
}

int names_find(const struct names *names, const char *name, uint32_t *ret_index)
{
	uint16_t place = is_too_long(name) ? 0 : names->slots[slot_of(names, name)];

	if (!place)
		return -ENOENT;
	*ret_index = place - 1u;
	return 0;
}

int names_give(struct names *names, const char *name, uint32_t *ret_index)
{
	size_t length;
	uint32_t slot;

	if (is_too_long(name))
		return -EINVAL;
	if (names_find(names, name, ret_index) == 0)
		return 0;
	length = strlen(name) + 1;
	if (names->count == NAMES_LIMIT || length > NAMES_LIMIT_BYTES - names->bytes)
		return -ENOSPC;
	slot = slot_of(names, name);
	*ret_index = names->count++;
	names->slots[slot] = (uint16_t)(*ret_index + 1);
	names->begin[*ret_index] = names->bytes;
	memcpy(names->text + names->bytes, name, length);
	names->bytes += (uint32_t)length;
	return 0;
}

int names_give_closed(struct names *names, const char *name, uint32_t *ret_index)
{
	uint32_t before = names->bytes;
	int result;

	if (names_find(names, name, ret_index) == 0)
		return 0;
	if (names->closed_count == NAMES_LIMIT_CLOSED ||
	    strnlen(name, HOST_NAME_BYTES) + 1 > NAMES_LIMIT_CLOSED_BYTES - names->closed_bytes)
		return -ENOSPC;
	result = names_give(names, name, ret_index);
	if (result < 0)
		return result;
	names->closed_count++;
	names->closed_bytes += names->bytes - before;
	return 0;
}

static void put_v4(uint32_t number, uint8_t bytes[static 4])
{
	for (int i = 0; i < 4; i++)
		bytes[i] = (uint8_t)(number >> (24 - 8 * i));
}

static uint32_t get_v4(const uint8_t bytes[static 4])
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
	       bytes[3];
}

void names_address(uint32_t index, enum address_family family, struct address *ret_address)
{
	struct address address = { .family = (uint8_t)family };
	uint32_t number = PLACE_NAMES_V4_FIRST + index;

	if (family == ADDRESS_V6) {
		memcpy(address.bytes, prefix, sizeof(prefix));
		put_v4(number, address.bytes + sizeof(prefix));
	} else {
		put_v4(number, address.bytes);
	}
	*ret_address = address;
}

static bool is_within(uint32_t number, uint32_t network, unsigned bits)
{
	return (number ^ network) >> (32 - bits) == 0;
}

enum names_place names_look(const struct names *names, const struct address *address,
			    const char **ret_name)
{
	bool is_v6 = address->family == ADDRESS_V6;
	uint32_t number = get_v4(address->bytes + (is_v6 ? sizeof(prefix) : 0));

	if (is_v6 && memcmp(address->bytes, box, sizeof(box)) == 0)
		return NAMES_BOX;
	if (is_v6 && memcmp(address->bytes, prefix, sizeof(prefix)) != 0)
		return NAMES_OUTSIDE;
	if (!is_within(number, PLACE_NAMES_V4, PLACE_NAMES_V4_BITS))
		return is_v6 ? NAMES_FREE : NAMES_OUTSIDE;
	if (number - PLACE_NAMES_V4_FIRST < names->count) {
		*ret_name = names->text + names->begin[number - PLACE_NAMES_V4_FIRST];
		return NAMES_NAME;
	}
	if (is_v6)
		return NAMES_FREE;
	if (number == PLACE_NAMESERVER_V4)
		return NAMES_SERVER;
	if (number == PLACE_DOOR_V4)
		return NAMES_DOOR;
	return number == PLACE_BOX_V4 ? NAMES_BOX : NAMES_FREE;
}
