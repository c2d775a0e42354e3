import type { Clock } from '../../kernel/clock.ts';
import { mapConcurrently } from '../../kernel/map-concurrently.ts';
import { ResponseBudget } from '../../kernel/outbound/index.ts';
import { limitExceeded, MatrixError } from '../../protocol/index.ts';
import type { RemoteKeys, RemoteRequest } from './remote-keys.ts';
import { withTimeout } from './timeout.ts';

/** Maximum number of servers that may receive requests because of one request of a client. */
const maxServers = 250;

/**
 * Maximum number of concurrent requests to servers. A request to a server that does not answer counts until the
 * timeout.
 */
const maxConcurrentServers = 25;

/**
 * Bounds of all responses together, enough for the keys of about 10,000 devices. The responses of one server with the
 * keys of 500 users usually need a tenth of this.
 */
const totalOfResponses = { bytes: 16 * 1024 * 1024, values: 200_000 };

export interface ServerRequestsDeps {
  readonly clock: Clock;
  /** Sends requests to other servers; when absent, these requests fail with M_UNREACHABLE. */
  readonly remote: RemoteKeys | undefined;
}

/**
 * Sends the requests to other servers that one request of a client causes. Bounds the number of servers, the time and the
 * responses of all requests together.
 */
export class ServerRequests {
  readonly #deps: ServerRequestsDeps;
  /** Milliseconds of the monotonic clock. */
  readonly #deadline: number;
  readonly #budget = new ResponseBudget(totalOfResponses);
  #remainingServers = maxServers;

  /** @param timeout milliseconds for all servers together */
  constructor(deps: ServerRequestsDeps, timeout: number) {
    this.#deps = deps;
    this.#deadline = deps.clock.monotonic() + timeout;
  }

  /** Runs `work` for each server, for `maxConcurrentServers` of them at a time. */
  forServers<S, R>(servers: readonly S[], work: (server: S) => Promise<R>): Promise<R[]> {
    return mapConcurrently(servers, maxConcurrentServers, work);
  }

  /**
   * Must be called before the request to each server.
   * @throws MatrixError 429 M_LIMIT_EXCEEDED for more than `maxServers`
   */
  countServerOrThrow(): void {
    if (this.#remainingServers-- <= 0) throw limitExceeded(60_000);
  }

  /**
   * Sends a request.
   * @throws MatrixError 503 M_UNREACHABLE when this server does not federate; 504 after the timeout; the errors of `work`
   */
  async send<T>(work: (remote: RemoteKeys, request: RemoteRequest) => Promise<T>): Promise<T> {
    const { clock, remote } = this.#deps;
    if (!remote) throw new MatrixError(503, 'M_UNREACHABLE', 'This server does not federate');
    const timeout = Math.max(0, this.#deadline - clock.monotonic());
    return withTimeout(clock, timeout, (signal) => work(remote, { timeout, signal, budget: this.#budget }));
  }
}
