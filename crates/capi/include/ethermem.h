/*
 * Remote memory behind one interface, on any fabric: the C library of ethermem.
 *
 * Generated from crates/capi, whose tests hold it to that.
 *
 * Every call that can fail returns an ethermem_status and gives its results through pointers.
 * rerror() has the line that says what failed, where, and what is allowed.
 *
 * The last argument of an operation is `pending`. NULL waits for the end of the operation. A place
 * for a handle makes it asynchronous: the call returns at once, and rpoll or rtest give its status,
 * also where it failed at once. What an asynchronous operation stores (what `to`, `before`,
 * `address` and the like point to) is stored in the rpoll or rtest that ends it, and must last
 * until then. What it takes (`from`, `key`, `arguments`) is not used after the call.
 *
 * Any machine thread may use any handle. Operations of one ethermem_thread on the same page (4 KiB)
 * keep their order where one of them writes; others may be done in any order.
 *
 * A sim: pool has a time of its own, which goes on in operations that are waited for, in rpoll and
 * in rtest, and stands still otherwise.
 */

#ifndef ETHERMEM_H
#define ETHERMEM_H

#include <stdbool.h>
#include <stdint.h>

/**
 * The process may read.
 */
#define ETHERMEM_READ 1

/**
 * The process may write.
 */
#define ETHERMEM_WRITE 2

/**
 * Add, around the end.
 */
#define ETHERMEM_MODIFY_ADD 0

/**
 * Store.
 */
#define ETHERMEM_MODIFY_SWAP 1

/**
 * Bitwise and.
 */
#define ETHERMEM_MODIFY_AND 2

/**
 * Bitwise or.
 */
#define ETHERMEM_MODIFY_OR 3

/**
 * Bitwise exclusive or.
 */
#define ETHERMEM_MODIFY_XOR 4

/**
 * The field is below the operand.
 */
#define ETHERMEM_LESS 0

/**
 * The field is the operand.
 */
#define ETHERMEM_EQUAL 1

/**
 * The field is above the operand.
 */
#define ETHERMEM_GREATER 2

/**
 * The memory node walks the index, in one round trip.
 */
#define ETHERMEM_INDEX_NODE 0

/**
 * The client walks it: a round trip for the bucket and one for each record on the way.
 */
#define ETHERMEM_INDEX_CLIENT 1

/**
 * How a call, or an operation, ended. `rerror` has the line that says what, where, and what is
 * allowed.
 */
typedef enum ethermem_status {
    /**
     * Done.
     */
    ETHERMEM_STATUS_OK = 0,
    /**
     * A pointer is null that must not be.
     */
    ETHERMEM_STATUS_NULL_ARGUMENT = 1,
    /**
     * The handle is null, closed, already polled, or of another kind.
     */
    ETHERMEM_STATUS_BAD_HANDLE = 2,
    /**
     * An argument is none of those that are allowed.
     */
    ETHERMEM_STATUS_BAD_ARGUMENT = 3,
    /**
     * The URL opens no pool.
     */
    ETHERMEM_STATUS_BAD_URL = 4,
    /**
     * Operations, of the pool that is to be closed or of the client of a store that is asked, were
     * neither polled nor forgotten.
     */
    ETHERMEM_STATUS_BUSY = 5,
    /**
     * The result is longer than the caller's buffer.
     */
    ETHERMEM_STATUS_BUFFER_TOO_SMALL = 6,
    /**
     * Some of the bytes are in no region that the process has.
     */
    ETHERMEM_STATUS_UNMAPPED = 7,
    /**
     * The process may not do this there.
     */
    ETHERMEM_STATUS_PERMISSION = 8,
    /**
     * 0 bytes were asked for.
     */
    ETHERMEM_STATUS_EMPTY = 9,
    /**
     * Too much was asked for at once.
     */
    ETHERMEM_STATUS_TOO_LONG = 10,
    /**
     * An atomic or a lock is not at a multiple of 8.
     */
    ETHERMEM_STATUS_MISALIGNED = 11,
    /**
     * The memory node has no room; it may have some once regions are freed.
     */
    ETHERMEM_STATUS_FULL = 12,
    /**
     * The thread does not hold the lock.
     */
    ETHERMEM_STATUS_NOT_HELD = 13,
    /**
     * The pool has no such node.
     */
    ETHERMEM_STATUS_NO_SUCH_NODE = 14,
    /**
     * The memory nodes know no such operation.
     */
    ETHERMEM_STATUS_NO_SUCH_OFFLOAD = 15,
    /**
     * The operation at the memory node refuses its arguments, or ends without a result.
     */
    ETHERMEM_STATUS_OFFLOAD = 16,
    /**
     * The simulated fabric lost a message: a read was not done, of a write or an atomic it is not
     * known.
     */
    ETHERMEM_STATUS_LOST = 17,
    /**
     * An invariant of the simulated fabric does not hold: what it did cannot be trusted.
     */
    ETHERMEM_STATUS_VIOLATED = 18,
    /**
     * A defect of ethermem.
     */
    ETHERMEM_STATUS_INTERNAL = 19,
    /**
     * The memory node is not there, or does not answer.
     */
    ETHERMEM_STATUS_UNREACHABLE = 20,
    /**
     * The lock is this thread's, and whoever had it died: what it guards may be half changed.
     */
    ETHERMEM_STATUS_OWNER_DIED = 21,
    /**
     * The memory node was started anew: all that was on it is gone.
     */
    ETHERMEM_STATUS_RESTARTED = 22,
    /**
     * The process is no more, and its memory is gone.
     */
    ETHERMEM_STATUS_PROCESS_ENDED = 23,
    /**
     * The memory node refuses it, for a reason of its own.
     */
    ETHERMEM_STATUS_REFUSED = 24,
    /**
     * The operation at the memory node was stopped: it did what no program may, or used up what it
     * may have.
     */
    ETHERMEM_STATUS_OFFLOAD_STOPPED = 25,
    /**
     * The memory node is about to end, and takes no new process.
     */
    ETHERMEM_STATUS_ENDING = 26,
    /**
     * This process is a fork of the one that opened the pool; it can open one of its own.
     */
    ETHERMEM_STATUS_FORKED = 27,
    /**
     * An operation of a store may have been done, whole or not at all: no answer came to the
     * message that decides.
     */
    ETHERMEM_STATUS_UNCERTAIN = 28,
    /**
     * The operation waits for another one of this program that nobody goes on with.
     */
    ETHERMEM_STATUS_STALLED = 29,
    /**
     * The memory node did not answer in time: a read was not done, of a write or an atomic it is
     * not known.
     */
    ETHERMEM_STATUS_NO_ANSWER = 30,
} ethermem_status;

/**
 * A pool. `{0}` is none.
 */
typedef struct ethermem_pool {
    uint64_t id;
} ethermem_pool;

/**
 * A thread: a stream of operations with an order of its own. `{0}` is none. Machine threads may
 * share one.
 */
typedef struct ethermem_thread {
    uint64_t id;
} ethermem_thread;

/**
 * An operation under way. `{0}` is none.
 */
typedef struct ethermem_pending {
    uint64_t id;
} ethermem_pending;

/**
 * Bytes of one place in remote memory.
 */
typedef struct ethermem_segment {
    /**
     * The first byte.
     */
    uint64_t address;
    /**
     * How many.
     */
    uint64_t bytes;
} ethermem_segment;

/**
 * Follows pointers from element to element until a key is found. Lengths and offsets in bytes.
 */
typedef struct ethermem_chase {
    /**
     * The first element; 0 is an empty chain.
     */
    uint64_t start;
    /**
     * Where in an element the address of the next one is.
     */
    uint32_t next_offset;
    /**
     * Where in an element its key is.
     */
    uint32_t key_offset;
    /**
     * Where in an element the bytes begin that are asked for.
     */
    uint32_t value_offset;
    /**
     * How many bytes of the element are asked for.
     */
    uint32_t value_bytes;
    /**
     * Most elements looked at.
     */
    uint32_t elements_max;
    /**
     * How long the key is.
     */
    uint32_t key_bytes;
    /**
     * What is looked for. Not used after the call.
     */
    const void *key;
} ethermem_chase;

/**
 * The records of an array with a field that compares so. Lengths and offsets in bytes.
 */
typedef struct ethermem_filter {
    /**
     * The first record.
     */
    uint64_t start;
    /**
     * How long a record is.
     */
    uint32_t record_bytes;
    /**
     * How many there are.
     */
    uint32_t records;
    /**
     * Where in a record the field is, an eight-byte little-endian word.
     */
    uint32_t field_offset;
    /**
     * ETHERMEM_LESS, ETHERMEM_EQUAL or ETHERMEM_GREATER.
     */
    uint32_t comparison;
    /**
     * To what it is compared.
     */
    uint64_t operand;
} ethermem_filter;

/**
 * A key-value store. `{0}` is none.
 */
typedef struct ethermem_store {
    uint64_t id;
} ethermem_store;

/**
 * A client of a store: a stream of operations, one at a time. `{0}` is none.
 */
typedef struct ethermem_client {
    uint64_t id;
} ethermem_client;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The line of the last call of this machine thread that failed; empty if none did. Never null;
 * good until the next call of this machine thread.
 */
const char *rerror(void);

/**
 * What a status means, in general. Never null, good for ever.
 */
const char *rstatus_text(uint32_t status);

/**
 * Whether the same operation may be done if it is tried again.
 */
bool rretryable(uint32_t status);

/**
 * The library's version. Never null, good for ever.
 */
const char *rversion(void);

/**
 * Opens the pool that `url` names: `local:`, `sim:edm?nodes=144&link_gbps=100`, `udp://host:7400`,
 * `ring://eth0`, `node://host:7400`. It is open until `rclose`.
 */
enum ethermem_status ropen(const char *url, struct ethermem_pool *pool);

/**
 * Closes a pool, and with it its threads and their memory. Refused as `ETHERMEM_STATUS_BUSY` while
 * operations have handles. Checks the invariants of a simulated fabric: after
 * `ETHERMEM_STATUS_VIOLATED` the pool is closed too.
 */
enum ethermem_status rclose(struct ethermem_pool pool);

/**
 * Stores how the node of a `node:` pool is reached, and what of the other way was measured: a text
 * with a zero at its end, empty where the URL left no choice. One of more than `text_bytes_max`
 * bytes is refused as `ETHERMEM_STATUS_BUFFER_TOO_SMALL`; 1,024 are enough.
 */
enum ethermem_status rchoice(struct ethermem_pool pool, char *text, uint64_t text_bytes_max);

/**
 * Stores how many compute nodes and memory nodes there are; either may be null.
 */
enum ethermem_status rnodes(struct ethermem_pool pool,
                            uint16_t *compute_nodes,
                            uint16_t *memory_nodes);

/**
 * Stores the picoseconds since the pool was opened: the fabric's own where it has a time of its
 * own.
 */
enum ethermem_status rnow(struct ethermem_pool pool, uint64_t *now_ps);

/**
 * Stores whether time is a simulated fabric's, which passes in operations and `rsleep` alone.
 */
enum ethermem_status ris_simulated(struct ethermem_pool pool, bool *is_simulated);

/**
 * Stores how many events the simulated fabric has handled; 0 elsewhere.
 */
enum ethermem_status revents(struct ethermem_pool pool, uint64_t *events);

/**
 * Lets what is under way go on until an operation ends or for a short rest, and stores false where
 * nothing is under way. For programs that ask many operations in turn by `rtest`.
 */
enum ethermem_status rstep(struct ethermem_pool pool, bool *under_way);

/**
 * Makes a new process and its first thread, on the next of the compute nodes in turn.
 */
enum ethermem_status rthread(struct ethermem_pool pool, struct ethermem_thread *thread);

/**
 * Makes a new process and its first thread, on a compute node, from 0.
 */
enum ethermem_status rthread_on(struct ethermem_pool pool,
                                uint16_t compute_node,
                                struct ethermem_thread *thread);

/**
 * Makes another thread of the same process, on the same compute node.
 */
enum ethermem_status rfork(struct ethermem_thread thread, struct ethermem_thread *forked);

/**
 * Makes another thread of the same process, on a compute node, from 0.
 */
enum ethermem_status rfork_on(struct ethermem_thread thread,
                              uint16_t compute_node,
                              struct ethermem_thread *forked);

/**
 * Ends a thread's handle. Its memory stays, and what it has under way goes on.
 */
enum ethermem_status rthread_close(struct ethermem_thread thread);

/**
 * Stores the number of the thread's process, which `rshare` takes, and the compute node that it is
 * on; either may be null.
 */
enum ethermem_status rwhere(struct ethermem_thread thread,
                            uint32_t *process,
                            uint16_t *compute_node);

/**
 * Allocates a region of zeros on the next of the memory nodes in turn, and stores its address.
 * `permissions` are those of `thread`'s process: ETHERMEM_READ, ETHERMEM_WRITE, or both.
 */
enum ethermem_status ralloc(struct ethermem_thread thread,
                            uint64_t bytes,
                            uint32_t permissions,
                            uint64_t *address,
                            struct ethermem_pending *pending);

/**
 * As `ralloc`, on a memory node, from 0.
 */
enum ethermem_status ralloc_on(struct ethermem_thread thread,
                               uint16_t memory_node,
                               uint64_t bytes,
                               uint32_t permissions,
                               uint64_t *address,
                               struct ethermem_pending *pending);

/**
 * Frees a region: the address that `ralloc` stored, and its length. Only its owner may.
 */
enum ethermem_status rfree(struct ethermem_thread thread,
                           uint64_t address,
                           uint64_t bytes,
                           struct ethermem_pending *pending);

/**
 * Lets another process use a region at the same address, or no longer with permissions of 0. Only
 * its owner may.
 */
enum ethermem_status rshare(struct ethermem_thread thread,
                            uint64_t address,
                            uint64_t bytes,
                            uint32_t with_process,
                            uint32_t permissions,
                            struct ethermem_pending *pending);

/**
 * Reads `bytes` bytes from `address` on into `to`.
 */
enum ethermem_status rread(struct ethermem_thread thread,
                           uint64_t address,
                           void *to,
                           uint64_t bytes,
                           struct ethermem_pending *pending);

/**
 * Writes `bytes` bytes of `from` from `address` on. `from` is not used after the call.
 */
enum ethermem_status rwrite(struct ethermem_thread thread,
                            uint64_t address,
                            const void *from,
                            uint64_t bytes,
                            struct ethermem_pending *pending);

/**
 * Reads several places into `to`, one after the other, as one operation. `bytes` is the sum of
 * theirs. A place that is refused fails it.
 */
enum ethermem_status rgather(struct ethermem_thread thread,
                             const struct ethermem_segment *segments,
                             uint64_t segments_count,
                             void *to,
                             uint64_t bytes,
                             struct ethermem_pending *pending);

/**
 * Writes to several places what stands in `from` one after the other, as one operation. `bytes` is
 * the sum of theirs. A place that is refused fails it; others may have been written.
 */
enum ethermem_status rscatter(struct ethermem_thread thread,
                              const struct ethermem_segment *segments,
                              uint64_t segments_count,
                              const void *from,
                              uint64_t bytes,
                              struct ethermem_pending *pending);

/**
 * Stores `desired` into the word at `address` if it is `expected`. The word before is stored in
 * `before`, which may be null.
 */
enum ethermem_status rcas(struct ethermem_thread thread,
                          uint64_t address,
                          uint64_t expected,
                          uint64_t desired,
                          uint64_t *before,
                          struct ethermem_pending *pending);

/**
 * Adds to the word at `address`, around the end. The word before is stored in `before`, which may
 * be null.
 */
enum ethermem_status rfetch_add(struct ethermem_thread thread,
                                uint64_t address,
                                uint64_t addend,
                                uint64_t *before,
                                struct ethermem_pending *pending);

/**
 * Stores a word at `address`. The word before is stored in `before`, which may be null.
 */
enum ethermem_status rswap(struct ethermem_thread thread,
                           uint64_t address,
                           uint64_t word,
                           uint64_t *before,
                           struct ethermem_pending *pending);

/**
 * Any atomic of one operand on the word at `address`: ETHERMEM_MODIFY_ADD, _SWAP, _AND, _OR or
 * _XOR. The word before is stored in `before`, which may be null.
 */
enum ethermem_status rmodify(struct ethermem_thread thread,
                             uint64_t address,
                             uint32_t operation,
                             uint64_t operand,
                             uint64_t *before,
                             struct ethermem_pending *pending);

/**
 * Sets bit 0 of the word at `address`. Whether it was set is stored in `was_set`, which may be
 * null.
 */
enum ethermem_status rtest_and_set(struct ethermem_thread thread,
                                   uint64_t address,
                                   bool *was_set,
                                   struct ethermem_pending *pending);

/**
 * Takes the lock that the word at `lock_address` is, once nobody holds it. A word of 0 is a free
 * lock.
 */
enum ethermem_status rlock(struct ethermem_thread thread,
                           uint64_t lock_address,
                           struct ethermem_pending *pending);

/**
 * Gives back a lock that this thread holds, when all operations of the thread before have ended,
 * and waits for that.
 */
enum ethermem_status runlock(struct ethermem_thread thread, uint64_t lock_address);

/**
 * Waits until all of `count` operations have ended, and sets their handles to `{0}`. Returns the
 * status of the first of them that failed, and stores that of each in `statuses` unless that is
 * null. On a simulated fabric its time goes on meanwhile.
 *
 * A result is stored where its operation was asked to, during this call.
 */
enum ethermem_status rpoll(struct ethermem_pending *pendings,
                           uint64_t count,
                           enum ethermem_status *statuses);

/**
 * Asks whether an operation has ended, without waiting for it. If so, stores true in `ended`, its
 * result where it was asked for, sets the handle to `{0}`, and returns how it ended. If not,
 * stores false; each question lets the time of a simulated fabric go on by one event of the pool.
 */
enum ethermem_status rtest(struct ethermem_pending *pending, bool *ended);

/**
 * Forgets the result of an operation, which goes on, and sets its handle to `{0}`. Nothing is
 * stored anywhere. A lock that is forgotten is still taken when it is free; an operation of a
 * store is done or not, as its client's next one finds out.
 */
enum ethermem_status rforget(struct ethermem_pending *pending);

/**
 * Ends when all operations of this thread before have ended.
 */
enum ethermem_status rrelease(struct ethermem_thread thread, struct ethermem_pending *pending);

/**
 * Ends when all operations of this thread before have ended, and every memory node that its
 * process has used has done what it was asked before.
 */
enum ethermem_status rfence(struct ethermem_thread thread, struct ethermem_pending *pending);

/**
 * Ends after a while: of the machine's time, or of the simulated fabric's.
 */
enum ethermem_status rsleep(struct ethermem_thread thread,
                            uint64_t time_ps,
                            struct ethermem_pending *pending);

/**
 * Runs the operation `name` at the memory node of `at`: one round trip, whatever it does there.
 * `touches` are the places that it uses; operations of this thread there are ordered with it.
 * The result's length is stored in `result_bytes`; a result longer than `result_bytes_max` is
 * refused as ETHERMEM_STATUS_BUFFER_TOO_SMALL, and its length is stored still.
 */
enum ethermem_status roffload(struct ethermem_thread thread,
                              const char *name,
                              uint64_t at,
                              const void *arguments,
                              uint64_t arguments_bytes,
                              const struct ethermem_segment *touches,
                              uint64_t touches_count,
                              void *result,
                              uint64_t result_bytes_max,
                              uint64_t *result_bytes,
                              struct ethermem_pending *pending);

/**
 * Runs the operation `chase`. The address of the element that has the key is stored in `found`, 0
 * where none has, and its `value_bytes` bytes in `value`.
 */
enum ethermem_status rchase(struct ethermem_thread thread,
                            const struct ethermem_chase *request,
                            uint64_t *found,
                            void *value,
                            struct ethermem_pending *pending);

/**
 * Runs the operation `filter`. The records that are kept are stored in `records`, and the sum of
 * their lengths in `records_bytes`, also where that is more than `records_bytes_max` and refused
 * as ETHERMEM_STATUS_BUFFER_TOO_SMALL.
 */
enum ethermem_status rfilter(struct ethermem_thread thread,
                             const struct ethermem_filter *request,
                             void *records,
                             uint64_t records_bytes_max,
                             uint64_t *records_bytes,
                             struct ethermem_pending *pending);

/**
 * Makes an empty key-value store on the memory nodes of a pool, and waits for that: on the first
 * `memory_nodes`, or on all if that is 0. `buckets` is how many each begins with, a power of two;
 * 1024 is right for most. Who takes keys from strangers draws `hash_seed`.
 */
enum ethermem_status rstore(struct ethermem_pool pool,
                            uint16_t memory_nodes,
                            uint64_t buckets,
                            uint64_t hash_seed,
                            struct ethermem_store *store);

/**
 * Ends a store's handle. What it has in the memory nodes stays, and its clients go on.
 */
enum ethermem_status rstore_close(struct ethermem_store store);

/**
 * Makes a client on the next of the compute nodes in turn. Its operations are done one at a time;
 * `index` says who walks the index: ETHERMEM_INDEX_NODE, by the operation `key-value`, or
 * ETHERMEM_INDEX_CLIENT.
 */
enum ethermem_status rclient(struct ethermem_store store,
                             uint32_t index,
                             struct ethermem_client *client);

/**
 * As `rclient`, on a compute node, from 0.
 */
enum ethermem_status rclient_on(struct ethermem_store store,
                                uint16_t compute_node,
                                uint32_t index,
                                struct ethermem_client *client);

/**
 * Ends the handle of a client of a store.
 */
enum ethermem_status rclient_close(struct ethermem_client client);

/**
 * Stores a new key. Whether there was none is stored in `created`, which may be null. Keys and
 * values are not used after the call.
 */
enum ethermem_status rkv_create(struct ethermem_client client,
                                const void *key,
                                uint64_t key_bytes,
                                const void *value,
                                uint64_t value_bytes,
                                bool *created,
                                struct ethermem_pending *pending);

/**
 * Stores another value for a key. Whether there was one is stored in `updated`, which may be null.
 */
enum ethermem_status rkv_update(struct ethermem_client client,
                                const void *key,
                                uint64_t key_bytes,
                                const void *value,
                                uint64_t value_bytes,
                                bool *updated,
                                struct ethermem_pending *pending);

/**
 * Stores a value for a key, whatever there is.
 */
enum ethermem_status rkv_put(struct ethermem_client client,
                             const void *key,
                             uint64_t key_bytes,
                             const void *value,
                             uint64_t value_bytes,
                             struct ethermem_pending *pending);

/**
 * Reads the value of a key. Whether there is one is stored in `found`; if so, it is stored in
 * `value`, and its length in `value_bytes`, also where that is more than `value_bytes_max` and
 * refused as ETHERMEM_STATUS_BUFFER_TOO_SMALL.
 */
enum ethermem_status rkv_read(struct ethermem_client client,
                              const void *key,
                              uint64_t key_bytes,
                              void *value,
                              uint64_t value_bytes_max,
                              uint64_t *value_bytes,
                              bool *found,
                              struct ethermem_pending *pending);

/**
 * Drops a key. Whether there was one is stored in `deleted`, which may be null.
 */
enum ethermem_status rkv_delete(struct ethermem_client client,
                                const void *key,
                                uint64_t key_bytes,
                                bool *deleted,
                                struct ethermem_pending *pending);

/**
 * Drops every key that is there when its bucket is met.
 */
enum ethermem_status rkv_clear(struct ethermem_client client, struct ethermem_pending *pending);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ETHERMEM_H */
