import { type Logger, readJaegerConfig } from '../kernel/observability/index.ts';
import { ownSoftware } from '../kernel/outbound/index.ts';
import type { Randomness } from '../kernel/randomness.ts';
import type { Tracing } from '../kernel/tracing/index.ts';
import { type OutboundDeps, openHttpToConfiguredServers } from './http-to-configured-servers.ts';
import type { Shutdown } from './shutdown.ts';

/** Port of collectors for traces. Source: OpenTelemetry protocol, "OTLP/HTTP". */
const otlpPort = 4318;

/** Path of collectors for traces. Source: OpenTelemetry protocol, "OTLP/HTTP". */
const otlpPath = '/v1/traces';

interface TracingDeps extends OutboundDeps {
  readonly randomness: Randomness;
  readonly serverName: string;
  namedLog(name: string): Logger;
}

/**
 * Starts to record traces. Returns `undefined`, and loads no code, unless `opentracing.enabled` is on and
 * `jaeger_config` does not disable tracing.
 */
export async function startTracing(deps: TracingDeps, shutdown: Shutdown): Promise<Tracing | undefined> {
  const { configuration, clock, randomness, serverName } = deps;
  const { opentracing, server_context: context } = configuration.observability;
  const { settings } = readJaegerConfig(opentracing.jaeger_config);
  if (!opentracing.enabled || !settings.isEnabled) return undefined;
  const { samplerOf, SpanExporter, Tracer, Tracing } = await import('../kernel/tracing/index.ts');
  const http = openHttpToConfiguredServers(deps, 'collector_connection_pools', { maxPools: 1 });
  const { version } = ownSoftware();
  const exporter = new SpanExporter({
    endpoint: new URL(opentracing.otlp_endpoint ?? `http://${settings.host}:${otlpPort}${otlpPath}`),
    resource: {
      version,
      attributes: {
        'service.name': settings.serviceName ?? serverName,
        'service.version': version,
        ...(context !== null && { server_context: context }),
        ...settings.tags,
      },
      maxValueLength: settings.maxValueLength,
    },
    settings,
    http,
    clock,
    log: deps.namedLog('tracing'),
  });
  shutdown.add('traces', async () => {
    await exporter.close();
    await http.close();
  });
  const sampler = samplerOf(settings.sampler, clock, randomness);
  const tracer = new Tracer({ sampler, clock, randomness, ended: (spans) => exporter.add(spans) });
  return new Tracing(tracer, {
    whitelist: opentracing.homeserver_whitelist,
    forcedUsers: opentracing.force_tracing_for_users,
    jaegerHeader: settings.header,
  });
}
