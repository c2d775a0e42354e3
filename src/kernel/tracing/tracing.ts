import { RE2JS } from 're2js';
import type { Database } from '../database/index.ts';
import type { Exchange, RequestTracing, Route } from '../http/index.ts';
import { redactUrl } from '../observability/index.ts';
import type { Span } from './span.ts';
import { fromJaeger, fromTraceparent, type TraceContext, toJaeger, toTraceparent } from './trace-context.ts';
import type { Tracer } from './tracer.ts';

export interface TracingOptions {
  /** Regular expressions for the names of servers with which trace contexts are exchanged. */
  readonly whitelist: readonly string[];
  /** Users whose requests are always recorded. */
  readonly forcedUsers: readonly string[];
  /** Lower-case name of the header in Jaeger's format. */
  readonly jaegerHeader: string;
}

/** A request to another server. */
interface TracedRequest {
  readonly destination: string;
  readonly method: string;
  readonly path: string;
}

/** Records incoming requests, requests to other servers, jobs and database transactions as spans. */
export class Tracing implements RequestTracing {
  readonly #tracer: Tracer;
  readonly #whitelist: readonly RE2JS[];
  readonly #forcedUsers: ReadonlySet<string>;
  readonly #jaegerHeader: string;

  constructor(tracer: Tracer, { whitelist, forcedUsers, jaegerHeader }: TracingOptions) {
    this.#tracer = tracer;
    this.#whitelist = whitelist.map((pattern) => RE2JS.compile(pattern));
    this.#forcedUsers = new Set(forcedUsers);
    this.#jaegerHeader = jaegerHeader;
  }

  serve({ contract: { path } }: Route, exchange: Exchange, answer: () => Promise<void>): Promise<void> {
    const { method } = exchange;
    const route = typeof path === 'string' ? path : path[0]!;
    const attributes = {
      'http.request.method': method,
      'http.route': route,
      'url.path': redactUrl(exchange.url).split('?', 1)[0]!,
      'request.id': exchange.id,
    };
    return this.#tracer.run({ name: `${method} ${route}`, kind: 'server', attributes }, async (span) => {
      exchange.traceId = span.trace.traceId;
      await answer();
      const status = exchange.response.statusCode;
      span.attributes['http.response.status_code'] = status;
      span.isFailed = status >= 500;
    });
  }

  authenticated(exchange: Exchange): void {
    const span = this.#tracer.current;
    if (!span) return;
    const { requester, origin, headers } = exchange;
    if (requester) {
      span.attributes['user.id'] = requester.userId;
      if (this.#forcedUsers.has(requester.userId)) span.trace.sampled = true;
    }
    if (origin === undefined) return;
    span.attributes['matrix.origin'] = origin;
    if (!this.#isWhitelisted(origin)) return;
    const context = this.#contextIn(headers);
    if (context) span.continueFrom(context);
    exchange.traceId = span.trace.traceId;
  }

  /**
   * Records a request to another server.
   * @param send sends the request. Its argument is the headers to add: the trace context if the server is in the
   * whitelist, otherwise none
   */
  sendToServer<T>(
    { destination, method, path }: TracedRequest,
    send: (headers: Readonly<Record<string, string>>) => Promise<T>,
  ): Promise<T> {
    // Leaves out the later parts of a path: they are ids, and would give each request a different name.
    const name = `${method} ${path.split(/[/?]/).slice(0, 5).join('/')}`;
    const attributes = { 'http.request.method': method, 'server.address': destination };
    return this.#tracer.run({ name, kind: 'client', attributes }, (span) =>
      send(this.#isWhitelisted(destination) ? this.#headersOf(span) : {}),
    );
  }

  /**
   * Returns the trace context for a job that the current request schedules; `null` outside of requests. Jobs that are
   * scheduled by jobs begin traces of their own, because some schedule themselves again forever.
   */
  captureForJob(): string | null {
    const span = this.#tracer.current;
    return span?.trace.first?.kind === 'server' ? toTraceparent(span.context) : null;
  }

  /** Runs a job as part of the trace of the request that scheduled it. @param captured result of `captureForJob` */
  runJob<T>(kind: string, captured: string | null, run: () => Promise<T>): Promise<T> {
    const parent = captured === null ? undefined : fromTraceparent(captured);
    return this.#tracer.run({ name: `job ${kind}`, kind: 'consumer', parent }, run);
  }

  /** Returns a database whose transactions are recorded. */
  database(database: Database): Database {
    const transaction: Database['transaction'] = (work) =>
      this.#tracer.current
        ? this.#tracer.run({ name: 'database transaction', kind: 'client' }, () => database.transaction(work))
        : database.transaction(work);
    return new Proxy(database, {
      get(target, name) {
        if (name === 'transaction') return transaction;
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }

  #isWhitelisted(server: string): boolean {
    return this.#whitelist.some((pattern) => pattern.matcher(server).lookingAt());
  }

  #headersOf({ context }: Span): Readonly<Record<string, string>> {
    return { traceparent: toTraceparent(context), [this.#jaegerHeader]: toJaeger(context) };
  }

  #contextIn(headers: Exchange['headers']): TraceContext | undefined {
    const { traceparent, [this.#jaegerHeader]: jaeger } = headers;
    return (
      (typeof traceparent === 'string' ? fromTraceparent(traceparent) : undefined) ??
      (typeof jaeger === 'string' ? fromJaeger(jaeger) : undefined)
    );
  }
}
