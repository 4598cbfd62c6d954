/* Prints how it was executed: arguments, process, files, folder, signals. Before that it fills
 * memory with computable words, and checks them, until some were remote. The first argument
 * is its expected process number, or 0; the second the signal that it raises, or 0; it exits
 * with 7. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS = 1 << 19, ROUNDS_MAX = 3000 };

/* Returns whether some of the words are remote, under the pager. */
static int has_left(void) {
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    int found = fscanf(file, "%ld %ld", &pages, &resident);
    fclose(file);
    return found == 2 && resident < WORDS * 8 / 4096;
}

/* Fills and checks until some of the words were evicted, and twice more. */
static void fill_and_check(void) {
    uint64_t *words = malloc(WORDS * sizeof *words);
    int left = getenv("ETHERMEM_PAGER") == NULL;
    for (int round = 0, more = 3; more > 0 && round < ROUNDS_MAX; round++) {
        for (uint64_t place = 0; place < WORDS; place++) {
            if (round > 0 && words[place] != place * 0x9e3779b97f4a7c15 + round) {
                fprintf(stderr, "word %llu is wrong\n", (unsigned long long)place);
                _exit(3);
            }
            words[place] = place * 0x9e3779b97f4a7c15 + round + 1;
        }
        left = left || has_left();
        more -= left;
    }
}

int main(int count, char **arguments) {
    char text[4096];
    fill_and_check();
    for (int place = 0; place < count; place++) {
        printf("argument %s\n", place == 1 ? "of the process" : arguments[place]);
    }
    long process = count > 1 ? atol(arguments[1]) : 0;
    printf("process is %s\n", process == 0 || process == getpid() ? "right" : "another");
    printf("TOLD is %s\n", getenv("TOLD"));
    printf("folder is %s\n", getcwd(text, sizeof text));
    for (int file = 0; file < 64; file++) {
        if (fcntl(file, F_GETFD) >= 0) {
            printf("file %d\n", file);
        }
    }
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    for (int signal = 1; signal < 65; signal++) {
        struct sigaction action;
        sigaction(signal, NULL, &action);
        printf("%s%s", sigismember(&blocked, signal) > 0 ? "b" : ".",
               action.sa_handler == SIG_IGN ? "i" : "");
    }
    printf("\numask %o\n", (unsigned)umask(0));
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(text, sizeof text, status)) {
        if (strncmp(text, "TracerPid", 9) == 0 || strncmp(text, "SigPnd", 6) == 0) {
            fputs(text, stdout);
        }
    }
    fflush(stdout);
    if (count > 2 && atoi(arguments[2]) > 0) {
        kill(getpid(), atoi(arguments[2]));
    }
    return 7;
}
