// Gives programs MPTCP instead of TCP, as `mptcpize run` does:
// `cc -shared -fPIC -O2 mptcp.c -o mptcp.so`, then LD_PRELOAD.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

int socket(int domain, int type, int protocol) {
    int (*next)(int, int, int) = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
    const int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (domain == AF_INET && kind == SOCK_STREAM && (protocol == 0 || protocol == IPPROTO_TCP)) {
        protocol = 262;
    }
    return next(domain, type, protocol);
}
