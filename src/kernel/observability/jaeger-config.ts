/** Decides which traces are recorded. */
export type SamplerSettings =
  | { readonly type: 'const'; readonly records: boolean }
  | { readonly type: 'probabilistic'; readonly probability: number }
  | { readonly type: 'ratelimiting'; readonly perSecond: number };

/** Settings of the tracing client, with the defaults of Jaeger's client for Python. Times in milliseconds. */
export interface JaegerSettings {
  readonly isEnabled: boolean;
  /** Name of the service; `undefined` where the configuration has none. */
  readonly serviceName: string | undefined;
  readonly sampler: SamplerSettings;
  /** Whether each recorded trace is logged. */
  readonly logging: boolean;
  /** Host of the collector where `otlp_endpoint` is null. */
  readonly host: string;
  /** Attributes of all spans. */
  readonly tags: Readonly<Record<string, string>>;
  readonly batchSize: number;
  readonly queueSize: number;
  readonly flushInterval: number;
  /** Maximum characters of an attribute. */
  readonly maxValueLength: number;
  /** Name of the header with the trace context in Jaeger's format. */
  readonly header: string;
}

/** A member of `jaeger_config` that is wrong, or that has no effect. */
export interface JaegerProblem {
  /** Path below `jaeger_config`. */
  readonly path: string;
  readonly message: string;
  readonly isError: boolean;
}

type Mapping = Readonly<Record<string, unknown>>;

const isMapping = (value: unknown): value is Mapping =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Names of the members of `jaeger_config` that this server reads. */
const knownMembers: ReadonlySet<string> = new Set([
  'enabled',
  'service_name',
  'sampler',
  'logging',
  'local_agent',
  'tags',
  'reporter_batch_size',
  'reporter_queue_size',
  'reporter_flush_interval',
  'max_tag_value_length',
  'trace_id_header',
]);

/** Share of the traces that Jaeger's client records by default. */
const defaultProbability = 0.001;

/**
 * Reads `jaeger_config`, which has the format of the configuration of Jaeger's clients.
 * Source: jaeger-client-python, `config.py`.
 */
export function readJaegerConfig(config: Mapping): {
  readonly settings: JaegerSettings;
  readonly problems: readonly JaegerProblem[];
} {
  const problems: JaegerProblem[] = [];
  const wrong = (path: string, needed: string) =>
    void problems.push({ path, message: `${needed} is needed`, isError: true });
  const useless = (path: string, reason: string) =>
    void problems.push({ path, message: `has no effect: ${reason}`, isError: false });

  const text = (path: string, value: unknown) => {
    if (value === undefined || value === null) return undefined;
    if (typeof value === 'string' && value !== '') return value;
    return wrong(path, 'a text');
  };
  const amount = (path: string, value: unknown, fallback: number, maximum = 1_000_000) => {
    if (value === undefined || value === null) return fallback;
    const number = typeof value === 'boolean' ? Number(value) : value;
    if (typeof number === 'number' && number >= 0 && number <= maximum) return number;
    wrong(path, `a number from 0 to ${maximum}`);
    return fallback;
  };
  const part = (path: string): Mapping => {
    const value = config[path] ?? {};
    if (isMapping(value)) return value;
    wrong(path, 'a mapping');
    return {};
  };

  const readSampler = (): SamplerSettings => {
    const { type, param } = part('sampler');
    const probabilistic = (fallback: number) =>
      ({ type: 'probabilistic', probability: amount('sampler.param', param, fallback, 1) }) as const;
    if (type === 'const') return { type, records: amount('sampler.param', param, 1) > 0 };
    if (type === 'probabilistic') return probabilistic(defaultProbability);
    if (type === 'ratelimiting') return { type, perSecond: amount('sampler.param', param, 1) };
    if (type === 'remote')
      useless(
        'sampler.type',
        'this server does not request the sampling rate from a collector; sampler.param is the probability',
      );
    else if (type !== undefined && type !== null)
      wrong('sampler.type', 'one of const, probabilistic, ratelimiting, remote');
    return probabilistic(defaultProbability);
  };

  for (const name of Object.keys(config)) {
    if (!knownMembers.has(name)) useless(name, 'traces are sent by OTLP over HTTP');
  }
  const agent = part('local_agent');
  for (const name of ['reporting_port', 'sampling_port']) {
    if (agent[name] !== undefined)
      useless(`local_agent.${name}`, 'traces are sent to port 4318, or to opentracing.otlp_endpoint');
  }
  const settings: JaegerSettings = {
    isEnabled: config['enabled'] !== false,
    serviceName: text('service_name', config['service_name']),
    sampler: readSampler(),
    logging: config['logging'] === true,
    host: text('local_agent.reporting_host', agent['reporting_host']) ?? 'localhost',
    tags: Object.fromEntries(Object.entries(part('tags')).map(([name, value]) => [name, String(value)])),
    batchSize: Math.max(1, amount('reporter_batch_size', config['reporter_batch_size'], 100)),
    queueSize: Math.max(1, amount('reporter_queue_size', config['reporter_queue_size'], 2_000)),
    flushInterval: 1000 * amount('reporter_flush_interval', config['reporter_flush_interval'], 1),
    maxValueLength: amount('max_tag_value_length', config['max_tag_value_length'], 1_024),
    header: (text('trace_id_header', config['trace_id_header']) ?? 'uber-trace-id').toLowerCase(),
  };
  return { settings, problems };
}
