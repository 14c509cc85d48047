/*
 * The target of the benchmark: the cheapest HTTP/1.1 server that is still one. One thread, epoll,
 * keep-alive, bodies by content-length, an 11-byte answer (a token as JSON to a POST), and a count
 * of requests that GET /count reads.
 *
 * Heads and bodies may be split over reads in any way; chunked bodies are not expected. Prints its
 * port and serves until it is killed.
 */

#define _GNU_SOURCE /* accept4 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_MAX 512
#define FILES_MAX 65536
#define READ_MAX 16384

static const char hello[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 11\r\n\r\nHello World";
static const char token[] =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 28\r\n\r\n{\"token\":\"b1946ac92492d234\"}";
static const char head_end[] = "\r\n\r\n";
static const char length_name[] = "\r\ncontent-length:";

/* Where a connection is in its request. */
static struct connection {
  unsigned char in_request, is_post, in_length;
  /* How much of head_end and of length_name the last bytes were. */
  unsigned char end_at, name_at;
  unsigned long length, body_left;
} connections[FILES_MAX];
static unsigned long long requests;

/* Answers are far smaller than a socket's buffer; a client that does not read loses its connection. */
static int answer(int fd, int is_post) {
  const char *bytes = is_post ? token : hello;
  size_t size = is_post ? sizeof token - 1 : sizeof hello - 1;
  requests++;
  return write(fd, bytes, size) == (ssize_t)size;
}

/* One byte of a head; true when it is the last. */
static int head_byte(struct connection *at, char byte) {
  char lower = byte >= 'A' && byte <= 'Z' ? (char)(byte + 32) : byte;
  if (!at->in_request) {
    memset(at, 0, sizeof *at);
    at->in_request = 1;
    at->is_post = byte == 'P';
  }
  if (at->in_length && byte >= '0' && byte <= '9') at->length = at->length * 10 + (unsigned long)(byte - '0');
  else if (byte != ' ') at->in_length = 0;
  at->name_at = lower == length_name[at->name_at] ? at->name_at + 1 : byte == '\r';
  if (at->name_at == sizeof length_name - 1) {
    at->in_length = 1;
    at->name_at = 0;
  }
  at->end_at = byte == head_end[at->end_at] ? at->end_at + 1 : byte == '\r';
  return at->end_at == 4;
}

/* False when the connection must be closed. */
static int take(int fd, const char *data, ssize_t size) {
  struct connection *at = &connections[fd];
  for (ssize_t i = 0; i < size;) {
    if (at->body_left > 0) {
      unsigned long part = at->body_left < (unsigned long)(size - i) ? at->body_left : (unsigned long)(size - i);
      at->body_left -= part;
      i += (ssize_t)part;
    } else if (head_byte(at, data[i++])) at->body_left = at->length;
    else continue;
    if (at->body_left > 0) continue;
    at->in_request = 0;
    if (!answer(fd, at->is_post)) return 0;
  }
  return 1;
}

static void answer_count(int fd) {
  char body[32], head[128];
  int length = snprintf(body, sizeof body, "%llu", requests);
  int size = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", length, body);
  if (write(fd, head, (size_t)size) < 0) close(fd);
}

static void serve(int fd) {
  static char data[READ_MAX];
  ssize_t size = read(fd, data, sizeof data);
  if (size < 0 && errno == EAGAIN) return;
  if (size > 11 && memcmp(data, "GET /count ", 11) == 0) answer_count(fd);
  else if (size <= 0 || !take(fd, data, size)) close(fd);
}

int main(void) {
  signal(SIGPIPE, SIG_IGN);
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);

  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int one = 1;
  if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 4096) < 0) return 1;
  getsockname(listener, (struct sockaddr *)&address, &length);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);

  int poll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[EVENTS_MAX];
  epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    int ready = epoll_wait(poll, events, EVENTS_MAX, -1);
    for (int i = 0; i < ready; i++) {
      if (events[i].data.fd != listener) {
        serve(events[i].data.fd);
        continue;
      }
      int fd;
      while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        if (fd >= FILES_MAX) {
          close(fd);
          continue;
        }
        memset(&connections[fd], 0, sizeof connections[fd]);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        event.events = EPOLLIN;
        event.data.fd = fd;
        epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
      }
    }
  }
}
