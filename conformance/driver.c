/*
 * Executes the conformance matrix's requests on a pool, in C: one request and answer per line.
 *
 * The drivers in Rust (crates/kv/examples/conformance.rs) and Python (driver.py) accept equal
 * requests.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ethermem.h>

enum { NAMES_MAX = 4096 };

/* A region, a thread or a client, with its name in the matrix. */
typedef struct {
    char name[32];
    ethermem_thread thread;
    ethermem_client client;
    uint64_t address;
    uint64_t bytes;
} named;

static named table[NAMES_MAX];
static size_t names;
static ethermem_pool pool;
static ethermem_store store;
static uint32_t crc_of_byte[256];
static char *rest;

static const char *const KINDS[] = {
    "Ok",          "NullArgument", "BadHandle", "BadArgument",   "BadUrl",
    "Busy",        "BufferTooSmall", "Unmapped", "Permission",    "Empty",
    "TooLong",     "Misaligned",   "Full",      "NotHeld",       "NoSuchNode",
    "NoSuchOffload", "Offload",    "Lost",      "Violated",      "Internal",
    "Unreachable", "OwnerDied",    "Restarted", "ProcessEnded",  "Refused",
    "OffloadStopped", "Ending",    "Forked",
};

static void fail(const char *what) {
    fprintf(stderr, "driver: %s\n", what);
    exit(3);
}

static char *word(void) {
    char *found = strtok_r(NULL, " \n", &rest);
    if (found == NULL) {
        fail("a word is missing");
    }
    return found;
}

static uint64_t number(void) {
    return strtoull(word(), NULL, 10);
}

static named *find(const char *name) {
    for (size_t at = 0; at < names; at++) {
        if (strcmp(table[at].name, name) == 0) {
            return &table[at];
        }
    }
    if (names == NAMES_MAX || strlen(name) >= sizeof table->name) {
        fail("too many names, or too long a one");
    }
    strcpy(table[names].name, name);
    return &table[names++];
}

static void *room(uint64_t bytes) {
    void *made = malloc(bytes + 1);
    if (made == NULL) {
        fail("no memory");
    }
    return made;
}

/* Bytes derived from `seed`, which are written and later compared. */
static uint8_t *pattern(uint64_t seed, uint64_t bytes) {
    uint8_t *data = room(bytes);
    for (uint64_t at = 0; at < bytes; at++) {
        data[at] = (uint8_t)((seed + at) % 251);
    }
    return data;
}

static void make_crc(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc & 1) != 0 ? 0xedb88320u ^ crc >> 1 : crc >> 1;
        }
        crc_of_byte[byte] = crc;
    }
}

static void print_digest(const uint8_t *data, uint64_t bytes) {
    uint32_t crc = 0xffffffffu;
    for (uint64_t at = 0; at < bytes; at++) {
        crc = crc_of_byte[(crc ^ data[at]) & 0xff] ^ crc >> 8;
    }
    printf("ok %" PRIu64 " %" PRIu32 "\n", bytes, crc ^ 0xffffffffu);
}

static void print_status(enum ethermem_status status) {
    if (status == ETHERMEM_STATUS_OK) {
        printf("ok\n");
        return;
    }
    size_t known = sizeof KINDS / sizeof *KINDS;
    printf("error %s ", (size_t)status < known ? KINDS[status] : rstatus_text(status));
    for (const char *at = rerror(); *at != '\0'; at++) {
        putchar(*at == '\n' ? ' ' : *at);
    }
    putchar('\n');
}

static void print_number(enum ethermem_status status, uint64_t result) {
    if (status == ETHERMEM_STATUS_OK) {
        printf("ok %" PRIu64 "\n", result);
    } else {
        print_status(status);
    }
}

static void print_bytes(enum ethermem_status status, uint8_t *data, uint64_t bytes) {
    if (status == ETHERMEM_STATUS_OK) {
        print_digest(data, bytes);
    } else {
        print_status(status);
    }
    free(data);
}

/* A place: a region's name and an offset, which may be outside of it. */
static uint64_t place(void) {
    uint64_t address = find(word())->address;
    return address + number();
}

/* A buffer for a read. A length that no read may have is refused before the buffer is used. */
static uint8_t *room_for(uint64_t bytes) {
    return room(bytes > UINT64_C(1) << 30 ? 0 : bytes);
}

static ethermem_segment *places(uint64_t *count, uint64_t *total) {
    uint64_t first = place(), bytes = number();
    *count = number();
    *total = bytes * *count;
    ethermem_segment *made = room(sizeof *made * (*count + 1));
    for (uint64_t at = 0; at < *count; at++) {
        made[at].address = first + at * bytes;
        made[at].bytes = bytes;
    }
    return made;
}

static int manage(const char *name) {
    if (strcmp(name, "open") == 0) {
        uint16_t compute = 0, memory = 0;
        enum ethermem_status status = ropen(word(), &pool);
        if (status == ETHERMEM_STATUS_OK) {
            status = rnodes(pool, &compute, &memory);
        }
        if (status == ETHERMEM_STATUS_OK) {
            printf("ok %u %u\n", compute, memory);
        } else {
            print_status(status);
        }
    } else if (strcmp(name, "thread") == 0) {
        print_status(rthread(pool, &find(word())->thread));
    } else if (strcmp(name, "fork") == 0) {
        ethermem_thread from = find(word())->thread;
        print_status(rfork(from, &find(word())->thread));
    } else if (strcmp(name, "alloc") == 0) {
        ethermem_thread thread = find(word())->thread;
        const char *to = word();
        uint64_t bytes = number(), address = 0;
        uint32_t may = (uint32_t)number();
        enum ethermem_status status = ralloc(thread, bytes, may, &address, NULL);
        if (status == ETHERMEM_STATUS_OK) {
            named *region = find(to);
            region->address = address;
            region->bytes = bytes;
        }
        print_number(status, address);
    } else if (strcmp(name, "free") == 0) {
        ethermem_thread thread = find(word())->thread;
        named *region = find(word());
        print_status(rfree(thread, region->address, region->bytes, NULL));
    } else if (strcmp(name, "share") == 0) {
        ethermem_thread thread = find(word())->thread;
        named *region = find(word());
        uint32_t process = 0;
        enum ethermem_status status = rwhere(find(word())->thread, &process, NULL);
        if (status == ETHERMEM_STATUS_OK) {
            uint32_t may = (uint32_t)number();
            status = rshare(thread, region->address, region->bytes, process, may, NULL);
        }
        print_status(status);
    } else if (strcmp(name, "store") == 0) {
        print_status(rstore(pool, 0, number(), 0, &store));
    } else if (strcmp(name, "client") == 0) {
        named *client = find(word());
        uint32_t index = strcmp(word(), "node") == 0 ? ETHERMEM_INDEX_NODE : ETHERMEM_INDEX_CLIENT;
        print_status(rclient(store, index, &client->client));
    } else {
        return 0;
    }
    return 1;
}

static void read_value(ethermem_client client, const uint8_t *key, uint64_t key_bytes) {
    bool found = false;
    uint64_t bytes = 0;
    uint8_t *value = room(0);
    enum ethermem_status status =
        rkv_read(client, key, key_bytes, value, 0, &bytes, &found, NULL);
    if (status == ETHERMEM_STATUS_BUFFER_TOO_SMALL) {
        free(value);
        value = room(bytes);
        status = rkv_read(client, key, key_bytes, value, bytes, &bytes, &found, NULL);
    }
    if (status == ETHERMEM_STATUS_OK && !found) {
        printf("ok none\n");
        free(value);
    } else {
        print_bytes(status, value, bytes);
    }
}

static int of_client(const char *name) {
    if (strncmp(name, "kv_", 3) != 0) {
        return 0;
    }
    const char *operation = name + 3;
    ethermem_client client = find(word())->client;
    if (strcmp(operation, "clear") == 0) {
        print_status(rkv_clear(client, NULL));
        return 1;
    }
    uint64_t seed = number(), key_bytes = number();
    uint8_t *key = pattern(seed, key_bytes);
    bool was = false;
    if (strcmp(operation, "read") == 0) {
        read_value(client, key, key_bytes);
    } else if (strcmp(operation, "delete") == 0) {
        enum ethermem_status status = rkv_delete(client, key, key_bytes, &was, NULL);
        print_number(status, was);
    } else {
        uint64_t value_seed = number(), bytes = number();
        uint8_t *value = pattern(value_seed, bytes);
        if (strcmp(operation, "put") == 0) {
            print_status(rkv_put(client, key, key_bytes, value, bytes, NULL));
        } else if (strcmp(operation, "create") == 0) {
            enum ethermem_status status =
                rkv_create(client, key, key_bytes, value, bytes, &was, NULL);
            print_number(status, was);
        } else {
            enum ethermem_status status =
                rkv_update(client, key, key_bytes, value, bytes, &was, NULL);
            print_number(status, was);
        }
        free(value);
    }
    free(key);
    return 1;
}

static int move(const char *name, ethermem_thread thread) {
    if (strcmp(name, "read") == 0 || strcmp(name, "read_into") == 0) {
        uint64_t at = place(), bytes = number();
        uint8_t *to = room_for(bytes);
        enum ethermem_status status = rread(thread, at, to, bytes, NULL);
        print_bytes(status, to, bytes);
    } else if (strcmp(name, "poll") == 0) {
        uint64_t at = place(), bytes = number();
        uint8_t *to = room_for(bytes);
        ethermem_pending pending;
        enum ethermem_status status = rread(thread, at, to, bytes, &pending);
        for (bool ended = false; status == ETHERMEM_STATUS_OK && !ended;) {
            status = rtest(&pending, &ended);
        }
        print_bytes(status, to, bytes);
    } else if (strcmp(name, "detach") == 0) {
        uint64_t at = place(), bytes = number();
        uint8_t *to = room_for(bytes);
        ethermem_pending pending;
        rread(thread, at, to, bytes, &pending);
        rforget(&pending);
        print_status(rrelease(thread, NULL));
        free(to);
    } else if (strcmp(name, "write") == 0 || strcmp(name, "write_from") == 0) {
        uint64_t at = place(), bytes = number();
        uint8_t *data = pattern(number(), bytes);
        print_status(rwrite(thread, at, data, bytes, NULL));
        free(data);
    } else if (strcmp(name, "gather") == 0 || strcmp(name, "gather_into") == 0) {
        uint64_t count, total;
        ethermem_segment *parts = places(&count, &total);
        uint8_t *to = room_for(total);
        enum ethermem_status status = rgather(thread, parts, count, to, total, NULL);
        print_bytes(status, to, total);
        free(parts);
    } else if (strcmp(name, "scatter") == 0) {
        uint64_t count, total;
        ethermem_segment *parts = places(&count, &total);
        uint8_t *data = pattern(number(), total);
        print_status(rscatter(thread, parts, count, data, total, NULL));
        free(parts);
        free(data);
    } else {
        return 0;
    }
    return 1;
}

static uint32_t operation_of(const char *name) {
    static const char *const NAMED[] = {"add", "swap", "and", "or", "xor"};
    for (uint32_t at = 0; at < 5; at++) {
        if (strcmp(NAMED[at], name) == 0) {
            return at;
        }
    }
    fail("no such operation on a word");
    return 0;
}

static int order(const char *name, ethermem_thread thread) {
    uint64_t before = 0;
    if (strcmp(name, "cas") == 0) {
        uint64_t at = place(), expected = number();
        enum ethermem_status status = rcas(thread, at, expected, number(), &before, NULL);
        print_number(status, before);
    } else if (strcmp(name, "fetch_add") == 0) {
        uint64_t at = place();
        enum ethermem_status status = rfetch_add(thread, at, number(), &before, NULL);
        print_number(status, before);
    } else if (strcmp(name, "swap") == 0) {
        uint64_t at = place();
        enum ethermem_status status = rswap(thread, at, number(), &before, NULL);
        print_number(status, before);
    } else if (strcmp(name, "test_and_set") == 0) {
        bool was_set = false;
        enum ethermem_status status = rtest_and_set(thread, place(), &was_set, NULL);
        print_number(status, was_set);
    } else if (strcmp(name, "modify") == 0) {
        uint64_t at = place();
        uint32_t operation = operation_of(word());
        enum ethermem_status status = rmodify(thread, at, operation, number(), &before, NULL);
        print_number(status, before);
    } else if (strcmp(name, "lock") == 0) {
        print_status(rlock(thread, place(), NULL));
    } else if (strcmp(name, "unlock") == 0) {
        print_status(runlock(thread, place()));
    } else if (strcmp(name, "release") == 0) {
        print_status(rrelease(thread, NULL));
    } else if (strcmp(name, "fence") == 0) {
        print_status(rfence(thread, NULL));
    } else if (strcmp(name, "sleep") == 0) {
        print_status(rsleep(thread, number(), NULL));
    } else {
        return 0;
    }
    return 1;
}

static int offload(const char *name, ethermem_thread thread) {
    if (strcmp(name, "offload") == 0) {
        const char *called = word();
        uint64_t at = place(), bytes = number(), result_bytes = 0;
        uint8_t *arguments = room(bytes), *result = room(1 << 20);
        memset(arguments, 0, bytes);
        enum ethermem_status status = roffload(thread, called, at, arguments, bytes, NULL, 0,
                                               result, 1 << 20, &result_bytes, NULL);
        print_bytes(status, result, result_bytes);
        free(arguments);
    } else if (strcmp(name, "chase") == 0) {
        uint64_t start = place(), key_bytes = number(), found = 0;
        uint8_t *key = room(key_bytes), value;
        memset(key, 0, key_bytes);
        ethermem_chase request = {.start = start,
                                  .key_offset = 8,
                                  .elements_max = 1,
                                  .key_bytes = (uint32_t)key_bytes,
                                  .key = key};
        enum ethermem_status status = rchase(thread, &request, &found, &value, NULL);
        if (status == ETHERMEM_STATUS_OK) {
            printf(found == 0 ? "ok none\n" : "ok found 0\n");
        } else {
            print_status(status);
        }
        free(key);
    } else if (strcmp(name, "filter") == 0) {
        uint64_t start = place(), records = number(), bytes = 0;
        ethermem_filter request = {.start = start,
                                   .record_bytes = 8,
                                   .records = (uint32_t)records,
                                   .comparison = ETHERMEM_LESS,
                                   .operand = UINT64_MAX};
        uint8_t *kept = room(8 * records);
        enum ethermem_status status = rfilter(thread, &request, kept, 8 * records, &bytes, NULL);
        print_bytes(status, kept, bytes);
    } else {
        return 0;
    }
    return 1;
}

int main(void) {
    static char line[1 << 16];
    make_crc();
    while (fgets(line, sizeof line, stdin) != NULL) {
        const char *name = strtok_r(line, " \n", &rest);
        if (name == NULL) {
            continue;
        }
        if (!manage(name) && !of_client(name)) {
            ethermem_thread thread = find(word())->thread;
            if (!move(name, thread) && !order(name, thread) && !offload(name, thread)) {
                fail("no request of the matrix");
            }
        }
        fflush(stdout);
    }
    return 0;
}
