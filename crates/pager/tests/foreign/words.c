/* Fills memory with computable words, and checks them after everything that programs do:
 * threads that start and end, blocks that grow and move, system calls, forks. Links with any C
 * library, statically or not. Exits with 0 and prints "clean" if every word was right. */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 1 << 19, THREADS = 4, ROUNDS = 3, BLOCK_BYTES = 256 << 10, GROWTHS = 40 };

static uint64_t variables[1 << 15];
static uint64_t *words;

static uint64_t word(uint64_t place) {
    place ^= place >> 33;
    place *= 0xff51afd7ed558ccd;
    return place ^ place >> 33;
}

static void check(uint64_t found, uint64_t wanted, const char *what) {
    if (found != wanted) {
        fprintf(stderr, "%s: %llx, not %llx\n", what, (unsigned long long)found,
                (unsigned long long)wanted);
        _exit(3);
    }
}

static void *count_up(void *thread) {
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (uint64_t place = (uintptr_t)thread; place < WORDS; place += THREADS) {
            check(words[place], word(place) + round, "a word of a thread");
            words[place]++;
        }
    }
    return NULL;
}

/* Grows and moves a block while the others count and the first thread forks. */
static void *grow(void *unused) {
    (void)unused;
    size_t bytes = BLOCK_BYTES;
    uint64_t *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t filled = 0;
    for (int growth = 0; growth < GROWTHS; growth++) {
        for (; filled < bytes / 8; filled++) {
            block[filled] = word(~filled);
        }
        block = mremap(block, bytes, bytes + BLOCK_BYTES / 4, MREMAP_MAYMOVE);
        bytes += BLOCK_BYTES / 4;
        for (uint64_t place = 0; place < filled; place += 61) {
            check(block[place], word(~place), "a word of a block that moved");
        }
    }
    munmap(block, bytes);
    return NULL;
}

static void *nothing(void *block) { return block; }

/* A child has what its parent had: `counted` says whether the threads have ended. */
static void fork_and_check(int counted) {
    pid_t child = fork();
    if (child == 0) {
        for (uint64_t place = 0; place < WORDS; place += 97) {
            uint64_t added = words[place] - word(place);
            check(added <= ROUNDS && (!counted || added == ROUNDS), 1, "a word of a child");
            words[place] = 0;
        }
        _exit(0);
    }
    int status = 0;
    check(waitpid(child, &status, 0) == child, 1, "a child that is waited for");
    check(status, 0, "a child's end");
}

int main(int count, char **arguments) {
    check(count == 2 && strcmp(arguments[1], "argument") == 0, 1, "the arguments");
    check(getenv("PATH") != NULL, 1, "the environment");
    words = malloc(WORDS * sizeof *words);
    for (uint64_t place = 0; place < WORDS; place++) {
        words[place] = word(place);
    }
    for (uint64_t place = 0; place < sizeof variables / 8; place++) {
        variables[place] = word(place);
    }
    pthread_t threads[THREADS], grower;
    for (uintptr_t thread = 0; thread < THREADS; thread++) {
        pthread_create(&threads[thread], NULL, count_up, (void *)thread);
    }
    pthread_create(&grower, NULL, grow, NULL);
    for (int fork = 0; fork < 3; fork++) {
        fork_and_check(0);
    }
    for (int thread = 0; thread < THREADS; thread++) {
        pthread_join(threads[thread], NULL);
    }
    pthread_join(grower, NULL);
    for (int thread = 0; thread < 100; thread++) {
        pthread_t short_lived;
        void *block = malloc(64), *same;
        pthread_create(&short_lived, NULL, nothing, block);
        pthread_join(short_lived, &same);
        check((uintptr_t)same, (uintptr_t)block, "what a thread gave");
        free(same);
    }
    fork_and_check(1);
    int pipe_ends[2];
    check(pipe(pipe_ends), 0, "a pipe");
    static uint64_t read_back[512];
    for (int block = 0; block < 100; block++) {
        const uint64_t *from = words + block * 5000;
        check(write(pipe_ends[1], from, sizeof read_back), sizeof read_back, "a write");
        check(read(pipe_ends[0], read_back, sizeof read_back), sizeof read_back, "a read");
        check(memcmp(read_back, from, sizeof read_back), 0, "what was read");
    }
    for (uint64_t place = 0; place < WORDS; place++) {
        check(words[place], word(place) + ROUNDS, "a word");
    }
    for (uint64_t place = 0; place < sizeof variables / 8; place++) {
        check(variables[place], word(place), "a variable");
    }
    puts("clean");
    return 0;
}
