/* Holds words and checks them until FILE appears, and measures the latency of each page:
 * `waits FILE [PROGRAM ARGUMENTS...]`. The program, if one is named, is started as another user, as
 * an untrusted descendant. Exits with 0 if every word was right, and prints the largest and the
 * mean time of an access in microseconds. */

#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGES = 4096, NOBODY = 65534 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static uint64_t word(uint64_t place) {
    place ^= place >> 33;
    place *= 0xff51afd7ed558ccd;
    return place ^ place >> 33;
}

int main(int count, char **arguments) {
    volatile uint64_t *words = mmap(NULL, PAGES * 4096UL, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (uint64_t page = 0; page < PAGES; page++) {
        words[page * 512] = word(page);
    }
    if (count > 2 && fork() == 0) {
        if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0) {
            _exit(4);
        }
        execv(arguments[2], arguments + 2);
        _exit(5);
    }
    double longest = 0, sum = 0;
    uint64_t accesses = 0, draw = 1;
    struct stat there;
    while (stat(arguments[1], &there) != 0) {
        for (int access = 0; access < 1000; access++) {
            draw = draw * 6364136223846793005u + 1442695040888963407u;
            uint64_t page = draw >> 33 & (PAGES - 1);
            double before = now();
            uint64_t found = words[page * 512];
            double took = now() - before;
            if (found != word(page)) {
                fprintf(stderr, "page %llu is wrong\n", (unsigned long long)page);
                _exit(3);
            }
            longest = took > longest ? took : longest;
            sum += took;
            accesses++;
        }
    }
    int status = 0;
    while (wait(&status) > 0) {
    }
    printf("clean: %llu accesses, longest %.0f us, mean %.2f us\n", (unsigned long long)accesses,
           longest, sum / accesses);
    return 0;
}
