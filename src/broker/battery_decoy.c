#include "broker/battery_internal.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "kernel/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char *make_token(struct arena *arena)
{
	unsigned long long random = 0;

	(void)!getrandom(&random, sizeof(random), 0);
	return arena_format(arena, "bawn%016llx", random);
}

static int listen_unix(const char *name, size_t length)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int CLEANUP_FD fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (length > sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, name, length);
	if (bind(fd, (struct sockaddr *)&address,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0 ||
	    listen(fd, 1) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int plant_sockets(struct battery_decoys *decoys)
{
	struct sockaddr_in address = { 0 };
	socklen_t length = sizeof(address);
	char name[1 + BATTERY_TOKEN_BYTES] = "";
	int result;

	(void)snprintf(name + 1, sizeof(name) - 1, "%s", decoys->token);
	decoys->abstract_fd = listen_unix(name, 1 + strlen(name + 1));
	if (decoys->abstract_fd < 0)
		return decoys->abstract_fd;
	/* a long state directory has no room for a socket: then there is none to be reached */
	decoys->path_fd = listen_unix(decoys->path_socket, strlen(decoys->path_socket) + 1);
	result = network_listener(AF_INET, SOCK_STREAM, 0, &decoys->listener_fd);
	if (result < 0)
		return result;
	if (getsockname(decoys->listener_fd, (struct sockaddr *)&address, &length) < 0)
		return -errno;
	decoys->port = ntohs(address.sin_port);
	return 0;
}

int battery_plant(const struct effective *effective, struct arena *arena,
		  struct battery_decoys *decoys, struct error *error)
{
	int CLEANUP_FD fd = -1;
	int result;

	decoys->token = make_token(arena);
	if (!decoys->token)
		return error_errno(error, ENOMEM, "planting decoys");
	decoys->directory = arena_format(arena, "%s/%s", effective->state.path, decoys->token);
	decoys->file = arena_format(arena, "%s/key", decoys->directory ? decoys->directory : "");
	decoys->path_socket =
		arena_format(arena, "%s/socket", decoys->directory ? decoys->directory : "");
	if (!decoys->directory || !decoys->file || !decoys->path_socket)
		return error_errno(error, ENOMEM, "planting decoys");
	if (mkdir(decoys->directory, 0755) < 0)
		return error_errno(error, errno, "making the decoys' directory %s",
				   decoys->directory);
	fd = open(decoys->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return error_errno(error, errno, "making the decoy %s", decoys->file);
	result = plant_sockets(decoys);
	if (result < 0)
		return error_errno(error, result, "making the decoys' sockets");
	(void)!getrandom(&decoys->key, sizeof(decoys->key), 0);
	if (result == 0 && effective->policy.egress.mode == EGRESS_POLICY)
		result = battery_names_plant(decoys);
	if (result < 0)
		return error_errno(error, result, "making the decoy name server");
	/* none on a kernel without System V IPC, which is then nothing to be reached */
	decoys->shared_memory = shmget(decoys->key, 4096, IPC_CREAT | IPC_EXCL | 0666);
	return 0;
}

void battery_unplant(struct battery_decoys *decoys)
{
	if (decoys->shared_memory >= 0)
		(void)shmctl(decoys->shared_memory, IPC_RMID, NULL);
	fd_close(&decoys->path_fd);
	fd_close(&decoys->abstract_fd);
	fd_close(&decoys->listener_fd);
	fd_close(&decoys->names_fd);
	if (!decoys->directory)
		return;
	(void)unlink(decoys->path_socket);
	(void)unlink(decoys->file);
	(void)rmdir(decoys->directory);
}
