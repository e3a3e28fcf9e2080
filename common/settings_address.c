/*
 * Settings that are addresses (spec 3.1): the broker's URL, the bucket's endpoint, where to listen.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/memory.h"
#include "common/settings_parse.h"
#include "common/text.h"

#define PORT_MAX 65535

char *settings_public_url(const char *url)
{
    const char *scheme = strstr(url, "://");
    const char *host = scheme != NULL ? scheme + 3 : url;
    const char *at = memchr(host, '@', strcspn(host, "/"));

    return memory_format("%.*s%s", (int)(host - url), url, at != NULL ? at + 1 : host);
}

bool settings_at_amazon(const struct settings *settings)
{
    return text_ends_with(settings->endpoint, ".amazonaws.com") ||
           text_ends_with(settings->endpoint, ".amazonaws.com.cn");
}

/* What isn't an address may still have a password in it, anywhere before the last @. */
static int refuse_address(const struct setting_row *row, const char *text, struct error *error)
{
    const char *at = strrchr(text, '@');

    return setting_refuse(row, at != NULL ? at + 1 : text, error);
}

static bool is_ipv6(const char *text, size_t size)
{
    char address[INET6_ADDRSTRLEN];
    struct in6_addr parsed;

    if (size >= sizeof address) {
        return false;
    }
    memcpy(address, text, size);
    address[size] = '\0';
    return inet_pton(AF_INET6, address, &parsed) == 1;
}

/* The bytes of the host at text, brackets and all; 0 where there is none that is well formed. */
static size_t host_size(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

    if (text[0] == '[') {
        const char *end = strchr(text, ']');
        return end != NULL && is_ipv6(text + 1, (size_t)(end - text - 1)) ? (size_t)(end + 1 - text) : 0;
    }
    return strspn(text, letters);
}

/* The port at text, which ends there; -1 where it is none. */
static int parse_port(const char *text, size_t size)
{
    int port = 0;

    if (size == 0) {
        return -1;
    }
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return -1;
        }
        port = port * 10 + (text[i] - '0');
        if (port > PORT_MAX) {
            return -1;
        }
    }
    return port;
}

/* The bytes of `host[:port]` at text; 0 where it isn't that up to a slash or the end. */
static size_t authority_size(const char *text)
{
    size_t size = host_size(text);

    if (size > 0 && text[size] == ':') {
        size_t digits = strcspn(text + size + 1, "/");
        if (parse_port(text + size + 1, digits) <= 0) {
            return 0;
        }
        size += 1 + digits;
    }
    return text[size] == '\0' || text[size] == '/' ? size : 0;
}

/* The bytes of `http://` or `https://` at text, 0 for anything else. */
static size_t scheme_size(const char *text)
{
    if (strncasecmp(text, "http://", 7) == 0) {
        return 7;
    }
    return strncasecmp(text, "https://", 8) == 0 ? 8 : 0;
}

/* A copy without slashes at its end, and with its scheme in small letters: nobody has to compare it twice. */
static char *tidy_url(const char *text, size_t scheme)
{
    size_t size = strlen(text);

    while (size > scheme && text[size - 1] == '/') {
        size--;
    }
    char *url = memory_copy(text, size);
    for (size_t i = 0; i < scheme; i++) {
        if (url[i] >= 'A' && url[i] <= 'Z') {
            url[i] = (char)(url[i] - 'A' + 'a');
        }
    }
    return url;
}

int take_url(const struct setting_row *row, const char *text, struct settings *settings, struct error *error)
{
    size_t scheme = scheme_size(text);
    const char *host = text + scheme;
    const char *at = memchr(host, '@', strcspn(host, "/"));

    if (at != NULL) {
        host = at + 1;
    }
    if (scheme == 0 || authority_size(host) == 0 || strpbrk(text, "?# \t") != NULL) {
        return refuse_address(row, text, error);
    }
    free(settings->queen_url);
    settings->queen_url = tidy_url(text, scheme);
    return 0;
}

static int take_directory(const struct setting_row *row, const char *text, struct settings *settings,
                          struct error *error)
{
    const size_t scheme = strlen("file://");
    char *url = tidy_url(text, scheme);

    if (url[scheme] != '/') {
        free(url);
        return refuse_address(row, text, error);
    }
    settings->endpoint = url;
    settings->file_root = memory_copy_text(url + scheme);
    return 0;
}

int take_endpoint(const struct setting_row *row, const char *text, struct settings *settings, struct error *error)
{
    if (strncasecmp(text, "file:", 5) == 0) {
        return strncasecmp(text, "file://", 7) == 0 ? take_directory(row, text, settings, error)
                                                    : refuse_address(row, text, error);
    }
    size_t scheme = scheme_size(text);
    size_t size = scheme > 0 ? authority_size(text + scheme) : 0;

    if (size == 0) {
        return refuse_address(row, text, error);
    }
    const char *path = text + scheme + size;
    if (path[strspn(path, "/")] != '\0') {
        struct setting_row told = *row;
        told.expected = "scheme://host[:port] without a path (keys begin with QUEEN_S3_PREFIX: put the path there)";
        return refuse_address(&told, text, error);
    }
    settings->endpoint = tidy_url(text, scheme);
    return 0;
}

int take_listen(const struct setting_row *row, const char *text, struct settings *settings, struct error *error)
{
    size_t size = host_size(text);
    int port = size > 0 && text[size] == ':' ? parse_port(text + size + 1, strlen(text + size + 1)) : -1;

    if (port < 0) {
        return refuse_address(row, text, error);
    }
    bool brackets = text[0] == '[';
    free(settings->listen_host);
    free(settings->listen_port);
    settings->listen_host = brackets ? memory_copy(text + 1, size - 2) : memory_copy(text, size);
    settings->listen_port = memory_format("%d", port);
    return 0;
}
