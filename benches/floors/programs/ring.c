/* R: frames of a length of their own each way through AF_PACKET, busy polling, received from a ring
 * in shared memory. The floor of any transport that builds its own Ethernet frames.
 *
 * ring INTERFACE REQUEST_BYTES RESPONSE_BYTES COUNT CLIENT_CPU SERVER_CPU
 *
 * Both EtherTypes are those of local experiments (IEEE 802). Frames carry the sender's number, so
 * that a lost one ends the run with an error instead of shifting every later sample. */
#include "samples.h"
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>

enum {
    FRAME_BYTES = 16384,
    FRAMES = 256,
    BLOCK_BYTES = 1 << 16,
    HEADER_BYTES = 14,
    TO_SERVER = 0x88b5,
    TO_CLIENT = 0x88b6,
    SILENCE_MAX_NS = 1000000000,
};

struct end {
    int socket;
    char *ring;
    unsigned at;
    char frame[FRAME_BYTES];
};

static void open_end(struct end *end, const char *interface, int ours, int theirs) {
    int one = 1, version = TPACKET_V2;
    struct tpacket_req request = {BLOCK_BYTES, FRAMES * FRAME_BYTES / BLOCK_BYTES, FRAME_BYTES,
                                  FRAMES};
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ours)};
    address.sll_ifindex = (int)if_nametoindex(interface);
    if (!address.sll_ifindex) die(2, interface);
    end->socket = socket(AF_PACKET, SOCK_RAW, 0);
    if (end->socket < 0) die(errno == EPERM ? EXIT_LACKING : 1, "AF_PACKET needs CAP_NET_RAW");
    setsockopt(end->socket, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one);
    setsockopt(end->socket, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one);
    if (setsockopt(end->socket, SOL_PACKET, PACKET_VERSION, &version, sizeof version) ||
        setsockopt(end->socket, SOL_PACKET, PACKET_RX_RING, &request, sizeof request)) {
        die(EXIT_LACKING, "a ring of AF_PACKET");
    }
    end->ring = mmap(NULL, (size_t)FRAMES * FRAME_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                     end->socket, 0);
    if (end->ring == MAP_FAILED) die(1, "mmap of the ring");
    if (bind(end->socket, (void *)&address, sizeof address)) die(1, "bind");
    end->at = 0;
    memset(end->frame, 0, sizeof end->frame);
    memset(end->frame, 0xff, 6);
    end->frame[6] = 2;
    end->frame[12] = (char)(theirs >> 8);
    end->frame[13] = (char)theirs;
}

static void send_frame(struct end *end, uint32_t number, size_t bytes) {
    memcpy(end->frame + HEADER_BYTES, &number, sizeof number);
    if (send(end->socket, end->frame, bytes, 0) != (ssize_t)bytes) die(1, "send");
}

/* Waits for a frame, copies it out, and gives its number. */
static uint32_t receive_frame(struct end *end, char *into) {
    struct tpacket2_hdr *header = (void *)(end->ring + (size_t)end->at * FRAME_BYTES);
    uint64_t spins = 0, since = 0;
    uint32_t number;
    while (!(__atomic_load_n(&header->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) {
        relax();
        if (++spins % (1 << 20)) continue;
        if (!since) since = now_ns();
        if (now_ns() - since > SILENCE_MAX_NS) {
            fprintf(stderr, "no frame for a second\n");
            exit(1);
        }
    }
    memcpy(into, (char *)header + header->tp_mac, header->tp_snaplen);
    __atomic_store_n(&header->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
    end->at = (end->at + 1) % FRAMES;
    memcpy(&number, into + HEADER_BYTES, sizeof number);
    return number;
}

int main(int argc, char **argv) {
    static struct end end;
    static char received[FRAME_BYTES];
    if (argc != 7) {
        fprintf(stderr, "ring INTERFACE REQUEST_BYTES RESPONSE_BYTES COUNT CLIENT_CPU "
                        "SERVER_CPU\n");
        return 2;
    }
    size_t request_bytes = HEADER_BYTES + (size_t)number(argv[2], 8192, "REQUEST_BYTES");
    size_t response_bytes = HEADER_BYTES + (size_t)number(argv[3], 8192, "RESPONSE_BYTES");
    size_t count = (size_t)number(argv[4], 10000000, "COUNT"), warm = count / 10;
    int client_cpu = (int)number(argv[5], 1023, "CLIENT_CPU");
    int server_cpu = (int)number(argv[6], 1023, "SERVER_CPU");
    /* Both rings are there before the first frame. */
    int ready[2];
    if (pipe(ready)) die(1, "pipe");
    pid_t server = fork_server();
    if (server == 0) {
        pin(server_cpu);
        open_end(&end, argv[1], TO_SERVER, TO_CLIENT);
        if (write(ready[1], "1", 1) != 1) die(1, "pipe");
        for (;;) send_frame(&end, receive_frame(&end, received), response_bytes);
    }
    close(ready[1]);
    pin(client_cpu);
    open_end(&end, argv[1], TO_CLIENT, TO_SERVER);
    char byte;
    if (read(ready[0], &byte, 1) != 1) return 1;
    uint32_t *samples = new_samples(count);
    for (size_t i = 0; i < count + warm; i++) {
        uint64_t start = now_ns();
        send_frame(&end, (uint32_t)i, request_bytes);
        uint32_t got = receive_frame(&end, received);
        uint64_t took = now_ns() - start;
        if (got != (uint32_t)i) {
            fprintf(stderr, "frame %u in place of %zu\n", got, i);
            return 1;
        }
        if (i >= warm) samples[i - warm] = as_sample(took);
    }
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    write_samples(samples, count);
    return 0;
}
