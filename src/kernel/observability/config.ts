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
    description: 'Where errors are reported to. Null reports none.',
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
    description: 'Users whose requests are always traced, whatever the sampling says.',
    default: [],
  }),
  jaeger_config: option(freeObject(), {
    description: 'Settings of the tracing client, handed to it as they are.',
    default: {},
  }),
});

/** Logs, metrics, traces and reports. */
export const observabilitySection = section({
  title: 'Monitoring',
  description: 'Logs, metrics, traces and reports.',
  options: {
    log_config: option(nullable(string({ minLength: 1 })), {
      description:
        'The YAML file that says what is logged where, in the form of the logging configuration of Python (see docs/configuration/logging.md). Null logs to standard output from level `info` on. SIGHUP reads the file again.',
      default: null,
      reloadable: true,
    }),
    enable_metrics: option(boolean(), {
      description: 'Collects measurements and serves them on listeners with `metrics`.',
      default: false,
    }),
    metrics_flags: option(
      object({
        known_servers: option(boolean(), {
          description:
            'Publishes `server_federation_known_servers`, the number of servers this one shares rooms with. Counting them is work on a large server.',
          default: false,
        }),
      }),
      { description: 'Measurements that cost something.' },
    ),
    report_stats: option(boolean(), {
      description: 'Reports usage figures five minutes after the start and every three hours from then on.',
      default: false,
    }),
    report_stats_endpoint: option(httpUrl(), {
      description: 'Where usage figures are sent.',
      default: 'https://matrix.org/report-usage-stats/push',
    }),
    server_context: option(nullable(string()), {
      description: 'A word that groups related servers in usage figures.',
      default: null,
    }),
    sentry: option(sentry, {
      description: 'Reports errors to a Sentry service. Reports may hold sensitive information.',
    }),
    opentracing: option(opentracing, {
      description: 'Records how requests travel through the server and beyond it.',
    }),
  },
});
