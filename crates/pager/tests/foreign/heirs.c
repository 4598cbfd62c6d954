/* Touches pages that are mostly absent while it starts threads, forks and programs. Each of them
 * must be allowed on the processors on which this program was, and so must this program afterwards.
 * A thread that binds itself must stay bound. Prints `clean bound` if this thread was seen with one
 * processor meanwhile, `clean free` if not. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGES = 4096, EACH = 4, KINDS = 4 };

static cpu_set_t all;
static volatile int last_processor, is_over;
static int stop[2];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static int processors(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

/* True once this thread has all processors; it gets them within ten seconds. */
static int has_all(void) {
    for (double until = now() + 10; now() < until; usleep(1000)) {
        cpu_set_t set;
        if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_EQUAL(&set, &all)) {
            return 1;
        }
    }
    return 0;
}

static void *heir(void *unused) {
    while (!is_over) {
        usleep(1000);
    }
    return has_all() ? unused : (void *)1;
}

static void *binds_itself(void *unused) {
    if (!has_all()) {
        return (void *)1;
    }
    /* It has been seen with all processors after that. */
    usleep(300000);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(last_processor, &one);
    sched_setaffinity(0, sizeof one, &one);
    while (!is_over) {
        usleep(1000);
    }
    return processors() == 1 ? unused : (void *)1;
}

static int waits_as_a_process(void) {
    char byte;
    while (read(stop[0], &byte, 1) > 0) {
    }
    return has_all() ? 0 : 1;
}

int main(int count, char **arguments) {
    if (count > 2) {
        /* Started by this program: the pipe, and the processors. */
        stop[0] = atoi(arguments[1]);
        memset(&all, 0, sizeof all);
        for (char *at = arguments[2]; *at != 0; at++) {
            if (*at == '1') {
                CPU_SET(at - arguments[2], &all);
            }
        }
        return waits_as_a_process();
    }
    char number[16], set[CPU_SETSIZE + 1] = "";
    if (sched_getaffinity(0, sizeof all, &all) != 0 || pipe(stop) != 0 ||
        fcntl(stop[1], F_SETFD, FD_CLOEXEC) != 0) {
        return 2;
    }
    for (int processor = 0; processor < CPU_SETSIZE; processor++) {
        set[processor] = CPU_ISSET(processor, &all) ? '1' : '0';
    }
    snprintf(number, sizeof number, "%d", stop[0]);
    volatile uint64_t *words = mmap(NULL, PAGES * 4096UL, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t draw = 1;
    int bound = 0, threads = 0, children = 0;
    pthread_t thread[2 * EACH];
    pid_t child[(KINDS - 1) * EACH];
    for (int turn = 0; turn < KINDS * EACH; turn++) {
        for (double until = now() + 0.1; now() < until;) {
            for (int access = 0; access < 200; access++) {
                draw = draw * 6364136223846793005u + 1442695040888963407u;
                words[(draw >> 33 & (PAGES - 1)) * 512] += 1;
            }
            bound += processors() == 1;
            last_processor = sched_getcpu();
        }
        char *start[] = {"/proc/self/exe", number, set, NULL};
        extern char **environ;
        pid_t began = -1;
        switch (turn % KINDS) {
        case 0:
            if (pthread_create(&thread[threads++], NULL, heir, NULL) != 0 ||
                pthread_create(&thread[threads++], NULL, binds_itself, NULL) != 0) {
                return 2;
            }
            continue;
        case 1:
            began = fork();
            break;
        case 2:
            /* A fork of which no C library knows. */
            began = (pid_t)syscall(SYS_fork);
            break;
        default:
            if (posix_spawn(&began, start[0], NULL, NULL, start, environ) != 0) {
                return 2;
            }
        }
        if (began == 0) {
            close(stop[1]);
            _exit(waits_as_a_process());
        }
        child[children++] = began;
    }
    is_over = 1;
    close(stop[1]);
    int wrong = !has_all();
    for (int each = 0; each < threads; each++) {
        void *result;
        pthread_join(thread[each], &result);
        wrong += result != NULL;
    }
    for (int each = 0; each < children; each++) {
        int status = -1;
        waitpid(child[each], &status, 0);
        wrong += status != 0;
    }
    if (wrong != 0) {
        printf("%d wrong\n", wrong);
        return 1;
    }
    printf("clean %s\n", bound > 0 ? "bound" : "free");
    return 0;
}
