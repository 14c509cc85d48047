/*
 * The target of the benchmark: the cheapest HTTP/1.1 server that is still one. One thread, epoll,
 * keep-alive, an 11-byte answer, and a count of requests that GET /count reads.
 *
 * A request is known by its empty line, found also when it is split over reads; bodies are not
 * expected. Prints its port and serves until it is killed.
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

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 11\r\n\r\nHello World";

/* How much of "\r\n\r\n" the end of the last read was, per connection. */
static unsigned char matched[FILES_MAX];
static unsigned long long requests;

static int count_ends(int fd, const char *data, ssize_t size) {
  static const char end[] = "\r\n\r\n";
  unsigned char at = matched[fd];
  int found = 0;
  for (ssize_t i = 0; i < size; i++) {
    if (data[i] == end[at]) at++;
    else at = data[i] == '\r';
    if (at == 4) {
      found++;
      at = 0;
    }
  }
  matched[fd] = at;
  return found;
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
  if (size <= 0) {
    close(fd);
    return;
  }
  if (size > 11 && memcmp(data, "GET /count ", 11) == 0) {
    answer_count(fd);
    return;
  }
  for (int found = count_ends(fd, data, size); found > 0; found--) {
    requests++;
    /* Answers are far smaller than a socket's buffer; a client that does not read loses its connection. */
    if (write(fd, answer, sizeof answer - 1) != (ssize_t)sizeof answer - 1) {
      close(fd);
      return;
    }
  }
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
        matched[fd] = 0;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        event.events = EPOLLIN;
        event.data.fd = fd;
        epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
      }
    }
  }
}
