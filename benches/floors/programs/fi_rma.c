/* libfabric's one-sided reads and writes between two processes of this machine, both of which
 * progress by busy polling.
 *
 * fi_rma PROVIDER read|write BYTES COUNT WINDOW CLIENT_CPU SERVER_CPU
 *
 * With a window of 1 a sample is one operation, a write being done when its bytes are at the target
 * (FI_DELIVERY_COMPLETE). With a larger one a sample is BATCH operations of that many under way. */
#include "samples.h"
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

enum { BATCH = 128, WINDOW_MAX = 1024, SLOT_BYTES = 8192, COMPLETIONS = 32 };

struct shared {
    volatile int ready, done;
    size_t address_bytes;
    char address[256];
    uint64_t target, key;
};

struct fabric {
    struct fi_info *info;
    struct fid_ep *endpoint;
    struct fid_av *addresses;
    struct fid_cq *completions;
    struct fid_mr *memory;
    char *bytes;
};

static void check(int result, const char *what) {
    if (!result) return;
    fprintf(stderr, "%s: %s\n", what, fi_strerror(-result));
    exit(1);
}

static void find(struct fabric *f, const char *provider, int acknowledged) {
    struct fi_info *hints = fi_allocinfo();
    if (!hints) die(1, "fi_allocinfo");
    hints->caps = FI_MSG | FI_RMA;
    hints->mode = FI_CONTEXT;
    hints->ep_attr->type = FI_EP_RDM;
    hints->fabric_attr->prov_name = strdup(provider);
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    if (acknowledged) hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE | FI_COMPLETION;
    int result = fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &f->info);
    if (result == -FI_ENODATA) {
        fprintf(stderr, "libfabric has no provider %s here\n", provider);
        exit(EXIT_LACKING);
    }
    check(result, "fi_getinfo");
}

static void open_fabric(struct fabric *f) {
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fi_av_attr addresses = {.type = FI_AV_MAP};
    struct fi_cq_attr completions = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE};
    size_t bytes = (size_t)WINDOW_MAX * SLOT_BYTES;
    uint64_t access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    check(fi_fabric(f->info->fabric_attr, &fabric, NULL), "fi_fabric");
    check(fi_domain(fabric, f->info, &domain, NULL), "fi_domain");
    check(fi_av_open(domain, &addresses, &f->addresses, NULL), "fi_av_open");
    check(fi_cq_open(domain, &completions, &f->completions, NULL), "fi_cq_open");
    check(fi_endpoint(domain, f->info, &f->endpoint, NULL), "fi_endpoint");
    check(fi_ep_bind(f->endpoint, &f->addresses->fid, 0), "fi_ep_bind");
    check(fi_ep_bind(f->endpoint, &f->completions->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    check(fi_enable(f->endpoint), "fi_enable");
    f->bytes = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (f->bytes == MAP_FAILED) die(1, "mmap");
    memset(f->bytes, 1, bytes);
    check(fi_mr_reg(domain, f->bytes, bytes, access, 0, 1, 0, &f->memory, NULL), "fi_mr_reg");
}

static void serve(struct fabric *f, struct shared *shared) {
    struct fi_cq_entry entry;
    shared->address_bytes = sizeof shared->address;
    check(fi_getname(&f->endpoint->fid, shared->address, &shared->address_bytes), "fi_getname");
    int is_virtual = (f->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    shared->target = is_virtual ? (uintptr_t)f->bytes : 0;
    shared->key = fi_mr_key(f->memory);
    __atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
    while (!shared->done) fi_cq_read(f->completions, &entry, 1);
    _exit(0);
}

/* How many ended. */
static size_t completed(struct fabric *f) {
    struct fi_cq_entry entries[COMPLETIONS];
    ssize_t got = fi_cq_read(f->completions, entries, COMPLETIONS);
    if (got >= 0) return (size_t)got;
    if (got != -FI_EAGAIN) check((int)got, "fi_cq_read");
    return 0;
}

struct job {
    int writes;
    size_t bytes, count, window;
    fi_addr_t peer;
};

static ssize_t post(struct fabric *f, const struct shared *shared, const struct job *job,
                    size_t at) {
    static struct fi_context contexts[WINDOW_MAX];
    /* Operations end in any order: a context is used again only WINDOW_MAX of them later. */
    size_t slot = at % WINDOW_MAX, offset = at % job->window * SLOT_BYTES;
    void *descriptor = fi_mr_desc(f->memory), *local = f->bytes + offset;
    uint64_t remote = shared->target + offset;
    return job->writes ? fi_write(f->endpoint, local, job->bytes, descriptor, job->peer, remote,
                                  shared->key, &contexts[slot])
                       : fi_read(f->endpoint, local, job->bytes, descriptor, job->peer, remote,
                                 shared->key, &contexts[slot]);
}

static void measure(struct fabric *f, struct shared *shared, const struct job *job) {
    size_t per_sample = job->window > 1 ? BATCH : 1, warm = job->count / 10;
    size_t total = (job->count + warm) * per_sample, posted = 0, ended = 0, sampled = 0;
    uint32_t *samples = new_samples(job->count);
    uint64_t start = now_ns();
    while (sampled < job->count + warm) {
        while (posted < total && posted - ended < job->window) {
            ssize_t result = post(f, shared, job, posted);
            if (result == -FI_EAGAIN) break;
            check((int)result, job->writes ? "fi_write" : "fi_read");
            posted++;
        }
        ended += completed(f);
        if (ended < (sampled + 1) * per_sample) continue;
        uint64_t now = now_ns();
        if (sampled >= warm) samples[sampled - warm] = as_sample(now - start);
        sampled++;
        start = now;
    }
    shared->done = 1;
    write_samples(samples, job->count);
}

int main(int argc, char **argv) {
    static struct fabric fabric;
    if (argc != 8) {
        fprintf(stderr,
                "fi_rma PROVIDER read|write BYTES COUNT WINDOW CLIENT_CPU SERVER_CPU\n");
        return 2;
    }
    struct job job = {.writes = strcmp(argv[2], "write") == 0};
    job.bytes = (size_t)number(argv[3], SLOT_BYTES, "BYTES");
    job.count = (size_t)number(argv[4], 10000000, "COUNT");
    job.window = (size_t)number(argv[5], WINDOW_MAX, "WINDOW");
    int client_cpu = (int)number(argv[6], 1023, "CLIENT_CPU");
    int server_cpu = (int)number(argv[7], 1023, "SERVER_CPU");
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) die(1, "mmap");
    pid_t server = fork_server();
    pin(server == 0 ? server_cpu : client_cpu);
    find(&fabric, argv[1], job.writes && job.window == 1);
    open_fabric(&fabric);
    if (server == 0) serve(&fabric, shared);
    while (!__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE)) {
        if (waitpid(server, NULL, WNOHANG) == server) return 1;
        usleep(1000);
    }
    if (fi_av_insert(fabric.addresses, shared->address, 1, &job.peer, 0, NULL) != 1) {
        die(1, "fi_av_insert");
    }
    measure(&fabric, shared, &job);
    waitpid(server, NULL, 0);
    return 0;
}
