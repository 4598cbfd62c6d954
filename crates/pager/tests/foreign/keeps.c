/* Holds words and checks them for ever, in several processes, each reported to the pager in its own
 * way: `keeps WRONG READY raw|libc [again]`. A wrong word is written to the file WRONG at
 * once; READY is created once all processes run. The test ends this program by killing its pager: a
 * process that survives, or a line in WRONG, is a failure. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 768 };

static volatile uint64_t *words;
static const char *wrong;
static int is_raw;

static uint64_t word(uint64_t place) {
    place ^= place >> 33;
    place *= 0xff51afd7ed558ccd;
    return (place ^ place >> 33) | 1;
}

static void tell(uint64_t page, uint64_t found) {
    char line[100];
    int bytes = snprintf(line, sizeof line, "process %d: page %llu has %llx\n", (int)getpid(),
                         (unsigned long long)page, (unsigned long long)found);
    int file = open(wrong, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (file < 0 || write(file, line, bytes) != bytes) {
        _exit(9);
    }
    _exit(3);
}

static void look(uint64_t from, uint64_t pages) {
    for (uint64_t page = from; page < from + pages; page++) {
        uint64_t found = words[page % PAGES * 512];
        if (found != word(page % PAGES)) {
            tell(page % PAGES, found);
        }
    }
}

static pid_t start(void) {
    return is_raw ? (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L) : fork();
}

/* Checks for ever, sometimes in a child, so that the pager also dies in the middle of forks. */
static void look_on(uint64_t seed) {
    for (uint64_t round = seed;; round++) {
        look(round * 97, 64);
        if (round % 8 == 0) {
            pid_t child = start();
            if (child == 0) {
                look(round * 31, 96);
                _exit(0);
            }
            int status = 0;
            if (child > 0 && waitpid(child, &status, 0) == child && status != 0) {
                _exit(4);
            }
        }
    }
}

int main(int count, char **arguments) {
    if (count < 4) {
        return 2;
    }
    wrong = arguments[1];
    is_raw = strcmp(arguments[3], "raw") == 0;
    words = mmap(NULL, PAGES * 4096UL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (uint64_t page = 0; page < PAGES; page++) {
        words[page * 512] = word(page);
    }
    if (start() == 0) {
        look_on(1);
    }
    if (start() == 0) {
        /* A daemon: no process waits for it, and no terminal controls it. */
        setsid();
        if (start() != 0) {
            _exit(0);
        }
        look_on(2);
    }
    if (count < 5 && start() == 0) {
        char *again[] = {arguments[0], arguments[1], arguments[2], arguments[3], "again", NULL};
        execv(arguments[0], again);
        _exit(5);
    }
    if (count < 5) {
        close(open(arguments[2], O_WRONLY | O_CREAT, 0644));
    }
    look_on(3);
}
