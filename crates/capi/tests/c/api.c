/* Every call of the C library, on the pool that the first argument names: its effect, and its
 * status for invalid arguments and handles. */

#include "check.h"

static const ethermem_pool NO_POOL = {0};
static const ethermem_thread NO_THREAD = {0};

static void reads_and_writes(ethermem_thread thread) {
    uint64_t at = page(thread);
    char text[16] = {0};
    OK(rwrite(thread, at + 100, "remote memory", 13, NULL));
    OK(rread(thread, at + 100, text, 13, NULL));
    CHECK(strcmp(text, "remote memory") == 0);

    ethermem_pending pending[3] = {{0}, {0}, {0}};
    char early[4] = {0}, late[4] = {0};
    OK(rwrite(thread, at, "one", 3, &pending[0]));
    OK(rread(thread, at, early, 3, &pending[1]));
    OK(rwrite(thread, at, "two", 3, &pending[2]));
    CHECK(pending[0].id != 0 && pending[1].id != 0 && pending[2].id != 0);
    OK(rpoll(pending, 3, NULL));
    CHECK(pending[0].id == 0 && pending[1].id == 0 && pending[2].id == 0);
    OK(rread(thread, at, late, 3, NULL));
    CHECK(strcmp(early, "one") == 0 && strcmp(late, "two") == 0);

    uint64_t other = page(thread);
    ethermem_segment places[2] = {{at + 8, 3}, {other, 2}};
    OK(rscatter(thread, places, 2, "abcde", 5, NULL));
    OK(rread(thread, other, late, 2, NULL));
    CHECK(memcmp(late, "de", 2) == 0);
    char all[6] = {0};
    OK(rgather(thread, places, 2, all, 5, NULL));
    CHECK(strcmp(all, "abcde") == 0);
    REFUSED(BAD_ARGUMENT, rgather(thread, places, 2, all, 4, NULL));
    REFUSED(BAD_ARGUMENT, rscatter(thread, places, 2, all, 6, NULL));
    OK(rfree(thread, other, 4096, NULL));
    REFUSED(UNMAPPED, rread(thread, other, late, 2, NULL));
    REFUSED(UNMAPPED, rfree(thread, other, 4096, NULL));
    REFUSED(UNMAPPED, rgather(thread, places, 2, all, 5, NULL));
    OK(rfree(thread, at, 4096, NULL));
}

static void atomics_and_locks(ethermem_thread thread) {
    uint64_t at = page(thread), before = 99;
    bool was_set = true;
    OK(rfetch_add(thread, at, 5, &before, NULL));
    CHECK(before == 0);
    OK(rcas(thread, at, 4, 9, &before, NULL));
    CHECK(before == 5 && word_at(thread, at) == 5);
    OK(rcas(thread, at, 5, 9, NULL, NULL));
    OK(rswap(thread, at, 2, &before, NULL));
    CHECK(before == 9 && word_at(thread, at) == 2);
    OK(rtest_and_set(thread, at, &was_set, NULL));
    CHECK(!was_set && word_at(thread, at) == 3);
    OK(rtest_and_set(thread, at, &was_set, NULL));
    CHECK(was_set);
    REFUSED(MISALIGNED, rfetch_add(thread, at + 4, 1, NULL, NULL));
    static const struct { uint32_t operation; uint64_t operand, before; } STORY[] = {
        {ETHERMEM_MODIFY_OR, 12, 3},  {ETHERMEM_MODIFY_AND, 6, 15}, {ETHERMEM_MODIFY_XOR, 7, 6},
        {ETHERMEM_MODIFY_ADD, 1, 1},  {ETHERMEM_MODIFY_SWAP, 9, 2},
    };
    for (int step = 0; step < 5; step++) {
        OK(rmodify(thread, at, STORY[step].operation, STORY[step].operand, &before, NULL));
        CHECK(before == STORY[step].before);
    }
    CHECK(word_at(thread, at) == 9);
    REFUSED(BAD_ARGUMENT, rmodify(thread, at, 5, 1, &before, NULL));
    SAID("operation 5: must be 0 to 4");

    ethermem_thread other = {0};
    ethermem_pending waits = {0};
    bool ended = true;
    uint64_t lock = at + 64;
    OK(rfork(thread, &other));
    OK(rlock(thread, lock, NULL));
    REFUSED(NOT_HELD, runlock(other, lock));
    OK(rlock(other, lock, &waits));
    OK(rtest(&waits, &ended));
    CHECK(!ended && waits.id != 0);
    OK(runlock(thread, lock));
    OK(rpoll(&waits, 1, NULL));
    OK(runlock(other, lock));
    OK(rthread_close(other));
    OK(rfree(thread, at, 4096, NULL));
}

/* Each poll advances a simulated fabric, so that polling alone completes the operation. */
static void asking(ethermem_pool pool, ethermem_thread thread) {
    uint64_t before_ps = 0, after_ps = 0, questions = 0;
    ethermem_pending pending = {0};
    bool ended = false;
    OK(rnow(pool, &before_ps));
    OK(rsleep(thread, 3000000, &pending));
    while (!ended) {
        OK(rtest(&pending, &ended));
        questions++;
    }
    OK(rnow(pool, &after_ps));
    CHECK(questions > 0 && pending.id == 0 && after_ps >= before_ps + 3000000);
    REFUSED(BAD_HANDLE, rtest(&pending, &ended));

    /* A step drives the pool; a simulated fabric has handled events by then. */
    bool is_simulated = false, under_way = false;
    uint64_t events = 0;
    OK(ris_simulated(pool, &is_simulated));
    OK(rsleep(thread, 100000000, &pending));
    OK(rstep(pool, &under_way));
    CHECK(under_way);
    OK(rpoll(&pending, 1, NULL));
    OK(rstep(pool, &under_way));
    CHECK(!under_way);
    OK(revents(pool, &events));
    CHECK(is_simulated == (events > 0));

    uint64_t at = page(thread);
    OK(rwrite(thread, at, "x", 1, &pending));
    ethermem_pending twice[2] = {pending, pending};
    ethermem_status each[2];
    REFUSED(BAD_HANDLE, rpoll(twice, 2, each));
    CHECK(each[0] == ETHERMEM_STATUS_OK && each[1] == ETHERMEM_STATUS_BAD_HANDLE);

    OK(rwrite(thread, at, "y", 1, &pending));
    OK(rforget(&pending));
    CHECK(pending.id == 0);
    REFUSED(BAD_HANDLE, rforget(&pending));
    OK(rrelease(thread, NULL));
    OK(rfence(thread, &pending));
    OK(rpoll(&pending, 1, NULL));
    char byte = 0;
    OK(rread(thread, at, &byte, 1, NULL));
    CHECK(byte == 'y');
    OK(rpoll(NULL, 0, NULL));

    /* An immediate failure is reported when it is polled, like a later one. */
    OK(rread(thread, 8, &byte, 1, &pending));
    ended = false;
    ethermem_status status = ETHERMEM_STATUS_OK;
    while (!ended && status == ETHERMEM_STATUS_OK)
        status = rtest(&pending, &ended);
    CHECK(ended && status == ETHERMEM_STATUS_UNMAPPED && pending.id == 0);
    OK(rfree(thread, at, 4096, NULL));
}

static void offloads(ethermem_thread thread) {
    uint64_t at = page(thread), found = 0, length = 0;
    uint64_t list[6] = {at + 24, 1, 10, 0, 2, 20}, key = 2, value = 0;
    OK(rwrite(thread, at, list, sizeof list, NULL));
    ethermem_chase chase = {at, 0, 8, 16, 8, 100, 8, &key};
    OK(rchase(thread, &chase, &found, &value, NULL));
    CHECK(found == at + 24 && value == 20);
    key = 3;
    ethermem_pending pending = {0};
    OK(rchase(thread, &chase, &found, &value, &pending));
    OK(rpoll(&pending, 1, NULL));
    CHECK(found == 0 && value == 20);
    chase.elements_max = 1;
    REFUSED(OFFLOAD, rchase(thread, &chase, &found, &value, NULL));

    ethermem_filter filter = {at, 24, 2, 8, ETHERMEM_GREATER, 1};
    uint64_t kept[3] = {0, 0, 0};
    OK(rfilter(thread, &filter, kept, sizeof kept, &length, NULL));
    CHECK(length == 24 && kept[1] == 2 && kept[2] == 20);
    REFUSED(BUFFER_TOO_SMALL, rfilter(thread, &filter, kept, 23, &length, NULL));
    CHECK(length == 24);
    SAID("the result has 24 B: the buffer has 23");
    filter.comparison = 7;
    REFUSED(BAD_ARGUMENT, rfilter(thread, &filter, kept, sizeof kept, &length, NULL));

    /* An equal operation to the first, by its name. */
    uint64_t arguments[7] = {at, 0, 8, 16, 8, 100, 2}, result[2] = {0, 0};
    ethermem_segment touched = {at, 48};
    OK(roffload(thread, "chase", at, arguments, sizeof arguments, &touched, 1, result,
                sizeof result, &length, NULL));
    CHECK(length == 16 && result[0] == at + 24 && result[1] == 20);
    REFUSED(NO_SUCH_OFFLOAD, roffload(thread, "chas", at, NULL, 0, NULL, 0, result, sizeof result,
                                      &length, NULL));
    SAID("offload `chas`: must be one of chase, filter");
    OK(rfree(thread, at, 4096, NULL));
}

static void sharing(ethermem_pool pool, ethermem_thread thread) {
    ethermem_thread stranger = {0};
    uint32_t process = 0, own = 0;
    uint16_t compute_node = 99;
    uint64_t at = page(thread), word = 0;
    OK(rthread(pool, &stranger));
    OK(rwhere(stranger, &process, &compute_node));
    OK(rwhere(thread, &own, NULL));
    CHECK(process != own && compute_node < 99);
    REFUSED(UNMAPPED, rread(stranger, at, &word, 8, NULL));
    OK(rshare(thread, at, 4096, process, ETHERMEM_READ, NULL));
    OK(rread(stranger, at, &word, 8, NULL));
    REFUSED(PERMISSION, rwrite(stranger, at, &word, 8, NULL));
    SAID("no permission to write at 0x");
    OK(rshare(thread, at, 4096, process, 0, NULL));
    REFUSED(UNMAPPED, rread(stranger, at, &word, 8, NULL));
    REFUSED(UNMAPPED, rfree(stranger, at, 4096, NULL));
    OK(rthread_close(stranger));
    OK(rfree(thread, at, 4096, NULL));
}

static void no_good_arguments(ethermem_pool pool, ethermem_thread thread) {
    ethermem_pool opened = {0};
    ethermem_thread made = {0};
    uint64_t at = page(thread), word = 0, length = 0;
    ethermem_pending pending = {0};
    bool ended = false;
    REFUSED(NULL_ARGUMENT, ropen(NULL, &opened));
    SAID("`url` is null");
    REFUSED(NULL_ARGUMENT, ropen("local:", NULL));
    REFUSED(BAD_URL, ropen("smi:edm", &opened));
    SAID("scheme `smi`: must be one of local:, sim:FABRIC");
    REFUSED(BAD_ARGUMENT, ropen("local:\xff", &opened));
    CHECK(opened.id == 0);
    REFUSED(NULL_ARGUMENT, rnow(pool, NULL));
    REFUSED(NULL_ARGUMENT, revents(pool, NULL));
    REFUSED(NULL_ARGUMENT, ris_simulated(pool, NULL));
    /* The URL leaves no choice, so the string is only its terminating zero. */
    char choice[2] = "?";
    OK(rchoice(pool, choice, 1));
    CHECK(choice[0] == 0);
    REFUSED(BUFFER_TOO_SMALL, rchoice(pool, NULL, 0));
    REFUSED(NULL_ARGUMENT, rchoice(pool, NULL, 1));
    REFUSED(NULL_ARGUMENT, rstep(pool, NULL));
    REFUSED(NULL_ARGUMENT, rthread(pool, NULL));
    REFUSED(NO_SUCH_NODE, rthread_on(pool, 500, &made));
    REFUSED(NO_SUCH_NODE, rfork_on(thread, 500, &made));
    REFUSED(NO_SUCH_NODE, ralloc_on(thread, 500, 8, READ_WRITE, &word, NULL));
    CHECK(made.id == 0);
    REFUSED(NULL_ARGUMENT, ralloc(thread, 8, READ_WRITE, NULL, NULL));
    REFUSED(BAD_ARGUMENT, ralloc(thread, 8, 4, &word, NULL));
    SAID("permissions 4: must be 0 to 3");
    REFUSED(EMPTY, ralloc(thread, 0, READ_WRITE, &word, NULL));
    REFUSED(TOO_LONG, ralloc(thread, UINT64_MAX, READ_WRITE, &word, NULL));
    REFUSED(TOO_LONG, rfree(thread, at, UINT64_MAX, NULL));
    REFUSED(TOO_LONG, rshare(thread, at, UINT64_MAX, 1, 0, NULL));
    REFUSED(NULL_ARGUMENT, rread(thread, at, NULL, 8, NULL));
    REFUSED(NULL_ARGUMENT, rread(thread, at, NULL, 8, &pending));
    REFUSED(NULL_ARGUMENT, rwrite(thread, at, NULL, 8, NULL));
    REFUSED(EMPTY, rread(thread, at, &word, 0, NULL));
    REFUSED(EMPTY, rwrite(thread, at, NULL, 0, NULL));
    REFUSED(TOO_LONG, rread(thread, at, &word, UINT64_MAX, NULL));
    REFUSED(TOO_LONG, rwrite(thread, at, &word, UINT64_MAX, NULL));
    REFUSED(UNMAPPED, rwrite(thread, at + 4090, &word, 8, NULL));
    REFUSED(UNMAPPED, rread(thread, 0, &word, 8, NULL));
    REFUSED(NULL_ARGUMENT, rgather(thread, NULL, 1, &word, 8, NULL));
    REFUSED(NULL_ARGUMENT, rscatter(thread, NULL, 1, &word, 8, NULL));
    REFUSED(EMPTY, rgather(thread, NULL, 0, &word, 0, NULL));
    REFUSED(NULL_ARGUMENT, rchase(thread, NULL, &word, NULL, NULL));
    REFUSED(NULL_ARGUMENT, rfilter(thread, NULL, &word, 8, &length, NULL));
    REFUSED(NULL_ARGUMENT,
            roffload(thread, NULL, at, NULL, 0, NULL, 0, &word, 8, &length, NULL));
    REFUSED(NULL_ARGUMENT, rpoll(NULL, 1, NULL));
    REFUSED(NULL_ARGUMENT, rtest(NULL, &ended));
    REFUSED(NULL_ARGUMENT, rtest(&pending, NULL));
    REFUSED(NULL_ARGUMENT, rforget(NULL));
    CHECK(pending.id == 0);
    OK(rfree(thread, at, 4096, NULL));
}

static void no_good_handles(const char *url, ethermem_pool pool, ethermem_thread thread) {
    uint64_t word = 0;
    ethermem_pending pending = {0};
    ethermem_thread made = {0};
    REFUSED(BAD_HANDLE, rclose(NO_POOL));
    SAID("not a handle of a pool: null, closed");
    REFUSED(BAD_HANDLE, rnow(NO_POOL, &word));
    REFUSED(BAD_HANDLE, rnodes(NO_POOL, NULL, NULL));
    REFUSED(BAD_HANDLE, rthread(NO_POOL, &made));
    REFUSED(BAD_HANDLE, rthread_close(NO_THREAD));
    REFUSED(BAD_HANDLE, rread(NO_THREAD, 8, &word, 8, NULL));
    REFUSED(BAD_HANDLE, runlock(NO_THREAD, 8));
    REFUSED(BAD_HANDLE, rpoll(&pending, 1, NULL));

    /* A number has one kind, whatever type it is cast to. */
    ethermem_pool disguised_thread = {thread.id};
    ethermem_thread disguised_pool = {pool.id}, odd = {0xdeadbeefcafe};
    REFUSED(BAD_HANDLE, rnow(disguised_thread, &word));
    REFUSED(BAD_HANDLE, rclose(disguised_thread));
    REFUSED(BAD_HANDLE, rrelease(disguised_pool, NULL));
    REFUSED(BAD_HANDLE, rrelease(odd, NULL));

    ethermem_pool other = {0};
    ethermem_thread ended = {0}, kept = {0};
    OK(ropen(url, &other));
    OK(rthread(other, &ended));
    OK(rthread_close(ended));
    REFUSED(BAD_HANDLE, rthread_close(ended));
    REFUSED(BAD_HANDLE, rread(ended, 8, &word, 8, NULL));
    OK(rthread(other, &kept));
    /* The number of the previous handle is not reused. */
    CHECK(kept.id != ended.id);
    OK(rsleep(kept, 1000, &pending));
    REFUSED(BUSY, rclose(other));
    SAID("1 operations under way");
    OK(rpoll(&pending, 1, NULL));
    OK(rclose(other));
    REFUSED(BAD_HANDLE, rclose(other));
    REFUSED(BAD_HANDLE, rnow(other, &word));
    REFUSED(BAD_HANDLE, rread(kept, 8, &word, 8, NULL));
    REFUSED(BAD_HANDLE, rthread_close(kept));
}

int main(int count, char **words) {
    CHECK(count == 2);
    ethermem_pool pool = {0};
    ethermem_thread thread = {0};
    uint16_t compute_nodes = 0, memory_nodes = 0;
    CHECK(rerror()[0] == '\0');
    OK(ropen(words[1], &pool));
    OK(rnodes(pool, &compute_nodes, &memory_nodes));
    CHECK(compute_nodes > 0 && memory_nodes > 0);
    OK(rthread(pool, &thread));
    reads_and_writes(thread);
    atomics_and_locks(thread);
    asking(pool, thread);
    offloads(thread);
    sharing(pool, thread);
    no_good_arguments(pool, thread);
    no_good_handles(words[1], pool, thread);
    CHECK(rretryable(ETHERMEM_STATUS_LOST) && !rretryable(ETHERMEM_STATUS_BAD_HANDLE));
    CHECK(strcmp(rstatus_text(1000), "no status") == 0);
    OK(rclose(pool));
    puts(rversion());
    return 0;
}
