import type {
  Counter,
  CounterConfiguration,
  Gauge,
  GaugeConfiguration,
  Histogram,
  HistogramConfiguration,
} from 'prom-client';

/**
 * Registry of metrics in the text format of Prometheus. The names of the server's own metrics begin with `server_`.
 * Without `enable_metrics` there is no registry, and nothing is measured.
 */
export interface Metrics {
  counter<L extends string>(options: CounterConfiguration<L>): Counter<L>;
  gauge<L extends string>(options: GaugeConfiguration<L>): Gauge<L>;
  histogram<L extends string>(options: HistogramConfiguration<L>): Histogram<L>;
  /** Returns all metrics in the text format of Prometheus. */
  render(): Promise<string>;
  readonly contentType: string;
}

/** Creates the registry. Loads the library here, since few servers need it. */
export async function createMetrics(): Promise<Metrics> {
  const { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } = await import('prom-client');
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  return {
    counter: (options) => new Counter({ ...options, registers }),
    gauge: (options) => new Gauge({ ...options, registers }),
    histogram: (options) => new Histogram({ ...options, registers }),
    render: () => registry.metrics(),
    contentType: registry.contentType,
  };
}
