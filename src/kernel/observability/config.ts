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
import { readJaegerConfig } from './jaeger-config.ts';
import { parseDsn } from './sentry-dsn.ts';

const sentry = object({
  dsn: option(nullable(string()), {
    description:
      'The address, `https://KEY@HOST/PROJECT`, of a project in Sentry or a compatible service, to which unexpected errors are reported. Null reports none.',
    default: null,
    secret: true,
  }),
  environment: option(nullable(string()), {
    description: 'The name under which reports of this server are filed.',
    default: null,
  }),
});

const opentracing = object({
  enabled: option(boolean(), {
    description: 'Records traces and sends them to a collector by OTLP over HTTP, which Jaeger understands.',
    default: false,
  }),
  otlp_endpoint: option(nullable(httpUrl()), {
    description:
      'The URL of the collector. Null means `http://HOST:4318/v1/traces`, with the `local_agent.reporting_host` of `jaeger_config` or `localhost`.',
    default: null,
  }),
  homeserver_whitelist: option(list(regularExpression()), {
    description:
      'Servers with which trace ids are exchanged: regular expressions that are matched from the beginning of server names. `example\\.org` therefore also matches `example.org.example.com`; `example\\.org$` does not. An empty list matches none.',
    default: [],
  }),
  force_tracing_for_users: option(list(userId()), {
    description: 'Users whose requests are always traced, regardless of sampling.',
    default: [],
  }),
  jaeger_config: option(freeObject(), {
    description:
      "Settings of Jaeger's clients: `enabled`, `service_name` (by default the server name), `sampler` (`type` `const`, `probabilistic` or `ratelimiting` with `param`; by default one of 1,000 traces is recorded), `logging`, `local_agent.reporting_host`, `tags`, `reporter_batch_size`, `reporter_queue_size`, `reporter_flush_interval`, `max_tag_value_length`, `trace_id_header`. Others have no effect.",
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
      description:
        'A label that groups related servers: in usage statistics, and as `server_context` in log lines, traces and error reports.',
      default: null,
    }),
    sentry: option(sentry, {
      description:
        'Reports unexpected errors to a Sentry service. Reports are stripped of ids, addresses, tokens and quoted texts, but may still contain sensitive information.',
    }),
    opentracing: option(opentracing, {
      description: 'Records traces of requests within the server and across servers.',
    }),
  },
  rules: [
    ({ sentry: { dsn } }, view) => {
      if (dsn === null || parseDsn(dsn)) return;
      view.error('sentry.dsn', 'is not the address of a Sentry project: https://KEY@HOST/PROJECT is needed');
    },
    ({ opentracing: { jaeger_config: config } }, view) => {
      for (const { path, message, isError } of readJaegerConfig(config).problems) {
        if (isError) view.error(`opentracing.jaeger_config.${path}`, message);
        else view.notice(`opentracing.jaeger_config.${path}`, message);
      }
    },
  ],
});
