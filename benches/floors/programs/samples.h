/* What the programs of the floors share: the clock, pinning, and how samples go to the runner.
 *
 * A program writes the duration of each sample to its standard output, as 32-bit little-endian
 * nanoseconds, and nothing else. Exit code 77 says that this machine lacks what the program needs;
 * the reason is the one line on its standard error. */
#ifndef ETHERMEM_FLOORS_SAMPLES_H
#define ETHERMEM_FLOORS_SAMPLES_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_LACKING = 77, ALARM_S = 60 };

static inline uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static inline void die(int code, const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(code);
}

static inline void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) die(1, "sched_setaffinity");
}

/* A number from the command line, from 0 to `most`. */
static inline long number(const char *text, long most, const char *name) {
    char *end;
    long value = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value < 0 || value > most) {
        fprintf(stderr, "%s: %s is not a number from 0 to %ld\n", name, text, most);
        exit(2);
    }
    return value;
}

static inline uint32_t *new_samples(size_t count) {
    uint32_t *samples = calloc(count, sizeof *samples);
    if (!samples) die(1, "calloc");
    return samples;
}

static inline uint32_t as_sample(uint64_t ns) {
    return ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

static inline void write_samples(const uint32_t *samples, size_t count) {
    if (fwrite(samples, sizeof *samples, count, stdout) != count || fflush(stdout)) {
        die(1, "standard output");
    }
}

/* The other end: it dies with this process. */
static inline pid_t fork_server(void) {
    pid_t parent = getpid(), child = fork();
    if (child < 0) die(1, "fork");
    alarm(ALARM_S);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
    }
    return child;
}
#endif
