/* Machine threads that share a pool: no result is lost, whichever thread completes an operation.
 * Arguments: the pool, the number of threads, the number of operations of all threads together. */

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "check.h"

enum { WORDS = 64, THREADS_MAX = 64 };

static ethermem_thread owner;
static ethermem_store store;
static uint64_t shared; /* A counter of atomics, a lock, a counter under the lock. */
static uint64_t share;

typedef struct {
    ethermem_thread thread;
    ethermem_client client;
    uint64_t own, number, draws, added, locked, done;
    uint64_t model[WORDS];
    pthread_t machine;
} worker;

static uint64_t draw(worker *self) {
    self->draws ^= self->draws << 13;
    self->draws ^= self->draws >> 7;
    return self->draws ^= self->draws << 17;
}

/* A counter that only the lock protects. */
static uint64_t under_the_lock(worker *self) {
    OK(rlock(self->thread, shared + 8, NULL));
    uint64_t count = word_at(self->thread, shared + 16) + 1;
    OK(rwrite(self->thread, shared + 16, &count, 8, NULL));
    OK(runlock(self->thread, shared + 8));
    self->locked++;
    return 5;
}

/* Several operations in flight, in the order of their thread. */
static uint64_t several(worker *self, uint64_t at, uint64_t value) {
    uint64_t read = 0;
    ethermem_pending pending[3] = {{0}, {0}, {0}};
    OK(rwrite(self->thread, self->own + 8 * at, &value, 8, &pending[0]));
    OK(rrelease(self->thread, &pending[1]));
    OK(rread(self->thread, self->own + 8 * at, &read, 8, &pending[2]));
    if (value % 2 == 0) {
        OK(rpoll(pending, 3, NULL));
    } else {
        for (int i = 0; i < 3; i++)
            for (bool ended = false; !ended;)
                OK(rtest(&pending[i], &ended));
    }
    CHECK(read == value);
    self->model[at] = value;
    return 3;
}

/* Each operation of a store is several of the pool. */
static uint64_t key_value(worker *self, uint64_t value) {
    uint64_t read = 0, bytes = 0;
    bool found = false;
    OK(rkv_put(self->client, &self->number, 8, &value, 8, NULL));
    OK(rkv_read(self->client, &self->number, 8, &read, 8, &bytes, &found, NULL));
    CHECK(found && bytes == 8 && read == value);
    return 2;
}

static uint64_t act(worker *self) {
    uint64_t at = draw(self) % WORDS, value = draw(self), before = 0;
    uint64_t place = self->own + 8 * at;
    switch (draw(self) % 12) {
    case 0: case 1: case 2:
        OK(rwrite(self->thread, place, &value, 8, NULL));
        self->model[at] = value;
        return 1;
    case 3: case 4: case 5:
        CHECK(word_at(self->thread, place) == self->model[at]);
        return 1;
    case 6:
        OK(rfetch_add(self->thread, shared, 1, &before, NULL));
        self->added++;
        return 1;
    case 7:
        return under_the_lock(self);
    case 8:
        return several(self, at, value);
    case 9:
        return key_value(self, value);
    case 10:
        before = page(self->thread);
        CHECK(word_at(self->thread, before) == 0);
        OK(rfree(self->thread, before, 4096, NULL));
        return 3;
    default:
        OK(rfence(self->thread, NULL));
        return 1;
    }
}

static void *run(void *argument) {
    worker *self = argument;
    while (self->done < share)
        self->done += act(self);
    return NULL;
}

int main(int count, char **words) {
    CHECK(count == 4);
    ethermem_pool pool = {0};
    time_t began = time(NULL);
    OK(ropen(words[1], &pool));
    uint64_t threads = strtoull(words[2], NULL, 10);
    CHECK(threads > 0 && threads <= THREADS_MAX);
    share = strtoull(words[3], NULL, 10) / threads;
    OK(rthread(pool, &owner));
    OK(rstore(pool, 0, 64, 0, &store));
    shared = page(owner);
    static worker workers[THREADS_MAX];
    for (uint64_t i = 0; i < threads; i++) {
        worker *self = &workers[i];
        OK(rfork(owner, &self->thread));
        OK(rclient(store, ETHERMEM_INDEX_CLIENT, &self->client));
        self->own = page(self->thread);
        self->number = i;
        self->draws = 88172645463325252ULL + i;
    }
    for (uint64_t i = 0; i < threads; i++)
        CHECK(pthread_create(&workers[i].machine, NULL, run, &workers[i]) == 0);
    uint64_t added = 0, locked = 0, done = 0;
    for (uint64_t i = 0; i < threads; i++) {
        CHECK(pthread_join(workers[i].machine, NULL) == 0);
        added += workers[i].added;
        locked += workers[i].locked;
        done += workers[i].done;
    }
    CHECK(word_at(owner, shared) == added && word_at(owner, shared + 16) == locked);
    OK(rclose(pool));
    double seconds = difftime(time(NULL), began);
    printf("storm: %s threads %s operations %" PRIu64 " seconds %.0f\n", words[1], words[2], done,
           seconds);
    return 0;
}
