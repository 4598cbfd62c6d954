/* Moves mappings whose pages are remote, and forks with memory that its child must not see. Exits
 * with 0 if every word is unchanged, and prints a changed one. */

#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 2 << 20, WORDS = BYTES / 8, PAGE = 4096 };

static void fail(const char *what, long place) {
    printf("%s: word %ld is wrong\n", what, place);
    exit(1);
}

static uint64_t *mapped(int protection) {
    void *place = mmap(NULL, BYTES, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
    return place;
}

static uint64_t *filled(uint64_t from) {
    uint64_t *words = mapped(PROT_READ | PROT_WRITE);
    for (uint64_t at = 0; at < WORDS; at++) {
        words[at] = from + at;
    }
    return words;
}

static void check(const char *what, const uint64_t *words, uint64_t from, int step) {
    for (long at = 0; at < WORDS; at += step) {
        if (words[at] != (from ? from + at : 0)) {
            fail(what, at);
        }
    }
}

static uint64_t *moved(uint64_t *from, uint64_t *to, int more) {
    void *at = mremap(from, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED | more, to);
    if (at == MAP_FAILED) {
        perror("mremap");
        exit(2);
    }
    return at;
}

/* Private memory, more than may be local: earlier pages are evicted. */
static void push_out(void) {
    for (int i = 0; i < 4; i++) {
        munmap(filled(7), BYTES);
        usleep(2000);
    }
}

static void twice(void) {
    uint64_t *words = filled(1), *first = mapped(PROT_NONE), *then = mapped(PROT_NONE);
    push_out();
    words = moved(moved(words, first, 0), then, 0);
    check("moved twice", words, 1, 1);
    munmap(words, BYTES);
}

static void exchange(void) {
    uint64_t *one = filled(1), *other = filled(1 << 20), *place = mapped(PROT_NONE);
    push_out();
    moved(one, place, 0);
    moved(other, one, 0);
    moved(place, other, 0);
    check("exchanged", one, 1 << 20, 1);
    check("exchanged", other, 1, 1);
    munmap(one, BYTES);
    munmap(other, BYTES);
}

/* After MREMAP_DONTUNMAP the old addresses are still mapped, and empty. */
static void leaves_its_place(void) {
    uint64_t *words = filled(1), *first = mapped(PROT_NONE), *then = mapped(PROT_NONE);
    push_out();
    moved(words, first, 0);
    moved(first, then, MREMAP_DONTUNMAP);
    check("kept", first, 0, 1);
    check("moved on", then, 1, 1);
    first[0] = 5;
    munmap(first, BYTES);
    munmap(then, BYTES);
}

/* The C library moves the block, because another one is behind it. */
static void grows(void) {
    size_t bytes = BYTES;
    uint64_t *words = malloc(bytes);
    for (uint64_t at = 0; at < WORDS; at++) {
        words[at] = at + 1;
    }
    push_out();
    for (int i = 0; i < 4; i++) {
        bytes *= 2;
        words = realloc(words, bytes);
        mmap((char *)((uintptr_t)words & -(uintptr_t)PAGE) + bytes + PAGE, PAGE, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    check("grown", words, 1, 1);
    free(words);
}

static void wipes_for_a_child(void) {
    uint64_t *secret = filled(1), *plain = filled(1);
    if (madvise(secret, BYTES, MADV_WIPEONFORK) != 0) {
        perror("madvise");
        exit(2);
    }
    push_out();
    pid_t child = fork();
    if (child == 0) {
        check("a child's", plain, 1, 1);
        check("wiped", secret, 0, PAGE / 8);
        memset(secret, 9, BYTES);
        /* The grandchild's memory is checked, too. */
        pid_t next = fork();
        if (next == 0) {
            check("wiped again", secret, 0, PAGE / 8);
            exit(0);
        }
        int status = 1;
        waitpid(next, &status, 0);
        exit(status != 0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    if (status != 0) {
        exit(1);
    }
    check("its parent's", secret, 1, 1);
    munmap(secret, BYTES);
    munmap(plain, BYTES);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int round = 0; round < 3; round++) {
        twice();
        exchange();
        leaves_its_place();
        grows();
        wipes_for_a_child();
    }
    puts("clean");
    return 0;
}
