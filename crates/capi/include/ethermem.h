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
 * Add, modulo 2^64.
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
 * The field equals the operand.
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
 * The client walks the index: a round trip for the bucket and one for each record on the way.
 */
#define ETHERMEM_INDEX_CLIENT 1

/**
 * Status of a call or an operation. `rerror` has the line that says what failed, where, and what
 * is allowed.
 */
typedef enum ethermem_status {
    /**
     * The call succeeded.
     */
    ETHERMEM_STATUS_OK = 0,
    /**
     * A required pointer is null.
     */
    ETHERMEM_STATUS_NULL_ARGUMENT = 1,
    /**
     * The handle is null, closed, already polled, or of another kind.
     */
    ETHERMEM_STATUS_BAD_HANDLE = 2,
    /**
     * An argument is not among the allowed values.
     */
    ETHERMEM_STATUS_BAD_ARGUMENT = 3,
    /**
     * The URL opens no pool.
     */
    ETHERMEM_STATUS_BAD_URL = 4,
    /**
     * Operations of the pool to be closed, or of the store's client that is called, were neither
     * polled nor forgotten.
     */
    ETHERMEM_STATUS_BUSY = 5,
    /**
     * The result is longer than the caller's buffer.
     */
    ETHERMEM_STATUS_BUFFER_TOO_SMALL = 6,
    /**
     * Some of the bytes are in no region that the process can access.
     */
    ETHERMEM_STATUS_UNMAPPED = 7,
    /**
     * The process lacks the permission for this access.
     */
    ETHERMEM_STATUS_PERMISSION = 8,
    /**
     * The length asked for is zero.
     */
    ETHERMEM_STATUS_EMPTY = 9,
    /**
     * The length asked for is too large.
     */
    ETHERMEM_STATUS_TOO_LONG = 10,
    /**
     * The address of an atomic or a lock is not a multiple of 8.
     */
    ETHERMEM_STATUS_MISALIGNED = 11,
    /**
     * The memory node has too little free memory; it may have more once regions are freed.
     */
    ETHERMEM_STATUS_FULL = 12,
    /**
     * The thread does not hold the lock.
     */
    ETHERMEM_STATUS_NOT_HELD = 13,
    /**
     * The pool has no node of this number.
     */
    ETHERMEM_STATUS_NO_SUCH_NODE = 14,
    /**
     * The memory nodes have no operation of this name.
     */
    ETHERMEM_STATUS_NO_SUCH_OFFLOAD = 15,
    /**
     * The operation at the memory node refuses its arguments, or ends without a result.
     */
    ETHERMEM_STATUS_OFFLOAD = 16,
    /**
     * The simulated fabric lost a message: a read was not done; whether a write or an atomic was
     * done is unknown.
     */
    ETHERMEM_STATUS_LOST = 17,
    /**
     * An invariant of the simulated fabric is violated: its results cannot be trusted.
     */
    ETHERMEM_STATUS_VIOLATED = 18,
    /**
     * The library has a defect.
     */
    ETHERMEM_STATUS_INTERNAL = 19,
    /**
     * The memory node does not exist or does not respond.
     */
    ETHERMEM_STATUS_UNREACHABLE = 20,
    /**
     * The thread now holds the lock, but its former holder died: the guarded data may be half
     * changed.
     */
    ETHERMEM_STATUS_OWNER_DIED = 21,
    /**
     * The memory node restarted, and its memory is lost.
     */
    ETHERMEM_STATUS_RESTARTED = 22,
    /**
     * The process has ended, and its memory is lost.
     */
    ETHERMEM_STATUS_PROCESS_ENDED = 23,
    /**
     * The memory node refuses the operation for a reason of its own.
     */
    ETHERMEM_STATUS_REFUSED = 24,
    /**
     * The memory node stopped the operation: it made an illegal access or exceeded a limit.
     */
    ETHERMEM_STATUS_OFFLOAD_STOPPED = 25,
    /**
     * The memory node is shutting down and accepts no new process.
     */
    ETHERMEM_STATUS_ENDING = 26,
    /**
     * This process is a fork of the process that opened the pool; it can open a pool of its own.
     */
    ETHERMEM_STATUS_FORKED = 27,
    /**
     * An operation of a store may have been done, entirely or not at all: the message that decides
     * had no response.
     */
    ETHERMEM_STATUS_UNCERTAIN = 28,
    /**
     * The operation waits for another one of this program that no thread drives.
     */
    ETHERMEM_STATUS_STALLED = 29,
    /**
     * The memory node did not respond in time: a read was not done; whether a write or an atomic
     * was done is unknown.
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
 * A thread: an ordered stream of operations. `{0}` is none. Machine threads may share one.
 */
typedef struct ethermem_thread {
    uint64_t id;
} ethermem_thread;

/**
 * An operation in flight. `{0}` is none.
 */
typedef struct ethermem_pending {
    uint64_t id;
} ethermem_pending;

/**
 * A contiguous range of bytes in remote memory.
 */
typedef struct ethermem_segment {
    /**
     * Address of the first byte.
     */
    uint64_t address;
    /**
     * Length in bytes.
     */
    uint64_t bytes;
} ethermem_segment;

/**
 * Follows pointers from element to element until a key is found. Lengths and offsets are in bytes.
 */
typedef struct ethermem_chase {
    /**
     * Address of the first element; 0 is an empty chain.
     */
    uint64_t start;
    /**
     * Offset in an element of the next element's address.
     */
    uint32_t next_offset;
    /**
     * Offset in an element of its key.
     */
    uint32_t key_offset;
    /**
     * Offset in an element of the bytes to return.
     */
    uint32_t value_offset;
    /**
     * Number of bytes to return.
     */
    uint32_t value_bytes;
    /**
     * Largest number of elements to visit.
     */
    uint32_t elements_max;
    /**
     * Length of the key.
     */
    uint32_t key_bytes;
    /**
     * Key to find. It is not used after the call.
     */
    const void *key;
} ethermem_chase;

/**
 * Selects the records of an array by comparing a field. Lengths and offsets are in bytes.
 */
typedef struct ethermem_filter {
    /**
     * Address of the first record.
     */
    uint64_t start;
    /**
     * Length of a record.
     */
    uint32_t record_bytes;
    /**
     * Number of records.
     */
    uint32_t records;
    /**
     * Offset in a record of the field, an eight-byte little-endian word.
     */
    uint32_t field_offset;
    /**
     * ETHERMEM_LESS, ETHERMEM_EQUAL or ETHERMEM_GREATER.
     */
    uint32_t comparison;
    /**
     * Value to which the field is compared.
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
 * The text of the last failed call of this machine thread; empty if none failed. It is never null,
 * and valid until the next call of this machine thread.
 */
const char *rerror(void);

/**
 * The general meaning of a status. It is never null, and always valid.
 */
const char *rstatus_text(uint32_t status);

/**
 * Returns whether the same operation may succeed when it is retried.
 */
bool rretryable(uint32_t status);

/**
 * The library's version. It is never null, and always valid.
 */
const char *rversion(void);

/**
 * Opens the pool that `url` names: `local:`, `sim:edm?nodes=144&link_gbps=100`, `udp://host:7400`,
 * `ring://eth0`, `node://host:7400`. It is open until `rclose`.
 */
enum ethermem_status ropen(const char *url, struct ethermem_pool *pool);

/**
 * Closes a pool, and with it its threads and their memory. It is refused as `ETHERMEM_STATUS_BUSY`
 * while operations have handles. It checks the invariants of a simulated fabric: after
 * `ETHERMEM_STATUS_VIOLATED` the pool is closed, too.
 */
enum ethermem_status rclose(struct ethermem_pool pool);

/**
 * Stores the transport of a `node:` pool, with the measured round trips of both transports. The
 * text is zero-terminated, and empty if the URL left no choice. A text of more than
 * `text_bytes_max` bytes is refused as `ETHERMEM_STATUS_BUFFER_TOO_SMALL`; 1,024 are enough.
 */
enum ethermem_status rchoice(struct ethermem_pool pool, char *text, uint64_t text_bytes_max);

/**
 * Stores the numbers of compute nodes and of memory nodes; either may be null.
 */
enum ethermem_status rnodes(struct ethermem_pool pool,
                            uint16_t *compute_nodes,
                            uint16_t *memory_nodes);

/**
 * Stores the picoseconds since the pool was opened: in the fabric's virtual time if it has one.
 */
enum ethermem_status rnow(struct ethermem_pool pool, uint64_t *now_ps);

/**
 * Stores whether time is a simulated fabric's, which advances only in operations and `rsleep`.
 */
enum ethermem_status ris_simulated(struct ethermem_pool pool, bool *is_simulated);

/**
 * Stores the number of events that the simulated fabric has handled; 0 on other pools.
 */
enum ethermem_status revents(struct ethermem_pool pool, uint64_t *events);

/**
 * Runs until an operation ends or for a short rest, and stores false if nothing is in flight. It
 * is for programs that poll many operations by `rtest`.
 */
enum ethermem_status rstep(struct ethermem_pool pool, bool *under_way);

/**
 * Creates a process and its first thread, on the next compute node in round-robin order.
 */
enum ethermem_status rthread(struct ethermem_pool pool, struct ethermem_thread *thread);

/**
 * Creates a process and its first thread, on the given compute node, from 0.
 */
enum ethermem_status rthread_on(struct ethermem_pool pool,
                                uint16_t compute_node,
                                struct ethermem_thread *thread);

/**
 * Creates another thread of the same process, on the same compute node.
 */
enum ethermem_status rfork(struct ethermem_thread thread, struct ethermem_thread *forked);

/**
 * Creates another thread of the same process, on the given compute node, from 0.
 */
enum ethermem_status rfork_on(struct ethermem_thread thread,
                              uint16_t compute_node,
                              struct ethermem_thread *forked);

/**
 * Closes a thread's handle. Its memory stays, and its operations in flight go on.
 */
enum ethermem_status rthread_close(struct ethermem_thread thread);

/**
 * Stores the number of the thread's process, which `rshare` takes, and the index of its compute
 * node; either may be null.
 */
enum ethermem_status rwhere(struct ethermem_thread thread,
                            uint32_t *process,
                            uint16_t *compute_node);

/**
 * Allocates a region of zeros on the next memory node in round-robin order, and stores its
 * address. `permissions` are those of `thread`'s process: ETHERMEM_READ, ETHERMEM_WRITE, or both.
 */
enum ethermem_status ralloc(struct ethermem_thread thread,
                            uint64_t bytes,
                            uint32_t permissions,
                            uint64_t *address,
                            struct ethermem_pending *pending);

/**
 * Allocates as `ralloc`, on the given memory node, from 0.
 */
enum ethermem_status ralloc_on(struct ethermem_thread thread,
                               uint16_t memory_node,
                               uint64_t bytes,
                               uint32_t permissions,
                               uint64_t *address,
                               struct ethermem_pending *pending);

/**
 * Frees a region, by the address that `ralloc` stored and its length in bytes. Only its owner may.
 */
enum ethermem_status rfree(struct ethermem_thread thread,
                           uint64_t address,
                           uint64_t bytes,
                           struct ethermem_pending *pending);

/**
 * Grants another process access to a region at the same address, or revokes it with permissions of
 * 0. Only the region's owner may.
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
 * Reads several ranges into `to`, one after the other, as one operation. `bytes` is the sum of
 * their lengths. One refused range fails the operation.
 */
enum ethermem_status rgather(struct ethermem_thread thread,
                             const struct ethermem_segment *segments,
                             uint64_t segments_count,
                             void *to,
                             uint64_t bytes,
                             struct ethermem_pending *pending);

/**
 * Writes the bytes of `from` to several ranges, one after the other, as one operation. `bytes` is
 * the sum of their lengths. One refused range fails the operation; others may have been written.
 */
enum ethermem_status rscatter(struct ethermem_thread thread,
                              const struct ethermem_segment *segments,
                              uint64_t segments_count,
                              const void *from,
                              uint64_t bytes,
                              struct ethermem_pending *pending);

/**
 * Stores `desired` into the word at `address` if it equals `expected`. The previous word is stored
 * in `before`, which may be null.
 */
enum ethermem_status rcas(struct ethermem_thread thread,
                          uint64_t address,
                          uint64_t expected,
                          uint64_t desired,
                          uint64_t *before,
                          struct ethermem_pending *pending);

/**
 * Adds to the word at `address`, modulo 2^64. The previous word is stored in `before`, which may
 * be null.
 */
enum ethermem_status rfetch_add(struct ethermem_thread thread,
                                uint64_t address,
                                uint64_t addend,
                                uint64_t *before,
                                struct ethermem_pending *pending);

/**
 * Stores a word at `address`. The previous word is stored in `before`, which may be null.
 */
enum ethermem_status rswap(struct ethermem_thread thread,
                           uint64_t address,
                           uint64_t word,
                           uint64_t *before,
                           struct ethermem_pending *pending);

/**
 * Executes any atomic of one operand on the word at `address`: ETHERMEM_MODIFY_ADD, _SWAP, _AND,
 * _OR or _XOR. The previous word is stored in `before`, which may be null.
 */
enum ethermem_status rmodify(struct ethermem_thread thread,
                             uint64_t address,
                             uint32_t operation,
                             uint64_t operand,
                             uint64_t *before,
                             struct ethermem_pending *pending);

/**
 * Sets bit 0 of the word at `address`. Whether it was set before is stored in `was_set`, which may
 * be null.
 */
enum ethermem_status rtest_and_set(struct ethermem_thread thread,
                                   uint64_t address,
                                   bool *was_set,
                                   struct ethermem_pending *pending);

/**
 * Acquires the lock whose word is at `lock_address`, once it is free. A word of 0 is a free lock.
 */
enum ethermem_status rlock(struct ethermem_thread thread,
                           uint64_t lock_address,
                           struct ethermem_pending *pending);

/**
 * Releases a lock that this thread holds, after all earlier operations of the thread have ended,
 * and waits for completion.
 */
enum ethermem_status runlock(struct ethermem_thread thread, uint64_t lock_address);

/**
 * Waits until all of `count` operations have ended, and sets their handles to `{0}`. Returns the
 * status of the first of them that failed. Unless `statuses` is null, stores the status of each
 * there. On a simulated fabric, virtual time advances meanwhile.
 *
 * Each result is stored during this call, at the place given to its operation.
 */
enum ethermem_status rpoll(struct ethermem_pending *pendings,
                           uint64_t count,
                           enum ethermem_status *statuses);

/**
 * Polls an operation without waiting. If it has ended, stores true in `ended` and its result at
 * its place, sets the handle to `{0}`, and returns the operation's status. Otherwise stores false.
 * On a simulated fabric, each poll advances virtual time by one event of the pool.
 */
enum ethermem_status rtest(struct ethermem_pending *pending, bool *ended);

/**
 * Discards the result of an operation, which goes on, and sets its handle to `{0}`. Nothing is
 * stored anywhere. A forgotten lock is still acquired when it is free. An operation of a store is
 * done or not done, and its client's next operation finds out.
 */
enum ethermem_status rforget(struct ethermem_pending *pending);

/**
 * Completes when all earlier operations of this thread have completed.
 */
enum ethermem_status rrelease(struct ethermem_thread thread, struct ethermem_pending *pending);

/**
 * Completes when all earlier operations of this thread have completed, and every memory node that
 * its process has used has done all earlier requests.
 */
enum ethermem_status rfence(struct ethermem_thread thread, struct ethermem_pending *pending);

/**
 * Completes after `time_ps` picoseconds: in real time, or in the simulated fabric's.
 */
enum ethermem_status rsleep(struct ethermem_thread thread,
                            uint64_t time_ps,
                            struct ethermem_pending *pending);

/**
 * Runs the operation `name` at the memory node of `at` in one round trip, whatever it does there.
 * `touches` are the ranges that it uses; operations of this thread on them are ordered with it.
 * The result's length is stored in `result_bytes`. A result longer than `result_bytes_max` is
 * refused as ETHERMEM_STATUS_BUFFER_TOO_SMALL, and its length is stored anyway.
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
 * Runs the operation `chase`. The address of the element with the key is stored in `found`, or 0
 * if there is none, and its `value_bytes` bytes in `value`.
 */
enum ethermem_status rchase(struct ethermem_thread thread,
                            const struct ethermem_chase *request,
                            uint64_t *found,
                            void *value,
                            struct ethermem_pending *pending);

/**
 * Runs the operation `filter`. The selected records are stored in `records`, and the sum of their
 * lengths in `records_bytes`. If the sum exceeds `records_bytes_max`, the result is refused as
 * ETHERMEM_STATUS_BUFFER_TOO_SMALL, and the sum is stored anyway.
 */
enum ethermem_status rfilter(struct ethermem_thread thread,
                             const struct ethermem_filter *request,
                             void *records,
                             uint64_t records_bytes_max,
                             uint64_t *records_bytes,
                             struct ethermem_pending *pending);

/**
 * Creates an empty key-value store on the memory nodes of a pool, and waits for completion: on the
 * first `memory_nodes`, or on all if that is 0. `buckets` is the initial number per node, a power
 * of two; 1024 suits most uses. A program with untrusted keys draws `hash_seed` at random.
 */
enum ethermem_status rstore(struct ethermem_pool pool,
                            uint16_t memory_nodes,
                            uint64_t buckets,
                            uint64_t hash_seed,
                            struct ethermem_store *store);

/**
 * Closes a store's handle. Its data in the memory nodes stays, and its clients go on.
 */
enum ethermem_status rstore_close(struct ethermem_store store);

/**
 * Creates a client on the next compute node in round-robin order. Its operations are done one at a
 * time. `index` is the side that walks the index: ETHERMEM_INDEX_NODE, by the operation
 * `key-value`, or ETHERMEM_INDEX_CLIENT.
 */
enum ethermem_status rclient(struct ethermem_store store,
                             uint32_t index,
                             struct ethermem_client *client);

/**
 * Creates a client as `rclient`, on the given compute node, from 0.
 */
enum ethermem_status rclient_on(struct ethermem_store store,
                                uint16_t compute_node,
                                uint32_t index,
                                struct ethermem_client *client);

/**
 * Closes the handle of a client of a store.
 */
enum ethermem_status rclient_close(struct ethermem_client client);

/**
 * Stores a new key. Whether the key was absent is stored in `created`, which may be null. Keys and
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
 * Replaces the value of a key. Whether the key existed is stored in `updated`, which may be null.
 */
enum ethermem_status rkv_update(struct ethermem_client client,
                                const void *key,
                                uint64_t key_bytes,
                                const void *value,
                                uint64_t value_bytes,
                                bool *updated,
                                struct ethermem_pending *pending);

/**
 * Stores a value for a key, whether or not the key exists.
 */
enum ethermem_status rkv_put(struct ethermem_client client,
                             const void *key,
                             uint64_t key_bytes,
                             const void *value,
                             uint64_t value_bytes,
                             struct ethermem_pending *pending);

/**
 * Reads the value of a key. Whether the key exists is stored in `found`. If so, its value is
 * stored in `value`, and the value's length in `value_bytes`. A value longer than
 * `value_bytes_max` is refused as ETHERMEM_STATUS_BUFFER_TOO_SMALL, and its length is stored
 * anyway.
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
 * Deletes a key. Whether the key existed is stored in `deleted`, which may be null.
 */
enum ethermem_status rkv_delete(struct ethermem_client client,
                                const void *key,
                                uint64_t key_bytes,
                                bool *deleted,
                                struct ethermem_pending *pending);

/**
 * Deletes every key that exists when its bucket is visited.
 */
enum ethermem_status rkv_clear(struct ethermem_client client, struct ethermem_pending *pending);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ETHERMEM_H */
