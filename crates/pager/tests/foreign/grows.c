// Programs whose memory grows as fast as they can make it grow. Each checks every word that it
// wrote, and prints "clean".
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, THREADS = 8, PROCESSES = 6, BLOCKS = 4096 };

static void fail(const char *what) {
    printf("%s\n", what);
    fflush(stdout);
    _exit(1);
}

static uint64_t word(uint64_t seed, uint64_t place) {
    uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15u + place * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 29;
}

static uint64_t *map(size_t bytes) {
    uint64_t *at =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        fail("no memory");
    return at;
}

// One word a page, in mappings of 1 MiB, then all of them are read.
static void *touch(void *arguments) {
    uint64_t seed = ((uint64_t *)arguments)[0], mib = ((uint64_t *)arguments)[1];
    uint64_t **all = malloc(mib * sizeof *all);
    for (uint64_t i = 0; i < mib; i++) {
        all[i] = map(1 << 20);
        for (uint64_t at = 0; at < 1 << 20; at += PAGE)
            all[i][at / 8] = word(seed, i << 20 | at);
    }
    for (uint64_t i = 0; i < mib; i++)
        for (uint64_t at = 0; at < 1 << 20; at += PAGE)
            if (all[i][at / 8] != word(seed, i << 20 | at) || all[i][at / 8 + 1])
                fail("a wrong word");
    free(all);
    return NULL;
}

static void threads(uint64_t mib) {
    pthread_t started[THREADS];
    uint64_t arguments[THREADS][2];
    for (int i = 0; i < THREADS; i++) {
        arguments[i][0] = i;
        arguments[i][1] = mib / THREADS;
        if (pthread_create(&started[i], NULL, touch, arguments[i]))
            fail("no thread");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(started[i], NULL);
}

static void wait_for(int children) {
    for (int status; children > 0; children--)
        if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
            fail("a child failed");
}

static void processes(uint64_t mib) {
    for (int i = 0; i < PROCESSES; i++)
        if (fork() == 0) {
            uint64_t arguments[] = {i, mib / PROCESSES};
            touch(arguments);
            _exit(0);
        }
    wait_for(PROCESSES);
}

// The parent has memory, each child changes all of it: every write copies a page.
static void copies(uint64_t mib) {
    size_t bytes = (mib << 20) / PROCESSES;
    uint64_t *mine = map(bytes);
    for (size_t at = 0; at < bytes; at += PAGE)
        mine[at / 8] = word(0, at);
    for (uint64_t i = 1; i < PROCESSES; i++)
        if (fork() == 0) {
            for (size_t at = 0; at < bytes; at += PAGE) {
                if (mine[at / 8] != word(0, at))
                    fail("a wrong word of the parent");
                mine[at / 8] = word(i, at);
            }
            for (size_t at = 0; at < bytes; at += PAGE)
                if (mine[at / 8] != word(i, at))
                    fail("a wrong word of a child");
            _exit(0);
        }
    for (size_t at = 0; at < bytes; at += PAGE) {
        if (mine[at / 8] != word(0, at))
            fail("a wrong word after the forks");
        mine[at / 8] = word(9, at);
    }
    wait_for(PROCESSES - 1);
}

// Blocks of 64 B to 256 KiB come and go: the heap grows by `brk`, large blocks by `mmap`.
static void churn(uint64_t mib) {
    struct { unsigned char *at; size_t bytes; unsigned char value; } *all;
    all = calloc(BLOCKS, sizeof *all);
    uint64_t live = 0, state = 1;
    for (uint64_t step = 0; step < 40000; step++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t i = (state >> 33) % BLOCKS;
        if (all[i].at) {
            for (size_t at = 0; at < all[i].bytes; at += 1021)
                if (all[i].at[at] != all[i].value)
                    fail("a wrong byte");
            live -= all[i].bytes;
            free(all[i].at);
            all[i].at = NULL;
        }
        size_t bytes = 64u << (state >> 60) % 13;
        if (live + bytes <= mib << 20 && (all[i].at = malloc(bytes))) {
            all[i].bytes = bytes;
            all[i].value = step;
            memset(all[i].at, all[i].value, bytes);
            live += bytes;
        }
    }
}

// Reads all pages, which may be the kernel's common page of zeroes, and then writes them.
static void zeroes(uint64_t mib) {
    size_t bytes = mib << 20;
    uint64_t *at = map(bytes), sum = 0;
    for (int round = 0; round < 2; round++)
        for (size_t place = 0; place < bytes; place += PAGE)
            sum += at[place / 8];
    if (sum)
        fail("fresh memory is not zero");
    for (size_t place = 0; place < bytes; place += PAGE)
        at[place / 8] = word(3, place);
    for (size_t place = 0; place < bytes; place += PAGE)
        if (at[place / 8] != word(3, place))
            fail("a wrong word");
}

// Shared memory, which the pager does not serve, and then private memory.
static void shared(uint64_t mib) {
    size_t bytes = mib << 20;
    uint64_t arguments[] = {7, mib};
    uint64_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        fail("no memory");
    for (size_t place = 0; place < bytes; place += PAGE)
        at[place / 8] = word(5, place);
    touch(arguments);
    for (size_t place = 0; place < bytes; place += PAGE)
        if (at[place / 8] != word(5, place))
            fail("a wrong word");
}

int main(int count, char **words) {
    if (count != 3)
        fail("usage: grows KIND MEBIBYTES");
    const char *kind = words[1];
    uint64_t mib = strtoull(words[2], NULL, 10), alone[] = {7, mib};
    if (!strcmp(kind, "touch"))
        touch(alone);
    else if (!strcmp(kind, "threads"))
        threads(mib);
    else if (!strcmp(kind, "processes"))
        processes(mib);
    else if (!strcmp(kind, "copies"))
        copies(mib);
    else if (!strcmp(kind, "churn"))
        churn(mib);
    else if (!strcmp(kind, "zeroes"))
        zeroes(mib);
    else if (!strcmp(kind, "shared"))
        shared(mib);
    else
        fail("no such kind");
    printf("clean\n");
    return 0;
}
