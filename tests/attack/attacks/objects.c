/*
 * The host's objects that attacks are aimed at, alive until standard input ends: objects DIRECTORY.
 * Prints one line: pid, descriptor of an open secret, TCP port, abstract name, System V key,
 * names of a queue and of shared memory.
 * Run by the test, outside of any box, as the caller.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int listen_unix(const char *name, int abstract)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)snprintf(address.sun_path + abstract, sizeof(address.sun_path) - 1, "%s", name);
	if (bind(fd, (struct sockaddr *)&address,
		 (socklen_t)(sizeof(sa_family_t) + (size_t)abstract + strlen(name))) < 0 ||
	    listen(fd, 64) < 0) {
		perror(name);
		exit(1);
	}
	return fd;
}

static int listen_tcp(int *ret_port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, 64) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &length) < 0) {
		perror("tcp");
		exit(1);
	}
	*ret_port = ntohs(address.sin_port);
	return fd;
}

int main(int argc, char **argv)
{
	key_t key = 0x62610000 | (getpid() & 0xffff);
	char path[512], abstract[64], queue[64], shm[64], buffer[16];
	struct mq_attr size = { .mq_maxmsg = 1, .mq_msgsize = 16 };
	int port, secret, shared, messages, semaphores;
	mqd_t mq;

	if (argc < 2)
		return 2;
	(void)snprintf(path, sizeof(path), "%s/secret", argv[1]);
	secret = open(path, O_RDWR);
	(void)snprintf(path, sizeof(path), "%s/socket", argv[1]);
	(void)snprintf(abstract, sizeof(abstract), "bawn-attack-%d", getpid());
	(void)snprintf(queue, sizeof(queue), "/bawn-attack-%d", getpid());
	(void)snprintf(shm, sizeof(shm), "/bawn-attack-%d", getpid());
	(void)listen_unix(path, 0);
	(void)listen_unix(abstract, 1);
	(void)listen_tcp(&port);
	shared = shmget(key, 4096, IPC_CREAT | 0600);
	messages = msgget(key, IPC_CREAT | 0600);
	semaphores = semget(key, 1, IPC_CREAT | 0600);
	mq = mq_open(queue, O_CREAT | O_RDWR, 0600, &size);
	(void)close(shm_open(shm, O_CREAT | O_RDWR, 0600));
	printf("%d %d %d %s %d %s %s\n", getpid(), secret, port, abstract, key, queue, shm);
	if (secret < 0 || shared < 0 || messages < 0 || semaphores < 0 || mq == (mqd_t)-1)
		fprintf(stderr, "objects: %d %d %d %d %d\n", secret, shared, messages, semaphores,
			mq);
	(void)fflush(stdout);
	while (read(0, buffer, sizeof(buffer)) > 0)
		;
	(void)shmctl(shared, IPC_RMID, NULL);
	(void)msgctl(messages, IPC_RMID, NULL);
	(void)semctl(semaphores, 0, IPC_RMID);
	(void)mq_unlink(queue);
	(void)shm_unlink(shm);
	return 0;
}
