/* What two threads may see of each other's writes (section 3.1 of Clio's paper), on the pool that
 * the first argument names. The second is `threads` if machine threads take part, too. */

#include <pthread.h>

#include "check.h"

static void on_node(ethermem_thread owner, uint16_t client, ethermem_pool pool,
                    ethermem_thread *thread) {
    uint16_t compute_nodes = 0;
    OK(rnodes(pool, &compute_nodes, NULL));
    OK(rfork_on(owner, (uint16_t)(client % compute_nodes), thread));
}

/* Two words, on different memory nodes if there are several. */
static void words(ethermem_thread owner, uint64_t *first, uint64_t *second) {
    *first = page(owner);
    *second = page(owner);
}

/* Message passing: a reader that sees the flag sees the data, if the writer releases before the
 * flag. The reader polls all the time, from before the writer begins. */
static void message_passing(ethermem_pool pool, ethermem_thread owner) {
    ethermem_thread writer = {0}, reader = {0};
    uint64_t data = 0, flag = 0, one = 1, seen = 0, looks = 0;
    words(owner, &data, &flag);
    on_node(owner, 0, pool, &writer);
    on_node(owner, 1, pool, &reader);
    ethermem_pending written = {0}, released = {0}, flagged = {0}, looking = {0};
    bool done = false;
    OK(rread(reader, flag, &seen, 8, &looking));
    OK(rwrite(writer, data, &one, 8, &written));
    OK(rrelease(writer, &released));
    while (seen == 0) {
        if (released.id != 0) {
            OK(rtest(&released, &done));
            if (done)
                OK(rwrite(writer, flag, &one, 8, &flagged));
        }
        OK(rtest(&looking, &done));
        if (done && seen == 0)
            OK(rread(reader, flag, &seen, 8, &looking));
        looks += done;
    }
    CHECK(looks > 1 && word_at(reader, data) == 1);
    ethermem_pending rest[2] = {written, flagged};
    OK(rpoll(rest, 2, NULL));
}

/* Store buffering: each thread writes its word and reads the other's. With a fence between, at most
 * one misses the other's write. Returns how many did. */
static int store_buffering(ethermem_pool pool, ethermem_thread owner, bool fenced,
                           uint64_t skew_ps) {
    ethermem_thread thread[2] = {{0}, {0}};
    ethermem_pending write[2] = {{0}, {0}}, sleep[2] = {{0}, {0}};
    ethermem_pending fence[2] = {{0}, {0}}, read[2] = {{0}, {0}};
    uint64_t word[2] = {0, 0}, one = 1, seen[2] = {0, 0};
    int left = 2;
    words(owner, &word[0], &word[1]);
    for (uint16_t side = 0; side < 2; side++) {
        on_node(owner, side, pool, &thread[side]);
        OK(rsleep(thread[side], side * skew_ps, &sleep[side]));
    }
    while (left > 0) {
        for (int side = 0; side < 2; side++) {
            bool done = false;
            if (sleep[side].id != 0) {
                OK(rtest(&sleep[side], &done));
                if (!done)
                    continue;
                OK(rwrite(thread[side], word[side], &one, 8, &write[side]));
                if (fenced)
                    OK(rfence(thread[side], &fence[side]));
                else
                    OK(rread(thread[side], word[1 - side], &seen[side], 8, &read[side]));
            } else if (fence[side].id != 0) {
                OK(rtest(&fence[side], &done));
                if (done)
                    OK(rread(thread[side], word[1 - side], &seen[side], 8, &read[side]));
            } else if (read[side].id != 0) {
                OK(rtest(&read[side], &done));
                left -= done;
            }
        }
    }
    OK(rpoll(write, 2, NULL));
    return (seen[0] == 0) + (seen[1] == 0);
}

enum { CLIENTS = 4, ROUNDS = 20, MACHINE_ROUNDS = 100 };

/* A counter that each client reads and writes back, under a lock: all concurrently, by polling. */
static void counter(ethermem_pool pool, ethermem_thread owner) {
    struct {
        ethermem_thread thread;
        ethermem_pending locking, reading, writing;
        uint64_t count;
        int rounds;
    } client[CLIENTS];
    uint64_t lock = 0, count = 0;
    int open = CLIENTS;
    words(owner, &lock, &count);
    memset(client, 0, sizeof client);
    for (uint16_t i = 0; i < CLIENTS; i++) {
        on_node(owner, i, pool, &client[i].thread);
        OK(rlock(client[i].thread, lock, &client[i].locking));
    }
    while (open > 0) {
        for (int i = 0; i < CLIENTS; i++) {
            ethermem_thread thread = client[i].thread;
            bool done = false;
            if (client[i].locking.id != 0) {
                OK(rtest(&client[i].locking, &done));
                if (done)
                    OK(rread(thread, count, &client[i].count, 8, &client[i].reading));
            } else if (client[i].reading.id != 0) {
                OK(rtest(&client[i].reading, &done));
                if (!done)
                    continue;
                client[i].count++;
                OK(rwrite(thread, count, &client[i].count, 8, &client[i].writing));
                /* Unlocking releases, so the write is done before another client has the lock. */
                OK(runlock(thread, lock));
                OK(rpoll(&client[i].writing, 1, NULL));
                if (++client[i].rounds < ROUNDS)
                    OK(rlock(thread, lock, &client[i].locking));
                else
                    open--;
            }
        }
    }
    CHECK(word_at(owner, count) == (uint64_t)CLIENTS * ROUNDS);
}

struct shared {
    ethermem_thread thread;
    uint64_t lock, count;
};

static void *counting(void *argument) {
    struct shared *shared = (struct shared *)argument;
    for (int round = 0; round < MACHINE_ROUNDS; round++) {
        OK(rlock(shared->thread, shared->lock, NULL));
        uint64_t next = word_at(shared->thread, shared->count) + 1;
        OK(rwrite(shared->thread, shared->count, &next, 8, NULL));
        OK(runlock(shared->thread, shared->lock));
    }
    return NULL;
}

/* The counter with machine threads, as in Clio's Figure 2. */
static void counter_of_machine_threads(ethermem_thread owner) {
    pthread_t machine[CLIENTS];
    struct shared shared[CLIENTS];
    uint64_t lock = 0, count = 0;
    words(owner, &lock, &count);
    for (int i = 0; i < CLIENTS; i++) {
        shared[i].lock = lock;
        shared[i].count = count;
        OK(rfork(owner, &shared[i].thread));
        CHECK(pthread_create(&machine[i], NULL, counting, &shared[i]) == 0);
    }
    for (int i = 0; i < CLIENTS; i++)
        CHECK(pthread_join(machine[i], NULL) == 0);
    CHECK(word_at(owner, count) == (uint64_t)CLIENTS * MACHINE_ROUNDS);
}

int main(int count, char **arguments) {
    CHECK(count >= 2);
    ethermem_pool pool = {0};
    ethermem_thread owner = {0};
    OK(ropen(arguments[1], &pool));
    OK(rthread(pool, &owner));
    message_passing(pool, owner);
    for (uint64_t skew = 0; skew < 8; skew++)
        CHECK(store_buffering(pool, owner, true, skew * 40000) < 2);
    /* Without a fence both may miss, and on a fabric that sends both at once they do. */
    if (strncmp(arguments[1], "sim:edm", 7) == 0)
        CHECK(store_buffering(pool, owner, false, 0) == 2);
    counter(pool, owner);
    if (count == 3 && strcmp(arguments[2], "threads") == 0)
        counter_of_machine_threads(owner);
    OK(rclose(pool));
    return 0;
}
