import type { Clock, Timer } from '../clock.ts';
import type { LoggedError, LoggedErrors, Logger, SentryProject } from '../observability/index.ts';
import type { OutboundHttp } from '../outbound/index.ts';
import type { Randomness } from '../randomness.ts';
import { eventOf, type ReportOrigin } from './event.ts';
import { headersFor } from './headers.ts';
import { sendBeforeExit } from './send-before-exit.ts';

export interface ErrorReportsDeps {
  readonly project: SentryProject;
  readonly origin: ReportOrigin;
  readonly http: Pick<OutboundHttp, 'fetch'>;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly log: Logger;
}

/** Times in milliseconds. */
export const reportLimits = {
  /** Maximum number of events that wait to be sent; further events are dropped. */
  maxWaiting: 50,
  /** Maximum number of attempts to send one event. */
  maxAttempts: 3,
  /** Time between two attempts, unless the service requests a different time. */
  backoff: 60_000,
  /** Maximum time between two attempts that the service may request. */
  maxBackoff: 3_600_000,
  timeout: 10_000,
  /** Time that `close` waits until fatal errors are sent. */
  closeTimeout: 3_000,
  /** Time after a report during which the same error is not reported again. */
  repeated: 60_000,
  /** Maximum number of errors that are remembered as reported. */
  maxRemembered: 200,
};

/**
 * Sends logged errors to a service that takes Sentry's envelopes, one at a time. Never throws. Delays no other work;
 * only an exit waits until the last report is sent. While the service fails, a bounded number of events is queued.
 */
export class ErrorReports {
  readonly #deps: ErrorReportsDeps;
  readonly #unsubscribe: () => void;
  readonly #waiting: { readonly envelope: string; readonly isFatal: boolean }[] = [];
  /** Monotonic milliseconds at which an error was reported, by its message and its place in the code. */
  readonly #reportedAt = new Map<string, number>();
  readonly #stopping = new AbortController();
  #sending: Promise<void> | undefined;
  #attempts = 0;
  #pause: Timer | undefined;
  #isFailing = false;
  #isClosing = false;

  constructor(deps: ErrorReportsDeps, errors: LoggedErrors) {
    this.#deps = deps;
    this.#unsubscribe = errors.subscribe((logged) => this.#take(logged));
  }

  /**
   * Accepts no more errors. While a fatal error is queued, sends the queue for at most
   * `reportLimits.closeTimeout`; otherwise aborts the request in progress.
   */
  async close(): Promise<void> {
    this.#unsubscribe();
    this.#pause?.cancel();
    this.#pause = undefined;
    this.#isClosing = true;
    let deadline: Timer | undefined;
    if (this.#waiting.some(({ isFatal }) => isFatal))
      deadline = this.#deps.clock.setTimer(reportLimits.closeTimeout, () => this.#stopping.abort());
    else this.#stopping.abort();
    this.#sendNext();
    while (this.#sending) await this.#sending;
    deadline?.cancel();
    this.#stopping.abort();
  }

  #take(logged: LoggedError): void {
    try {
      if (this.#isRepeated(logged)) return;
      const envelope = this.#envelopeOf(logged);
      if (logged.exits) sendBeforeExit(this.#deps.project, envelope);
      else if (this.#waiting.length < reportLimits.maxWaiting)
        this.#waiting.push({ envelope, isFatal: logged.level === 'fatal' });
      this.#sendNext();
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'An error could not be reported');
    }
  }

  /** Whether an error with this log message from the same place in the code was reported within `reportLimits.repeated`. */
  #isRepeated({ error, message }: LoggedError): boolean {
    const key = `${message} ${error.stack?.split('\n').find((line) => line.startsWith('    at ')) ?? error.name}`;
    const now = this.#deps.clock.monotonic();
    const before = this.#reportedAt.get(key);
    if (before !== undefined && now - before < reportLimits.repeated) return true;
    this.#reportedAt.delete(key);
    this.#reportedAt.set(key, now);
    const [oldest] = this.#reportedAt.keys();
    if (this.#reportedAt.size > reportLimits.maxRemembered) this.#reportedAt.delete(oldest!);
    return false;
  }

  /** Returns the body of a request. Source: Sentry's documentation, "Envelopes". */
  #envelopeOf(logged: LoggedError): string {
    const { clock, randomness, origin } = this.#deps;
    const now = clock.now();
    const id = Buffer.from(randomness.bytes(16)).toString('hex');
    const event = JSON.stringify(eventOf(logged, origin, id, now));
    const header = { event_id: id, sent_at: new Date(now).toISOString() };
    const item = { type: 'event', content_type: 'application/json', length: Buffer.byteLength(event) };
    return `${JSON.stringify(header)}\n${JSON.stringify(item)}\n${event}\n`;
  }

  #sendNext(): void {
    const [next] = this.#waiting;
    if (next === undefined || this.#sending || this.#pause || this.#stopping.signal.aborted) return;
    this.#sending = this.#send(next.envelope).then((retryIn) => {
      this.#sending = undefined;
      if (retryIn === undefined) this.#waiting.shift();
      else if (!this.#isClosing) this.#pauseFor(retryIn);
      this.#sendNext();
    });
  }

  #pauseFor(delay: number): void {
    this.#pause = this.#deps.clock.setTimer(delay, () => {
      this.#pause = undefined;
      this.#sendNext();
    });
  }

  /** Sends an event. @returns milliseconds until the next request; `undefined` when it was sent, or was aborted */
  async #send(body: string): Promise<number | undefined> {
    const { http, project, log } = this.#deps;
    this.#attempts += 1;
    let problem: string;
    let retryIn = reportLimits.backoff;
    try {
      const { status, headers } = await http.fetch(project.url, {
        method: 'POST',
        headers: headersFor(project),
        body,
        timeout: reportLimits.timeout,
        maxBody: 64 * 1024,
        signal: this.#stopping.signal,
      });
      if (status < 300) {
        this.#attempts = 0;
        this.#isFailing = false;
        return undefined;
      }
      problem = `status ${status}`;
      retryIn = waitOf(headers['retry-after']);
    } catch (error) {
      if (this.#stopping.signal.aborted) return undefined;
      problem = error instanceof Error ? error.message : String(error);
    }
    if (!this.#isFailing) log.warn({ problem }, 'The service for error reports does not accept reports');
    this.#isFailing = true;
    if (this.#attempts < reportLimits.maxAttempts && !this.#isClosing) return retryIn;
    this.#attempts = 0;
    this.#waiting.shift();
    return retryIn;
  }
}

/** Returns the milliseconds of a `Retry-After` header in seconds, within bounds. */
function waitOf(header: string | string[] | undefined): number {
  const seconds = Number(header);
  if (!Number.isFinite(seconds) || seconds <= 0) return reportLimits.backoff;
  return Math.min(seconds * 1000, reportLimits.maxBackoff);
}
