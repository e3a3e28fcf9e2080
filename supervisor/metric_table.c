/* See metric_table.h. */
#include "supervisor/metric_table.h"

const struct metric_row metric_table[METRIC_COUNT] = {
    [METRIC_LAG] =
        {
            .name = "queen_s3_lag_seconds",
            .type = "gauge",
            .labels = {"queue"},
            .help = "How far a queue's lake is behind the broker's clock.",
            .meaning =
                "The number to alert on. It is the broker's now less the time up to which the queue is through: the "
                "end of its last window, or, where everything readable has been read and nothing waits, the watermark "
                "it was read to. In a healthy sink it moves below QUEEN_S3_MAX_WINDOW_MS plus QUEEN_S3_SAFE_GUARD_MS "
                "and the time that an upload takes: some five and a half minutes at the defaults. It has no sample "
                "until the queue has been read for the first time.",
        },
    [METRIC_SAFE_LAG] =
        {
            .name = "queen_s3_safe_lag_seconds",
            .type = "gauge",
            .help = "This machine's clock less the newest safeTime of the broker.",
            .meaning = "No window closes above safeTime. Where this grows, a transaction on the broker's database has "
                       "been open for as long, or (on a 2.x broker) nothing is written at all; a steady half minute is "
                       "a 1.x broker whose role lacks pg_read_all_stats. It is the one number that compares the "
                       "clocks of two machines: a clock that is wrong shows here, and only here.",
        },
    [METRIC_WINDOWS_COMMITTED] =
        {
            .name = "queen_s3_windows_committed_total",
            .type = "counter",
            .labels = {"queue"},
            .help = "Windows committed.",
            .meaning = "One that stands still is no alarm by itself: an idle queue writes no windows.",
        },
    [METRIC_RECORDS_WRITTEN] =
        {
            .name = "queen_s3_records_written_total",
            .type = "counter",
            .labels = {"queue"},
            .help = "Records in committed windows.",
            .meaning = "Its rate is what the queue's producers send, a window later.",
        },
    [METRIC_BYTES_WRITTEN] =
        {
            .name = "queen_s3_bytes_written_total",
            .type = "counter",
            .labels = {"queue", "format"},
            .help = "Object bytes of committed windows, as stored.",
            .meaning = "What the bucket grows by, compressed, without manifests and checkpoints.",
        },
    [METRIC_RECORDS_LOST] =
        {
            .name = "queen_s3_records_lost_total",
            .type = "counter",
            .labels = {"queue"},
            .help = "Records that retention or deletion took before they were read.",
            .meaning = "The one real loss, and never silent: the ranges stand in the manifest of the window that "
                       "carries them, and in the log. Alert on any increase; what helps is a retention well above "
                       "the longest outage that the sink has to live through.",
        },
    [METRIC_WINDOW_RECORDS] =
        {
            .name = "queen_s3_window_records",
            .type = "histogram",
            .help = "Records of a committed window.",
            .meaning = "Without a queue as label: a histogram a queue would be too many series.",
        },
    [METRIC_WINDOW_BYTES] =
        {
            .name = "queen_s3_window_bytes",
            .type = "histogram",
            .help = "Object bytes of a committed window, as stored.",
            .meaning = "Many small windows make a lake slow to read: a longer QUEEN_S3_MAX_WINDOW_MS makes fewer.",
        },
    [METRIC_BUFFER_BYTES] =
        {
            .name = "queen_s3_buffer_bytes",
            .type = "gauge",
            .help = "Memory that holds records and uploads, of all workers.",
            .meaning = "Close to QUEEN_S3_MEMORY_MB for long: windows close early for lack of room, and are smaller "
                       "than they could be.",
        },
    [METRIC_FETCH_CALLS] =
        {
            .name = "queen_s3_fetch_calls_total",
            .type = "counter",
            .labels = {"queue", "result"},
            .help = "Fetch calls to the broker that named this queue.",
            .meaning = "The result is `ok` or `error`. Errors are retried; a share of them that stays is worth a look "
                       "at the log.",
        },
    [METRIC_PARTITIONS] =
        {
            .name = "queen_s3_discovery_partitions",
            .type = "gauge",
            .labels = {"queue"},
            .help = "Partitions known of a queue.",
            .meaning = "Partitions that are read to their end and have been empty for long are forgotten.",
        },
    [METRIC_REQUESTS] =
        {
            .name = "queen_s3_s3_requests_total",
            .type = "counter",
            .labels = {"op", "code"},
            .help = "Requests to the bucket; code 0: no answer.",
            .meaning = "The operation is `put`, `get`, `head`, `list`, `delete`, `multipart_create`, "
                       "`multipart_part`, `multipart_complete` or `multipart_abort`; the code is the HTTP status. A "
                       "404 of a get or head is ordinary. 403 is a key or a policy, 503 a store that asks for "
                       "patience.",
        },
    [METRIC_PRECONDITION_LOST] =
        {
            .name = "queen_s3_commit_precondition_lost_total",
            .type = "counter",
            .help = "Queues stopped because another instance had them.",
            .meaning = "Two instances mirror one queue: safe, and wasted work. Where it goes on rising, two pools "
                       "have the same list of queues.",
        },
    [METRIC_CHECKPOINT_AGE] =
        {
            .name = "queen_s3_checkpoint_age_windows",
            .type = "gauge",
            .labels = {"queue"},
            .help = "Windows committed since a queue's newest checkpoint.",
            .meaning = "Ordinarily below QUEEN_S3_CHECKPOINT_EVERY. A checkpoint only saves reading: far above it, a "
                       "restart takes longer, and no record is in danger.",
        },
    [METRIC_WORKERS] =
        {
            .name = "queen_s3_workers",
            .type = "gauge",
            .help = "Workers of this pool.",
            .meaning = "QUEEN_S3_WORKERS, or fewer where there are fewer queues.",
        },
    [METRIC_WORKER_UP] =
        {
            .name = "queen_s3_worker_up",
            .type = "gauge",
            .labels = {"worker"},
            .help = "1 while the worker's process is there.",
            .meaning = "0 while it waits for its restart. Its queues lag meanwhile, and lose nothing.",
        },
    [METRIC_WORKER_RESTARTS] =
        {
            .name = "queen_s3_worker_restarts_total",
            .type = "counter",
            .labels = {"worker"},
            .help = "Restarts of the worker after it died.",
            .meaning = "Alert on more than a few in an hour: why the last one died is in the log.",
        },
    [METRIC_WORKER_BACKOFF] =
        {
            .name = "queen_s3_worker_backoff_seconds",
            .type = "gauge",
            .labels = {"worker"},
            .help = "The wait before the worker's restart, 0 while it needs none.",
            .meaning = "It doubles from one second to thirty; an hour of running well forgets it.",
        },
    [METRIC_WORKER_RESIDENT] =
        {
            .name = "queen_s3_worker_resident_bytes",
            .type = "gauge",
            .labels = {"worker"},
            .help = "Resident memory of the worker.",
            .meaning = "Pages that workers share are in each of them: the sum is more than the pool takes.",
        },
    [METRIC_WORKER_CPU] =
        {
            .name = "queen_s3_worker_cpu_seconds_total",
            .type = "counter",
            .labels = {"worker"},
            .help = "Processor time of the worker, over all its restarts.",
            .meaning = "Most of it is compression. A rate near that of all processors: give it more, or a faster "
                       "QUEEN_S3_COMPRESSION.",
        },
    [METRIC_CONNECTORS] =
        {
            .name = "picomq_connectors_sinks_total",
            .type = "gauge",
            .help = "Sink connectors that were found, broken ones too.",
            .meaning = "Those that are not enabled do not count.",
        },
    [METRIC_CONNECTORS_RUNNING] =
        {
            .name = "picomq_connectors_sinks_running",
            .type = "gauge",
            .help = "Sink connectors whose worker runs.",
            .meaning = "Alert where it stays below picomq_connectors_sinks_total: a definition is broken, or a "
                       "connector refused to go on, and the log says which and why.",
        },
    [METRIC_CONNECTOR_CONSUMED] =
        {
            .name = "picomq_connector_messages_consumed_total",
            .type = "counter",
            .labels = {"connector_key", "connector_type"},
            .help = "Records that came from the log.",
            .meaning = "A record that is read again after a restart or a rebalance counts again.",
        },
    [METRIC_CONNECTOR_PROCESSED] =
        {
            .name = "picomq_connector_messages_processed_total",
            .type = "counter",
            .labels = {"connector_key", "connector_type"},
            .help = "Records in files that went up.",
            .meaning = "It runs behind what was consumed by what the open files hold.",
        },
    [METRIC_CONNECTOR_FILTERED] =
        {
            .name = "picomq_connector_messages_filtered_total",
            .type = "counter",
            .labels = {"connector_key", "connector_type"},
            .help = "Records passed over because on_undecodable is skip.",
            .meaning = "Each is in the log with its offset, of a burst the first.",
        },
    [METRIC_CONNECTOR_ERRORS] =
        {
            .name = "picomq_connector_errors_total",
            .type = "counter",
            .labels = {"connector_key", "connector_type"},
            .help = "Uploads, commits and connections that failed, and were done again.",
            .meaning = "Nothing is lost by them. A steady rate is a bucket or a broker that does not answer.",
        },
    [METRIC_BUILD] =
        {
            .name = "queen_s3_build_info",
            .type = "gauge",
            .labels = {"version"},
            .help = "1, with the version of the program.",
            .meaning = "To tell from when on another version ran.",
        },
};
