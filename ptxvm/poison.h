/* AddressSanitizer sees memory that is handed out in pieces of a larger block as one piece. If it is on, each
 * piece is followed by a gap that must not be accessed. */
#ifndef PTXVM_POISON_H
#define PTXVM_POISON_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PVM_POISON 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define PVM_POISON 1
#endif

#ifdef PVM_POISON
#include <sanitizer/asan_interface.h>
#define PVM_GAP                  64 /* bytes after each piece */
#define PVM_CLOSE(memory, bytes) __asan_poison_memory_region(memory, bytes)
#define PVM_OPEN(memory, bytes)  __asan_unpoison_memory_region(memory, bytes)
#else
#define PVM_GAP                  0
#define PVM_CLOSE(memory, bytes) ((void)(memory), (void)(bytes))
#define PVM_OPEN(memory, bytes)  ((void)(memory), (void)(bytes))
#endif

#endif
