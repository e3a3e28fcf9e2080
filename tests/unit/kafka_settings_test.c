/* The variables that name the broker: each as the property that librdkafka knows, and no other. */
#include "worker/connector/kafka_settings.h"

#include <check.h>
#include <librdkafka/rdkafka.h>
#include <stdlib.h>
#include <string.h>

static const char *last(const struct kafka_settings *settings, const char *property)
{
    const char *found = NULL;

    for (size_t i = 0; i < settings->count; i++) {
        found = strcmp(settings->list[i].property, property) == 0 ? settings->list[i].value : found;
    }
    return found;
}

START_TEST(the_default_is_this_machine)
{
    char *environment[] = {"PATH=/bin", "PICOMQ_CONNECTORS_SINK_ORDERS_NAME=x",
                           "PICOMQ_CONNECTORS_KAFKA__BOOTSTRAP_SERVERS=", NULL};
    struct kafka_settings settings;
    struct error error;

    ck_assert_int_eq(kafka_settings_read(environment, &settings, &error), 0);
    ck_assert_uint_eq(settings.count, 1);
    ck_assert_str_eq(last(&settings, "bootstrap.servers"), "localhost:9092");
    kafka_settings_free(&settings);
}
END_TEST

START_TEST(every_variable_is_a_property)
{
    char *environment[] = {"PICOMQ_CONNECTORS_KAFKA__BOOTSTRAP_SERVERS=a:1,b:2",
                           "picomq_connectors_kafka__security_protocol=SASL_Ssl",
                           "PICOMQ_CONNECTORS_KAFKA__SASL__MECHANISM=PLAIN",
                           "PICOMQ_CONNECTORS_KAFKA__SASL__USERNAME=Me",
                           "PICOMQ_CONNECTORS_KAFKA__SASL__PASSWORD=Se=cret",
                           "PICOMQ_CONNECTORS_KAFKA__TLS__CA_FILE=/ca.pem",
                           "PICOMQ_CONNECTORS_KAFKA__TLS__CERT_FILE=/cert.pem",
                           "PICOMQ_CONNECTORS_KAFKA__TLS__KEY_FILE=/key.pem",
                           "PICOMQ_CONNECTORS_KAFKA__TLS__KEY_PASSWORD=x",
                           "PICOMQ_CONNECTORS_KAFKA__TLS__VERIFY=false",
                           NULL};
    struct kafka_settings settings;
    struct error error;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();

    ck_assert_int_eq(kafka_settings_read(environment, &settings, &error), 0);
    ck_assert_str_eq(last(&settings, "bootstrap.servers"), "a:1,b:2");
    ck_assert_str_eq(last(&settings, "security.protocol"), "sasl_ssl");
    ck_assert_str_eq(last(&settings, "sasl.username"), "Me");
    ck_assert_str_eq(last(&settings, "sasl.password"), "Se=cret");
    for (size_t i = 0; i < settings.count; i++) {
        char why[256];
        ck_assert_msg(rd_kafka_conf_set(conf, settings.list[i].property, settings.list[i].value, why, sizeof why) ==
                          RD_KAFKA_CONF_OK,
                      "%s", why);
    }
    rd_kafka_conf_destroy(conf);
    kafka_settings_free(&settings);
}
END_TEST

START_TEST(an_unknown_variable_is_refused_and_shows_no_value)
{
    char *environment[] = {"PICOMQ_CONNECTORS_KAFKA__SASL__PASWORD=secret", NULL};
    struct kafka_settings settings;
    struct error error;

    ck_assert_int_eq(kafka_settings_read(environment, &settings, &error), QS_ERROR_INPUT);
    ck_assert_ptr_nonnull(strstr(error.message, "did you mean PICOMQ_CONNECTORS_KAFKA__SASL__PASSWORD?"));
    ck_assert_ptr_null(strstr(error.message, "secret"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kafka_settings");
    TCase *cases = tcase_create("kafka_settings");

    tcase_add_test(cases, the_default_is_this_machine);
    tcase_add_test(cases, every_variable_is_a_property);
    tcase_add_test(cases, an_unknown_variable_is_refused_and_shows_no_value);
    suite_add_tcase(suite, cases);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
