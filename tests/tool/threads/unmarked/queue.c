/* The same program in C. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <time.h>

enum { batches = 160 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static int ready[batches];
static int made, taken, next_batch;

static long own_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

__attribute__((noinline)) void burn(int ms) {
  const long end = own_ms() + ms;
  while (own_ms() < end) {
  }
}

__attribute__((noinline)) int receive(void) {
  pthread_mutex_lock(&mutex);
  while (taken == made) pthread_cond_wait(&not_empty, &mutex);
  const int batch = ready[taken++];
  pthread_mutex_unlock(&mutex);
  return batch;
}

__attribute__((noinline)) void put(int batch) {
  pthread_mutex_lock(&mutex);
  ready[made++] = batch;
  pthread_cond_signal(&not_empty);
  pthread_mutex_unlock(&mutex);
}

__attribute__((noinline)) void decode(int batch) {
  burn(12 + 0 * batch);
}

__attribute__((noinline)) void train(int batch) {
  burn(2 + 0 * batch);
}

__attribute__((noinline)) void* worker_loop(void* unused) {
  for (int i = __sync_fetch_and_add(&next_batch, 1); i < batches;
       i = __sync_fetch_and_add(&next_batch, 1)) {
    decode(i);
    put(i);
  }
  return unused;
}

__attribute__((noinline)) void train_all(void) {
  for (int n = 0; n < batches; ++n) {
    const int i = receive();
    train(i);
  }
}

int main(void) {
  pthread_t first, second;
  if (pthread_create(&first, NULL, worker_loop, NULL) != 0) return 1;
  if (pthread_create(&second, NULL, worker_loop, NULL) != 0) return 1;
  train_all();
  pthread_join(first, NULL);
  pthread_join(second, NULL);
  return 0;
}
