import type {
  Counter,
  CounterConfiguration,
  Gauge,
  GaugeConfiguration,
  Histogram,
  HistogramConfiguration,
} from 'prom-client';

/**
 * What the server counts, in the text format of Prometheus. Names begin with `server_`. Where nobody collects metrics
 * there is none of these, and nothing is counted.
 */
export interface Metrics {
  counter<L extends string>(options: CounterConfiguration<L>): Counter<L>;
  gauge<L extends string>(options: GaugeConfiguration<L>): Gauge<L>;
  histogram<L extends string>(options: HistogramConfiguration<L>): Histogram<L>;
  /** Everything, as Prometheus reads it. */
  render(): Promise<string>;
  readonly contentType: string;
}

/** The library is loaded here and not before, because few servers need it. */
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
