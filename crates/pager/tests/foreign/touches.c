/* Threads touch random pages of memory that they share: `touches THREADS PAGES TOUCHES`. Each word
   of a page has the page's number, plus the number of writes of its owner. Prints touches per
   second. */

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WORDS = 4096 / 8, THREADS_MAX = 64 };

static volatile uint64_t *memory;
static uint64_t threads, pages, touches;
static uint64_t wrong[THREADS_MAX];
static pthread_barrier_t start;

/* Thread n owns the words n, n + threads, ... of every page. */
static void *touch(void *argument)
{
    uint64_t number = (uint64_t)argument, state = number + 1;
    uint64_t *known = calloc(pages, sizeof *known);
    pthread_barrier_wait(&start);
    for (uint64_t at = 0; at < touches; at++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t page = (state >> 33) % pages;
        volatile uint64_t *word = &memory[page * WORDS + number];
        wrong[number] += *word != page + known[page];
        if (at % 4 == 0) {
            known[page] += 1;
            *word += 1;
        }
    }
    return NULL;
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    threads = strtoull(words[1], NULL, 10);
    pages = strtoull(words[2], NULL, 10);
    touches = strtoull(words[3], NULL, 10);
    if (threads == 0 || threads > THREADS_MAX)
        return 2;
    memory = aligned_alloc(4096, pages * 4096);
    for (uint64_t page = 0; page < pages; page++)
        for (uint64_t word = 0; word < WORDS; word++)
            memory[page * WORDS + word] = page;
    pthread_t all[THREADS_MAX];
    pthread_barrier_init(&start, NULL, threads + 1);
    for (uint64_t number = 0; number < threads; number++)
        pthread_create(&all[number], NULL, touch, (void *)number);
    struct timespec from, to;
    pthread_barrier_wait(&start);
    clock_gettime(CLOCK_MONOTONIC, &from);
    uint64_t bad = 0;
    for (uint64_t number = 0; number < threads; number++) {
        pthread_join(all[number], NULL);
        bad += wrong[number];
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    double seconds = to.tv_sec - from.tv_sec + (to.tv_nsec - from.tv_nsec) / 1e9;
    printf("%s %.0f\n", bad ? "wrong" : "clean", threads * touches / seconds);
    return bad != 0;
}
