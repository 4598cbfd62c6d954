/* What the tests of the C library share: a check that ends the program and says where. */

#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ethermem.h>

#define CHECK(condition)                                                             \
    do {                                                                             \
        if (!(condition)) {                                                          \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);          \
            exit(1);                                                                 \
        }                                                                            \
    } while (0)

#define STATUS(expected, call)                                                       \
    do {                                                                             \
        ethermem_status found_ = (call);                                             \
        if (found_ != (expected)) {                                                  \
            fprintf(stderr, "%s:%d: %s: %s, not %s: %s\n", __FILE__, __LINE__,       \
                    #call, rstatus_text((uint32_t)found_),                           \
                    rstatus_text((uint32_t)(expected)), rerror());                   \
            exit(1);                                                                 \
        }                                                                            \
    } while (0)

#define OK(call) STATUS(ETHERMEM_STATUS_OK, call)
#define REFUSED(status, call) STATUS(ETHERMEM_STATUS_##status, call)

/* The last error begins so. */
#define SAID(text) CHECK(strncmp(rerror(), text, strlen(text)) == 0)

enum { READ_WRITE = ETHERMEM_READ | ETHERMEM_WRITE };

/* A region of one page. */
static inline uint64_t page(ethermem_thread thread) {
    uint64_t address = 0;
    OK(ralloc(thread, 4096, READ_WRITE, &address, NULL));
    CHECK(address != 0);
    return address;
}

static inline uint64_t word_at(ethermem_thread thread, uint64_t address) {
    uint64_t word = 0;
    OK(rread(thread, address, &word, 8, NULL));
    return word;
}

#endif
