import {
  boolean,
  freeObject,
  httpUrl,
  list,
  nullable,
  object,
  option,
  regularExpression,
  section,
  string,
  userId,
} from '../config/index.ts';

const sentry = object({
  dsn: option(nullable(string()), {
    description: 'Where errors are reported. Null reports none.',
    default: null,
    secret: true,
  }),
  environment: option(nullable(string()), {
    description: 'The name under which reports of this server are filed.',
    default: null,
  }),
});

const opentracing = object({
  enabled: option(boolean(), { description: 'Records traces.', default: false }),
  homeserver_whitelist: option(list(regularExpression()), {
    description:
      'Servers with which trace ids are exchanged: regular expressions that are matched against server names. An empty list matches none.',
    default: [],
  }),
  force_tracing_for_users: option(list(userId()), {
    description: 'Users whose requests are always traced, regardless of sampling.',
    default: [],
  }),
  jaeger_config: option(freeObject(), {
    description: 'Settings that are passed to the tracing client unchanged.',
    default: {},
  }),
});

/** Options for logs, metrics, traces and error reports. */
export const observabilitySection = section({
  title: 'Monitoring',
  description: 'Logs, metrics, traces and error reports.',
  options: {
    log_config: option(nullable(string({ minLength: 1 })), {
      description:
        "The YAML file that configures what is logged where, in the format of Python's logging configuration (see docs/configuration/logging.md). Null logs to standard output from level `info` on. SIGHUP reads the file again.",
      default: null,
      reloadable: true,
    }),
    enable_metrics: option(boolean(), {
      description: 'Collects metrics and serves them on listeners with `metrics`.',
      default: false,
    }),
    metrics_flags: option(
      object({
        known_servers: option(boolean(), {
          description:
            'Publishes `server_federation_known_servers`, the number of servers that share rooms with this one. Counting them is expensive on a large server.',
          default: false,
        }),
      }),
      { description: 'Metrics that are expensive to collect.' },
    ),
    report_stats: option(boolean(), {
      description: 'Reports usage statistics five minutes after the start and every three hours after that.',
      default: false,
    }),
    report_stats_endpoint: option(httpUrl(), {
      description: 'The URL to which usage statistics are sent.',
      default: 'https://matrix.org/report-usage-stats/push',
    }),
    server_context: option(nullable(string()), {
      description: 'A label that groups related servers in usage statistics.',
      default: null,
    }),
    sentry: option(sentry, {
      description: 'Reports errors to a Sentry service. Reports may contain sensitive information.',
    }),
    opentracing: option(opentracing, {
      description: 'Records traces of requests within the server and across servers.',
    }),
  },
});
