/* A memory node in a process of its own, and modules at it. Arguments: a URL with the node's key,
 * the URL with another key, and a file with a module that never ends, which the node has as
 * `endless` and the test loads as `mine`. */

#include "check.h"

/* Copies of a value travel through the node from one pool to another. */
static void two_pools(const char *url) {
    ethermem_pool pool[2] = {{0}, {0}};
    ethermem_thread thread[2] = {{0}, {0}};
    uint64_t word = 0, before = 0;
    for (int side = 0; side < 2; side++) {
        OK(ropen(url, &pool[side]));
        OK(rthread(pool[side], &thread[side]));
    }
    uint64_t own = page(thread[0]), other = page(thread[1]);
    word = 41;
    OK(rwrite(thread[0], own, &word, sizeof word, NULL));
    OK(rfetch_add(thread[0], own, 1, &before, NULL));
    CHECK(before == 41 && word_at(thread[0], own) == 42);
    /* A process can access only its own memory. */
    CHECK(word_at(thread[1], other) == 0);
    OK(rlock(thread[0], own + 8, NULL));
    REFUSED(NOT_HELD, runlock(thread[0], own + 16));
    OK(runlock(thread[0], own + 8));
    REFUSED(UNMAPPED, rread(thread[0], own + (1 << 20), &word, sizeof word, NULL));
    for (int side = 0; side < 2; side++)
        OK(rclose(pool[side]));
}

static void operations(const char *url, const char *file) {
    static unsigned char module[4096];
    ethermem_pool pool = {0};
    ethermem_thread thread = {0};
    uint64_t result = 0, bytes = 0;
    OK(ropen(url, &pool));
    OK(rthread(pool, &thread));
    uint64_t start = page(thread);
    REFUSED(OFFLOAD_STOPPED, roffload(thread, "endless", start, NULL, 0, NULL, 0, &result,
                                      sizeof result, &bytes, NULL));
    SAID("offload `endless`, out of fuel: must take at most 1000000 units");
    FILE *stream = fopen(file, "rb");
    CHECK(stream != NULL);
    uint32_t length = (uint32_t)fread(module, 1, sizeof module, stream);
    CHECK(fclose(stream) == 0 && length > 8);
    OK(rwrite(thread, start, module, length, NULL));
    unsigned char load[20] = {0};
    memcpy(load, &start, 8);
    memcpy(load + 8, &length, 4);
    memcpy(load + 16, "mine", 4);
    OK(roffload(thread, "load", start, load, sizeof load, NULL, 0, &result, sizeof result,
                &bytes, NULL));
    REFUSED(OFFLOAD_STOPPED, roffload(thread, "mine", start, NULL, 0, NULL, 0, &result,
                                      sizeof result, &bytes, NULL));
    REFUSED(NO_SUCH_OFFLOAD, roffload(thread, "yours", start, NULL, 0, NULL, 0, &result,
                                      sizeof result, &bytes, NULL));
    OK(rclose(pool));
}

int main(int count, char **words) {
    CHECK(count == 4);
    ethermem_pool none = {0};
    two_pools(words[1]);
    operations(words[1], words[3]);
    REFUSED(UNREACHABLE, ropen(words[2], &none));
    CHECK(rretryable(ETHERMEM_STATUS_UNREACHABLE));
    return 0;
}
