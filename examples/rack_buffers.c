/*
 * Passes buffers by reference between two processes of a rack.
 *
 *     cc -Icrates/capi/include examples/rack_buffers.c -o rack_buffers
 *     ethermem rack run --config rack.toml -- ./rack_buffers
 */

#include <arpa/inet.h>
#include <ethermem_rack.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MESSAGE_BYTES = 4096, MESSAGES = 10000 };

static void check(int is_right, const char *what) {
    if (!is_right) {
        perror(what);
        exit(1);
    }
}

static void send_all(int fd) {
    for (uint32_t number = 0; number < MESSAGES; number++) {
        uint32_t *buffer = alloc_shared_buffer(fd, MESSAGE_BYTES);
        check(buffer != NULL, "alloc_shared_buffer");
        for (size_t at = 0; at < MESSAGE_BYTES / sizeof *buffer; at++)
            buffer[at] = number;
        check(build_shared_skb(fd, buffer, MESSAGE_BYTES) == MESSAGE_BYTES, "build_shared_skb");
    }
}

/* Adds up all numbers; a reference may end within a message. */
static uint64_t receive_all(int fd) {
    uint64_t sum = 0, got = 0;
    while (got < (uint64_t)MESSAGE_BYTES * MESSAGES) {
        const void *bytes;
        ssize_t length = recv_shared_skb(fd, &bytes, MESSAGE_BYTES, 0);
        check(length > 0, "recv_shared_skb");
        for (ssize_t at = 0; at < length; at++)
            sum += (uint64_t)((const uint8_t *)bytes)[at] << 8 * ((got + at) % sizeof(uint32_t));
        got += length;
        check(kfree_shared_skb(fd, bytes) == 0, "kfree_shared_skb");
    }
    return sum;
}

int main(void) {
    if (!ethermem_rack_is_here()) {
        fprintf(stderr, "start this program by `ethermem rack run`\n");
        return 1;
    }
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    check(bind(listener, (struct sockaddr *)&address, length) == 0, "bind");
    check(listen(listener, 1) == 0, "listen");
    check(getsockname(listener, (struct sockaddr *)&address, &length) == 0, "getsockname");
    pid_t child = fork();
    check(child >= 0, "fork");
    if (child == 0) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        check(connect(fd, (struct sockaddr *)&address, length) == 0, "connect");
        send_all(fd);
        close(fd);
        return 0;
    }
    int fd = accept(listener, NULL, NULL);
    check(fd >= 0, "accept");
    uint64_t sum = receive_all(fd);
    close(fd);
    int status;
    check(waitpid(child, &status, 0) == child && status == 0, "the child");
    uint64_t numbers = (uint64_t)(MESSAGES - 1) * MESSAGES / 2;
    uint64_t expected = numbers * (MESSAGE_BYTES / sizeof(uint32_t));
    printf("%d messages of %d B, sum %llu\n", MESSAGES, MESSAGE_BYTES, (unsigned long long)sum);
    return sum == expected ? 0 : 1;
}
