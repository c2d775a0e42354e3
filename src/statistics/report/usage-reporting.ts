import type { Clock, Timer } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { OutboundHttp } from '../../kernel/outbound/index.ts';
import type { UsageReport } from './usage-report.ts';

export interface UsageReportingDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly http: Pick<OutboundHttp, 'fetch'>;
  readonly report: UsageReport;
  /** Writes the counts that are in memory only. */
  readonly flush: () => Promise<unknown>;
  /** The option `report_stats_endpoint`. */
  readonly endpoint: string;
}

/** Milliseconds until the first report. Source: interface document, "report_stats". */
const firstDelay = 300_000;

/** Milliseconds between two reports. Source: interface document, "report_stats". */
const interval = 3 * 3_600_000;

/** Timeout of a request in milliseconds. */
const requestTimeout = 30_000;

/** Sends usage reports. A report that cannot be sent is not repeated. */
export class UsageReporting {
  readonly #deps: UsageReportingDeps;
  readonly #stopping = new AbortController();
  #timer: Timer | undefined;
  #sending: Promise<void> = Promise.resolve();

  constructor(deps: UsageReportingDeps) {
    this.#deps = deps;
    this.#schedule(firstDelay);
  }

  /** Sends no more reports: aborts the request in flight, and waits for its end. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#stopping.abort();
    await this.#sending;
  }

  #schedule(delay: number): void {
    this.#timer = this.#deps.clock.setTimer(delay, () => {
      this.#schedule(interval);
      this.#sending = this.#sending.then(() => this.#send());
    });
  }

  async #send(): Promise<void> {
    const { http, report, endpoint, flush, log } = this.#deps;
    try {
      await flush();
      const body = JSON.stringify(await report.make());
      const { status } = await http.fetch(new URL(endpoint), {
        method: 'PUT',
        headers: { 'content-type': 'application/json' },
        body,
        timeout: requestTimeout,
        maxBody: 65_536,
        signal: this.#stopping.signal,
      });
      if (status >= 300)
        log.warn({ status, endpoint }, 'The service for usage statistics did not accept the report');
      else log.info({ endpoint }, 'Reported usage statistics');
    } catch (error) {
      if (!this.#stopping.signal.aborted)
        log.warn({ err: error, endpoint }, 'Failed to report usage statistics');
    }
  }
}
