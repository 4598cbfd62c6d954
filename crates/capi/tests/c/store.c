/* The key-value store, on the pool that the first argument names: each call by both walks of the
 * index, synchronous and asynchronous, and its status for invalid arguments and handles. */

#include "check.h"

static const uint32_t INDEXES[2] = {ETHERMEM_INDEX_NODE, ETHERMEM_INDEX_CLIENT};

static void each_says_what_it_found(ethermem_store store, uint32_t index) {
    ethermem_client client = {0};
    char value[8] = {0};
    uint64_t bytes = 99;
    bool is_so = true;
    OK(rclient(store, index, &client));
    OK(rkv_read(client, "key", 3, value, sizeof value, &bytes, &is_so, NULL));
    CHECK(!is_so && bytes == 99);
    OK(rkv_update(client, "key", 3, "early", 5, &is_so, NULL));
    CHECK(!is_so);
    OK(rkv_create(client, "key", 3, "value", 5, &is_so, NULL));
    CHECK(is_so);
    OK(rkv_create(client, "key", 3, "again", 5, &is_so, NULL));
    CHECK(!is_so);
    OK(rkv_read(client, "key", 3, value, sizeof value, &bytes, &is_so, NULL));
    CHECK(is_so && bytes == 5 && memcmp(value, "value\0\0", 7) == 0);
    OK(rkv_update(client, "key", 3, "other", 5, NULL, NULL));
    REFUSED(BUFFER_TOO_SMALL, rkv_read(client, "key", 3, value, 4, &bytes, &is_so, NULL));
    CHECK(is_so && bytes == 5 && memcmp(value, "value", 5) == 0);
    SAID("the result has 5 B: the buffer has 4");
    OK(rkv_put(client, "", 0, NULL, 0, NULL));
    OK(rkv_read(client, NULL, 0, NULL, 0, &bytes, &is_so, NULL));
    CHECK(is_so && bytes == 0);
    OK(rkv_delete(client, "key", 3, &is_so, NULL));
    CHECK(is_so);
    OK(rkv_delete(client, "key", 3, &is_so, NULL));
    CHECK(!is_so);
    OK(rkv_clear(client, NULL));
    OK(rkv_read(client, "", 0, NULL, 0, &bytes, &is_so, NULL));
    CHECK(!is_so);
    OK(rclient_close(client));
}

/* Many clients at once, one operation each; the rpoll or rtest that ends an operation stores its
 * result. */
static void many_at_once(ethermem_pool pool, ethermem_store store) {
    enum { CLIENTS = 8 };
    ethermem_client clients[CLIENTS];
    ethermem_pending pendings[CLIENTS];
    bool created[CLIENTS];
    int won = 0;
    for (int at = 0; at < CLIENTS; at++)
        OK(rclient(store, INDEXES[at % 2], &clients[at]));
    for (int at = 0; at < CLIENTS; at++) {
        created[at] = at % 2 == 0;
        OK(rkv_create(clients[at], "one", 3, &at, sizeof at, &created[at], &pendings[at]));
        CHECK(pendings[at].id != 0 && created[at] == (at % 2 == 0));
    }
    OK(rpoll(pendings, CLIENTS, NULL));
    for (int at = 0; at < CLIENTS; at++)
        won += created[at];
    CHECK(won == 1);

    int found = -1;
    uint64_t bytes = 0;
    bool ended = false, is_there = false;
    OK(rkv_read(clients[0], "one", 3, &found, sizeof found, &bytes, &is_there, &pendings[0]));
    CHECK(found == -1);
    /* On local: it has ended by now. */
    bool is_simulated = false;
    OK(ris_simulated(pool, &is_simulated));
    if (is_simulated) {
        REFUSED(BUSY, rkv_put(clients[0], "two", 3, "x", 1, NULL));
        SAID("the client has an operation under way");
    }
    while (!ended)
        OK(rtest(&pendings[0], &ended));
    CHECK(is_there && bytes == sizeof found && created[found]);

    /* Forgetting an operation makes its client usable again. */
    OK(rkv_put(clients[0], "two", 3, "x", 1, &pendings[0]));
    OK(rforget(&pendings[0]));
    OK(rkv_put(clients[0], "two", 3, "y", 1, NULL));
    char value = 0;
    OK(rkv_read(clients[1], "two", 3, &value, 1, &bytes, &is_there, NULL));
    CHECK(is_there && value == 'y');
    for (int at = 0; at < CLIENTS; at++)
        OK(rclient_close(clients[at]));
}

static void no_good(ethermem_pool pool, ethermem_store store) {
    static char key[8193];
    static const ethermem_store NO_STORE = {0};
    static const ethermem_client NO_CLIENT = {0};
    ethermem_store made = {0};
    ethermem_client client = {0};
    uint64_t bytes = 0;
    bool is_so = false;
    REFUSED(BAD_ARGUMENT, rstore(pool, 0, 3, 0, &made));
    SAID("3 buckets: must be a power of two, 2 to 2^30");
    REFUSED(BAD_ARGUMENT, rstore(pool, 999, 1024, 0, &made));
    REFUSED(NULL_ARGUMENT, rstore(pool, 0, 1024, 0, NULL));
    REFUSED(BAD_ARGUMENT, rclient(store, 2, &client));
    SAID("index 2: must be 0 to 1");
    REFUSED(NO_SUCH_NODE, rclient_on(store, 999, ETHERMEM_INDEX_NODE, &client));
    REFUSED(NULL_ARGUMENT, rclient(store, ETHERMEM_INDEX_NODE, NULL));
    CHECK(made.id == 0 && client.id == 0);
    OK(rclient_on(store, 0, ETHERMEM_INDEX_NODE, &client));
    REFUSED(TOO_LONG, rkv_put(client, key, sizeof key, "", 0, NULL));
    SAID("a key of 8193 B: must be 0 to 8192");
    REFUSED(NULL_ARGUMENT, rkv_put(client, NULL, 3, "", 0, NULL));
    REFUSED(NULL_ARGUMENT, rkv_put(client, "key", 3, NULL, 1, NULL));
    REFUSED(NULL_ARGUMENT, rkv_read(client, "key", 3, NULL, 1, &bytes, &is_so, NULL));
    REFUSED(NULL_ARGUMENT, rkv_read(client, "key", 3, NULL, 0, NULL, &is_so, NULL));
    REFUSED(NULL_ARGUMENT, rkv_read(client, "key", 3, NULL, 0, &bytes, NULL, NULL));
    /* None of the refused calls has kept the client. */
    OK(rkv_put(client, "key", 3, "value", 5, NULL));

    ethermem_store disguised = {client.id};
    ethermem_client as_client = {store.id};
    REFUSED(BAD_HANDLE, rclient(NO_STORE, ETHERMEM_INDEX_NODE, &client));
    REFUSED(BAD_HANDLE, rclient(disguised, ETHERMEM_INDEX_NODE, &client));
    REFUSED(BAD_HANDLE, rkv_clear(NO_CLIENT, NULL));
    REFUSED(BAD_HANDLE, rkv_clear(as_client, NULL));
    REFUSED(BAD_HANDLE, rstore_close(disguised));
    OK(rclient_close(client));
    REFUSED(BAD_HANDLE, rclient_close(client));
    REFUSED(BAD_HANDLE, rkv_put(client, "key", 3, "value", 5, NULL));
}

int main(int count, char **words) {
    CHECK(count == 2);
    ethermem_pool pool = {0};
    ethermem_store store = {0};
    ethermem_client client = {0};
    ethermem_pending pending = {0};
    OK(ropen(words[1], &pool));
    OK(rstore(pool, 0, 1024, 7, &store));
    for (int walk = 0; walk < 2; walk++)
        each_says_what_it_found(store, INDEXES[walk]);
    many_at_once(pool, store);
    no_good(pool, store);
    OK(rclient(store, ETHERMEM_INDEX_NODE, &client));
    OK(rstore_close(store));
    REFUSED(BAD_HANDLE, rstore_close(store));
    OK(rkv_put(client, "key", 3, "value", 5, &pending));
    REFUSED(BUSY, rclose(pool));
    OK(rpoll(&pending, 1, NULL));
    OK(rclose(pool));
    REFUSED(BAD_HANDLE, rkv_clear(client, NULL));
    return 0;
}
