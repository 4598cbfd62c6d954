/* Hello from remote memory, on the pool that the first argument names (`local:` by default). */

#include <ethermem.h>
#include <inttypes.h>
#include <stdio.h>

/* Prints what went wrong, if something did. */
static int failed(ethermem_status status) {
    if (status != ETHERMEM_STATUS_OK)
        fprintf(stderr, "hello: %s\n", rerror());
    return status != ETHERMEM_STATUS_OK;
}

int main(int count, char **words) {
    const char *url = count > 1 ? words[1] : "local:";
    ethermem_pool pool = {0};
    ethermem_thread thread = {0};
    uint64_t address = 0, before_ps = 0, after_ps = 0;
    char text[6] = "";
    if (failed(ropen(url, &pool)))
        return 2;
    if (failed(rthread(pool, &thread)) ||
        failed(ralloc(thread, 4096, ETHERMEM_READ | ETHERMEM_WRITE, &address, NULL)) ||
        failed(rwrite(thread, address, "hello", 5, NULL)) ||
        failed(rnow(pool, &before_ps)) ||
        failed(rread(thread, address, text, 5, NULL)) ||
        failed(rnow(pool, &after_ps)) ||
        failed(rclose(pool)))
        return 1;
    printf("%s: %s in %.2f ns\n", url, text, (double)(after_ps - before_ps) / 1000);
    return 0;
}
