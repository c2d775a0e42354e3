import type { Clock, Timer } from '../clock.ts';
import type { JaegerSettings, Logger } from '../observability/index.ts';
import type { OutboundHttp } from '../outbound/index.ts';
import { otlpRequest, type TraceResource } from './otlp.ts';
import type { Span } from './span.ts';

export interface SpanExporterDeps {
  /** The URL at which an OpenTelemetry collector receives traces. */
  readonly endpoint: URL;
  readonly resource: TraceResource;
  readonly settings: Pick<JaegerSettings, 'batchSize' | 'queueSize' | 'flushInterval' | 'logging'>;
  readonly http: Pick<OutboundHttp, 'fetch'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Timeout of a request to the collector, in milliseconds. */
const timeout = 10_000;

/** Milliseconds that `close` waits for the collector. */
const closeTimeout = 3_000;

/** Sends spans to a collector, in batches and one request at a time. Spans that do not fit into the queue are dropped. */
export class SpanExporter {
  readonly #deps: SpanExporterDeps;
  readonly #waiting: Span[] = [];
  readonly #stopping = new AbortController();
  #timer: Timer | undefined;
  #sending: Promise<void> | undefined;
  #isFailing = false;
  #lost = 0;

  constructor(deps: SpanExporterDeps) {
    this.#deps = deps;
  }

  /** Queues spans that have ended. */
  add(spans: readonly Span[]): void {
    const { settings, clock, log } = this.#deps;
    for (const span of spans) {
      if (this.#waiting.length < settings.queueSize) this.#waiting.push(span);
      else this.#lost += 1;
      if (settings.logging) log.info({ trace: span.trace.traceId, span: span.name }, 'Recorded a span');
    }
    if (this.#waiting.length >= settings.batchSize) this.#send();
    else this.#timer ??= clock.setTimer(settings.flushInterval, () => this.#send());
  }

  /**
   * Waits for a running request, sends the queued spans in at most one more request, and accepts no further spans. Ends after
   * `closeTimeout` at the latest.
   */
  async close(): Promise<void> {
    const deadline = this.#deps.clock.setTimer(closeTimeout, () => this.#stopping.abort());
    await this.#sending;
    this.#send();
    await this.#sending;
    deadline.cancel();
    this.#stopping.abort();
    this.#timer?.cancel();
  }

  #send(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#sending || this.#waiting.length === 0 || this.#stopping.signal.aborted) return;
    this.#sending = this.#request(this.#waiting.splice(0, this.#deps.settings.batchSize)).then(() => {
      this.#sending = undefined;
      if (this.#waiting.length > 0) this.add([]);
    });
  }

  /** Sends a batch once. When the request fails, the spans are dropped. */
  async #request(spans: readonly Span[]): Promise<void> {
    const { endpoint, resource, http, log } = this.#deps;
    let problem: string | undefined;
    try {
      const { status } = await http.fetch(endpoint, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: otlpRequest(spans, resource),
        timeout,
        signal: this.#stopping.signal,
        maxBody: 64 * 1024,
      });
      if (status >= 300) problem = `status ${status}`;
    } catch (error) {
      problem = error instanceof Error ? error.message : String(error);
    }
    if (problem === undefined) {
      if (this.#lost > 0) log.warn({ lost: this.#lost }, 'Spans of traces were lost');
      this.#lost = 0;
      this.#isFailing = false;
      return;
    }
    this.#lost += spans.length;
    if (!this.#isFailing)
      log.warn(
        { problem, endpoint: endpoint.origin + endpoint.pathname },
        'Traces could not be sent to the collector',
      );
    this.#isFailing = true;
  }
}
