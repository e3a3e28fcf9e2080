/*
 * Credentials that are not in the configuration: the default chain (spec 5.2), in this order, the first source that is
 * set up counts:
 *
 *     environment        AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
 *     web identity       AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN (AWS_ROLE_SESSION_NAME), asked of STS
 *                        (AWS_ENDPOINT_URL_STS)
 *     shared profile     AWS_PROFILE in AWS_SHARED_CREDENTIALS_FILE or ~/.aws/credentials
 *     container          AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or …_FULL_URI, AWS_CONTAINER_AUTHORIZATION_TOKEN or …_FILE
 *     instance metadata  version 2, at AWS_EC2_METADATA_SERVICE_ENDPOINT, unless AWS_EC2_METADATA_DISABLED=true
 *
 * A source that is set up and fails is an error: falling through to another one would write as somebody else.
 *
 * Sources: AWS SDKs and Tools Reference Guide, "Standardized credential providers"; STS API Reference,
 * AssumeRoleWithWebIdentity; Amazon ECS Developer Guide, "Task IAM role"; Amazon EC2 User Guide, "Use IMDS".
 */
#ifndef WORKER_CONNECTOR_CREDENTIALS_H
#define WORKER_CONNECTOR_CREDENTIALS_H

#include <stdint.h>

#include "common/clock.h"
#include "common/error.h"
#include "common/reactor.h"
#include "common/settings.h"

struct sink_credentials {
    char *access_key;
    char *secret_key;
    char *session_token;    /* NULL: none */
    struct wall_ms expires; /* INT64_MAX: never */
};

void sink_credentials_free(struct sink_credentials *credentials);

struct credential_chain;

/* *error is clear where *found holds credentials, which are the callee's to free; else its message names the source. */
typedef void credentials_found(void *argument, const struct error *error, struct sink_credentials *found);

/* The variables are looked up during this call, and no more: a host may change its environment later on, which getenv()
 * must not meet. What files and services say is asked anew in each search. region: of STS. NULL: *error says why. */
struct credential_chain *credential_chain_create(struct reactor *reactor, const char *region, settings_lookup *lookup,
                                                 void *lookup_argument, struct error *error);
/* One search at a time. found() runs later, from the loop, never from within this call. */
void credential_chain_search(struct credential_chain *chain, credentials_found *found, void *argument);
/* Ends a search: its callback does not run. */
void credential_chain_destroy(struct credential_chain *chain);

/* One profile of an INI file's text: 0, QS_ERROR_NOT_FOUND where it isn't there or has no keypair. */
int credentials_read_profile(const char *text, const char *profile, struct sink_credentials *found);
/* `{"AccessKeyId":…,"SecretAccessKey":…,"Token":…,"Expiration":…}`, which is written to. QS_ERROR_BODY. */
int credentials_read_json(char *text, size_t size, struct sink_credentials *found, struct error *error);
/* An AssumeRoleWithWebIdentityResponse. QS_ERROR_BODY. */
int credentials_read_sts(const char *text, size_t size, struct sink_credentials *found, struct error *error);

#endif
