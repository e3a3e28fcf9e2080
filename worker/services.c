/* A worker's outside: services.h. */
#include "worker/services.h"

#include <string.h>

#include "common/file_store.h"
#include "common/queen_client.h"
#include "common/s3_store.h"

#define BROKER_CONNECTIONS 64

static void observe(void *argument, enum store_operation operation, int code)
{
    struct services *services = argument;
    for (size_t i = 0; i < services->count; i++)
        if (services->counts[i].operation == (int32_t)operation && services->counts[i].code == code) {
            services->counts[i].count++;
            return;
        }
    if (services->count == REPORT_CODES_MAX) {
        services->counts[REPORT_CODES_MAX - 1].count++; /* a gateway that answers with more codes than there are */
        return;
    }
    services->counts[services->count++] = (struct report_request_count){(int32_t)operation, code, 1};
}

static int add_queen(struct services *services, struct reactor *reactor, const struct settings *settings,
                     struct error *error)
{
    struct queen_client_options queen = {.url = settings->queen_url,
                                         .token = settings->queen_token,
                                         .ca_file = settings->queen_ca_file,
                                         .connections_max = BROKER_CONNECTIONS};
    services->queen = queen_client_create(reactor, &queen, error);
    return services->queen != NULL ? 0 : error->code;
}

static int add_store(struct services *services, struct reactor *reactor, const struct settings *settings,
                     struct error *error)
{
    if (settings->file_root != NULL)
        services->store = file_store_create(reactor, settings->file_root, settings->bucket, observe, services, error);
    else
        services->store = s3_store_create(reactor, settings, observe, services, error);
    return services->store != NULL ? 0 : error->code;
}

int services_open_queen(struct services *services, struct reactor *reactor, const struct settings *settings,
                        struct error *error)
{
    *services = (struct services){0};
    return add_queen(services, reactor, settings, error);
}

int services_open_store(struct services *services, struct reactor *reactor, const struct settings *settings,
                        struct error *error)
{
    *services = (struct services){0};
    return add_store(services, reactor, settings, error);
}

int services_open(struct services *services, struct reactor *reactor, const struct settings *settings,
                  struct error *error)
{
    int code = services_open_queen(services, reactor, settings, error);

    if (code == 0)
        code = add_store(services, reactor, settings, error);
    if (code != 0)
        services_close(services);
    return code;
}

void services_close(struct services *services)
{
    if (services->store != NULL)
        services->store->operations->destroy(services->store);
    if (services->queen != NULL)
        queen_client_destroy(services->queen);
    services->store = NULL;
    services->queen = NULL;
}

void services_request_counts(const struct services *services, struct report_worker *report)
{
    report->request_count_used = (uint32_t)services->count;
    memcpy(report->request_counts, services->counts, sizeof report->request_counts);
}
