/*
 * See control.h. One epoll descriptor holds the listening socket and the clients, so that the caller's loop watches one
 * thing. A client is in one of two states: its request is being read, or its answer is being written.
 */
#include "supervisor/control.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "common/memory.h"
#include "supervisor/control_socket.h"

#define BACKLOG   16
#define PAUSE_MS  1000 /* where the system gives no more descriptors */
#define DOOR_ID   CONTROL_CLIENTS_MAX
#define EVENT_MAX (CONTROL_CLIENTS_MAX + 1)

struct client {
    int descriptor; /* -1: nobody */
    struct mono_ms deadline;
    char request[CONTROL_REQUEST_MAX];
    size_t request_size;
    char *answer; /* NULL: the request isn't whole yet */
    size_t answer_size;
    size_t sent;
};

struct control {
    struct control_socket made;
    control_answer *answer;
    void *argument;
    int events;
    struct client clients[CONTROL_CLIENTS_MAX];
    size_t client_count;
    bool shut;             /* nobody is let in for now: full, or paused */
    struct mono_ms paused; /* until then */
};

/* ---- the door ---- */

static void watch(struct control *control, int operation, int descriptor, uint32_t events, uint32_t id)
{
    struct epoll_event event = {.events = events, .data = {.u32 = id}};

    (void)epoll_ctl(control->events, operation, descriptor, &event);
}

static void set_shut(struct control *control, bool shut)
{
    if (control->shut != shut) {
        control->shut = shut;
        watch(control, EPOLL_CTL_MOD, control->made.descriptor, shut ? 0 : EPOLLIN, DOOR_ID);
    }
}

static void let_in(struct control *control, int descriptor, struct mono_ms now)
{
    for (uint32_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        if (control->clients[i].descriptor < 0) {
            control->clients[i] = (struct client){.descriptor = descriptor, .deadline = {now.v + CONTROL_CLIENT_MS}};
            control->client_count++;
            watch(control, EPOLL_CTL_ADD, descriptor, EPOLLIN, i);
            return;
        }
    }
}

static void open_door(struct control *control, struct mono_ms now)
{
    while (control->client_count < CONTROL_CLIENTS_MAX) {
        int descriptor = accept4(control->made.descriptor, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (descriptor >= 0) {
            let_in(control, descriptor, now);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            control->paused.v = now.v + PAUSE_MS;
            set_shut(control, true);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
    set_shut(control, true);
}

static void show_out(struct control *control, struct client *client)
{
    (void)close(client->descriptor);
    free(client->answer);
    *client = (struct client){.descriptor = -1};
    control->client_count--;
}

/* ---- one client ---- */

static char *refuse(const char *what)
{
    cJSON *document = cJSON_CreateObject();
    char *printed;
    char *text;

    (void)cJSON_AddStringToObject(document, "error", what);
    printed = cJSON_PrintUnformatted(document);
    text = memory_format("%s", printed != NULL ? printed : "{}");
    cJSON_free(printed);
    cJSON_Delete(document);
    return text;
}

static char *answer_line(struct control *control, struct client *client, size_t size)
{
    char *word = memory_copy(client->request, size > 0 && client->request[size - 1] == '\r' ? size - 1 : size);
    char *document = control->answer(control->argument, word);

    free(word);
    return document != NULL ? document : refuse("no such request; expected status and a line feed");
}

static void begin_answer(struct control *control, struct client *client)
{
    const char *end = memchr(client->request, '\n', client->request_size);
    char *document = end != NULL ? answer_line(control, client, (size_t)(end - client->request))
                                 : refuse("the request has no line feed; expected status and a line feed");

    client->answer = memory_format("%s\n", document);
    client->answer_size = strlen(client->answer);
    free(document);
    watch(control, EPOLL_CTL_MOD, client->descriptor, EPOLLOUT, (uint32_t)(client - control->clients));
}

/* False: it is to go. */
static bool write_answer(struct client *client)
{
    while (client->sent < client->answer_size) {
        ssize_t sent = send(client->descriptor, client->answer + client->sent, client->answer_size - client->sent,
                            MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0) {
            return errno == EAGAIN || errno == EWOULDBLOCK;
        }
        client->sent += (size_t)sent;
    }
    return false;
}

static bool read_request(struct control *control, struct client *client)
{
    size_t room = sizeof client->request - client->request_size;
    ssize_t got = recv(client->descriptor, client->request + client->request_size, room, MSG_DONTWAIT);

    if (got < 0) {
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    }
    if (got == 0 && client->request_size == 0) {
        return false;
    }
    client->request_size += (size_t)got;
    if (got == 0 || client->request_size == sizeof client->request ||
        memchr(client->request, '\n', client->request_size) != NULL) {
        begin_answer(control, client);
        return write_answer(client);
    }
    return true;
}

static void serve(struct control *control, struct client *client)
{
    bool stays = client->answer == NULL ? read_request(control, client) : write_answer(client);

    if (!stays) {
        show_out(control, client);
    }
}

/* ---- the caller's loop ---- */

int control_descriptor(const struct control *control)
{
    return control == NULL ? -1 : control->events;
}

int64_t control_timeout_ms(const struct control *control, struct mono_ms now)
{
    struct mono_ms deadline = {0};
    bool any = false;

    for (size_t i = 0; control != NULL && i < CONTROL_CLIENTS_MAX; i++) {
        if (control->clients[i].descriptor >= 0) {
            clock_sooner(&deadline, &any, control->clients[i].deadline);
        }
    }
    if (control != NULL && control->shut && control->client_count < CONTROL_CLIENTS_MAX) {
        clock_sooner(&deadline, &any, control->paused);
    }
    if (!any) {
        return -1;
    }
    return deadline.v > now.v ? deadline.v - now.v : 0;
}

void control_run(struct control *control, struct mono_ms now)
{
    struct epoll_event events[EVENT_MAX];
    int count = control == NULL ? 0 : epoll_wait(control->events, events, EVENT_MAX, 0);

    for (int i = 0; i < count; i++) {
        if (events[i].data.u32 != DOOR_ID) {
            serve(control, &control->clients[events[i].data.u32]);
        }
    }
    for (int i = 0; i < count; i++) {
        if (events[i].data.u32 == DOOR_ID) {
            open_door(control, now);
        }
    }
    for (size_t i = 0; control != NULL && i < CONTROL_CLIENTS_MAX; i++) {
        if (control->clients[i].descriptor >= 0 && control->clients[i].deadline.v <= now.v) {
            show_out(control, &control->clients[i]);
        }
    }
    if (control != NULL && control->paused.v <= now.v && control->client_count < CONTROL_CLIENTS_MAX) {
        set_shut(control, false);
    }
}

/* ---- begin and end ---- */

static struct control *control_new(const struct control_socket *made, control_answer *answer, void *argument,
                                   struct error *error)
{
    struct control *control = memory_new(1, sizeof *control);

    *control = (struct control){.made = *made, .answer = answer, .argument = argument};
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        control->clients[i].descriptor = -1;
    }
    control->events = epoll_create1(EPOLL_CLOEXEC);
    if (control->events < 0) {
        (void)error_set_errno(error, "epoll");
        control_close(control);
        return NULL;
    }
    watch(control, EPOLL_CTL_ADD, control->made.descriptor, EPOLLIN, DOOR_ID);
    return control;
}

/* The first place whose folder can be written; NULL where there is none. */
static const char *pick(const struct control_places *places)
{
    for (size_t i = 0; i < places->count; i++) {
        char *folder = memory_copy(places->paths[i], (size_t)(strrchr(places->paths[i], '/') - places->paths[i]));
        bool can = access(folder, W_OK | X_OK) == 0;

        free(folder);
        if (can) {
            return places->paths[i];
        }
    }
    return NULL;
}

static void log_nowhere(const struct control_places *places)
{
    if (places->count > 0) {
        log_line(LOG_INFO, NULL,
                 "no control socket: neither the folder of %s nor $XDG_RUNTIME_DIR can be written; QUEEN_S3_CONTROL "
                 "sets a path",
                 places->paths[0]);
    }
}

static int refuse_place(const char *path, struct error *error)
{
    char *why = memory_copy_text(error->message);

    (void)error_set(error, QS_ERROR_INPUT,
                    "QUEEN_S3_CONTROL=%s: %s; expected an absolute path in a folder that can be written, or off", path,
                    why);
    free(why);
    return QS_ERROR_INPUT;
}

int control_open(const struct control_places *places, control_answer *answer, void *argument, struct control **out,
                 struct error *error)
{
    const char *path = places->chosen ? places->paths[0] : pick(places);
    struct control_socket made;
    int code;

    *out = NULL;
    if (path == NULL) {
        log_nowhere(places);
        return 0;
    }
    code = control_socket_make(path, BACKLOG, &made, error);
    if (code > 0) {
        log_line(LOG_WARN, NULL, "no control socket: another pool has %s" CONTROL_LOCK_SUFFIX, path);
        return 0;
    }
    if (code == 0) {
        *out = control_new(&made, answer, argument, error);
    }
    if (*out != NULL) {
        return 0;
    }
    if (places->chosen) {
        return refuse_place(path, error);
    }
    log_line(LOG_WARN, NULL, "no control socket at %s: %s", path, error->message);
    return 0;
}

void control_close(struct control *control)
{
    if (control == NULL) {
        return;
    }
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        if (control->clients[i].descriptor >= 0) {
            show_out(control, &control->clients[i]);
        }
    }
    if (control->events >= 0) {
        (void)close(control->events);
    }
    control_socket_remove(&control->made);
    free(control);
}

const char *control_path(const struct control *control)
{
    return control->made.path;
}
