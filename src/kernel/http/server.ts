import type { MatrixError } from '../../protocol/index.ts';
import { BriefMap } from '../brief-map.ts';
import { type Clock, sleep } from '../clock.ts';
import { type Logger, type Metrics, redactUrl } from '../observability/index.ts';
import { UserSlots } from '../rate-limits/index.ts';
import type { EndpointDeps, ErrorPage, RequestTracing } from './endpoints/endpoint.ts';
import { createRouter } from './endpoints/router.ts';
import { type ListenerOptions, listen, type OpenListener } from './listeners/listeners.ts';
import { RequestCounts } from './monitoring/request-counts.ts';
import { observeRequests } from './monitoring/request-metrics.ts';
import type { Authenticator, ServerAdmission, ServerAuthenticator } from './requester.ts';
import { BodyReader } from './requests/body-reader.ts';
import type { MemoryBounds } from './requests/bytes-in-memory.ts';
import type { Exchange } from './requests/exchange.ts';
import type { UnverifiedBounds } from './requests/unverified-bodies.ts';
import type { Route } from './routing/route.ts';

export interface HttpServerOptions {
  readonly listeners: readonly ListenerOptions[];
  readonly routes: readonly Route[];
  readonly authenticator: Authenticator;
  /** Absent: requests of other servers are answered with 401. */
  readonly serverAuthenticator?: ServerAuthenticator;
  /** Absent: all requests of other servers are processed at once. */
  readonly serverAdmission?: ServerAdmission;
  readonly log: Logger;
  readonly clock: Clock;
  /** Renders error pages; absent: routes with `errors: 'page'` respond with JSON. */
  readonly errorPage?: ErrorPage;
  /** Returns the error for clients when the disk or the database fails; `undefined` for other failures. */
  readonly explainFailure?: (error: unknown) => MatrixError | undefined;
  /** Absent: requests are counted, but not timed. */
  readonly metrics?: Metrics | undefined;
  /** Absent: requests are not traced. */
  readonly tracing?: RequestTracing | undefined;
  /** Counts the requests; needed only where code other than the metrics reads the counts. */
  readonly counts?: RequestCounts;
  /** Maximum bytes of long bodies that wait to be verified and parsed; by default `defaultUnverifiedBounds`. */
  readonly unverifiedBounds?: UnverifiedBounds;
  /** Maximum bytes of long bodies of clients that wait to be parsed; by default `defaultClientBounds`. */
  readonly clientBounds?: MemoryBounds;
}

export interface HttpServer {
  /**
   * Opens the listeners.
   * @returns their addresses, as URLs or `unix:` with a path
   */
  start(): Promise<readonly string[]>;
  /**
   * Stops accepting connections, aborts the signals of waiting requests, and resolves when all requests are
   * answered or after `deadline` milliseconds; the remaining connections are then closed.
   */
  stop(deadline?: number): Promise<void>;
  /** Reads the certificate files again, and applies the current log level. */
  reload(): Promise<void>;
}

/** Serves routes on listeners. */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const watched = new BriefMap<number, Exchange>();
  const open: OpenListener[] = [];
  const logs: Logger[] = [];

  return {
    async start() {
      const deps = endpointDepsOf(options);
      for (const listener of options.listeners) {
        const { forwarded, requestIdHeader } = listener;
        const log = options.log.child({ listener: listener.name });
        logs.push(log);
        const context = {
          log,
          clock: options.clock,
          forwarded,
          requestIdHeader: requestIdHeader?.toLowerCase(),
          watched,
        };
        const handle = createRouter(options.routes, listener, context, deps);
        open.push(...(await listen(listener, handle)));
      }
      return open.map(({ address }) => address);
    },

    async stop(deadline = 10_000) {
      const closed = open.map(({ server }) => closing(server));
      for (const exchange of watched.values()) exchange.abort('The server stops');
      await drain(open, Promise.all(closed), options.clock, deadline);
      open.length = 0;
      logs.length = 0;
    },

    async reload() {
      for (const log of logs) log.level = options.log.level;
      for (const listening of open) await listening.reload();
    },
  };
}

function endpointDepsOf(options: HttpServerOptions): EndpointDeps {
  const counts = options.counts ?? new RequestCounts();
  const time = options.metrics && observeRequests(options.metrics, counts);
  return {
    bodies: new BodyReader(options.clock, {
      unverified: options.unverifiedBounds,
      ofClients: options.clientBounds,
    }),
    slots: new UserSlots(),
    authenticator: options.authenticator,
    serverAuthenticator: options.serverAuthenticator,
    serverAdmission: options.serverAdmission,
    errorPage: options.errorPage,
    explainFailure: options.explainFailure,
    tracing: options.tracing,
    monotonic: () => options.clock.monotonic(),
    began: (route) => counts.began(route),
    observe: (route, exchange, milliseconds) => {
      counts.ended(route, exchange);
      time?.(route, exchange, milliseconds);
      logRequest(exchange, milliseconds);
    },
  };
}

/** Logs one line per request at `debug`: at `info` these would be most lines of a busy server. */
function logRequest(exchange: Exchange, milliseconds: number): void {
  const { log } = exchange.listener;
  if (!log.isLevelEnabled('debug')) return;
  log.debug(
    {
      request: exchange.id,
      ...(exchange.traceId !== undefined && { trace: exchange.traceId }),
      method: exchange.method,
      url: redactUrl(exchange.url),
      status: exchange.response.statusCode,
      ms: Math.round(milliseconds * 10) / 10,
      user: exchange.requester?.userId ?? exchange.origin,
      ip: exchange.ip,
    },
    'Request',
  );
}

const closing = (server: OpenListener['server']) =>
  new Promise<void>((resolve) => server.close(() => resolve()));

/** Interval in milliseconds at which idle connections are closed while the last requests are answered. */
const drainInterval = 20;

async function drain(
  open: readonly OpenListener[],
  closed: Promise<unknown>,
  clock: Clock,
  deadline: number,
): Promise<void> {
  let done = false;
  void closed.then(() => {
    done = true;
  });
  for (const end = clock.monotonic() + deadline; !done && clock.monotonic() < end; ) {
    for (const listening of open) listening.closeIdle();
    await Promise.race([closed, sleep(clock, drainInterval)]);
  }
  for (const { server } of open) server.closeAllConnections();
  await closed;
}
