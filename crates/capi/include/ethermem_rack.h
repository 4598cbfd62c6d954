/*
 * Buffers by reference over the connections of a rack: the calls of DFabric's memory pool (4.4).
 *
 * A program of a rack (`ethermem rack run`) has these functions from the preloaded library, and
 * links nothing. Elsewhere they are NULL: ethermem_rack_is_here() tells. They work on any stream
 * socket. Where a connection is not in memory, the kernel copies the bytes.
 *
 * The order of the stream holds for these calls and for send and recv together. The other end may
 * use other calls: it sees bytes. A message has no borders: recv_shared_skb returns what is there.
 *
 * All functions return -1, or NULL, and set errno where they fail.
 */

#ifndef ETHERMEM_RACK_H
#define ETHERMEM_RACK_H

#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Room for so many bytes that will be sent on `fd`. In a ring it is a part of the connection's
 * memory; EBUSY if the last one was neither sent nor freed. Bytes that send or write puts on `fd`
 * meanwhile come first, by the kernel, and so does the buffer then.
 */
__attribute__((weak)) void *alloc_shared_buffer(int fd, size_t bytes);

/*
 * Sends the first `bytes` of a buffer, by reference where it lies in the ring. The buffer is the
 * receiver's after that. On an error it stays the caller's. EINVAL: it is no buffer of this socket,
 * or shorter. A buffer that the kernel has to carry is sent whole, so the call may wait.
 */
__attribute__((weak)) ssize_t build_shared_skb(int fd, void *buffer, size_t bytes);

/*
 * A reference to at most `most` received bytes; 0 at the end of the stream. `flags` are recv's: 0
 * or MSG_DONTWAIT. ENOBUFS: 64 references of this connection were not freed. The sender could still
 * store into the bytes: copy first what must not change between a check and its use.
 */
__attribute__((weak)) ssize_t recv_shared_skb(int fd, const void **bytes, size_t most, int flags);

/*
 * Gives back a reference, in any order, or a buffer that was not sent. EINVAL: it is neither. A
 * reference ends with its connection, too: do not use it after close(fd).
 */
__attribute__((weak)) int kfree_shared_skb(int fd, const void *buffer);

/* 1 if this program runs in a rack. */
static inline int ethermem_rack_is_here(void) {
    return alloc_shared_buffer != NULL;
}

#ifdef __cplusplus
}
#endif

#endif
