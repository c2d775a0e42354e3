import { Reply, type Route, route } from '../routing/route.ts';

const headers = { 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-store' };

/** The state of a server, as load balancers see it. */
type State = 'starting' | 'ready' | 'stopping';

/**
 * Holds whether load balancers may send requests to this server. They may from the moment when all listeners are open
 * until the server begins to stop. The listeners open after the migrations of the database.
 */
export class Readiness {
  #state: State = 'starting';

  /** Called when every listener answers. */
  started(): void {
    if (this.#state === 'starting') this.#state = 'ready';
  }

  /** Called before the first part of the server stops. */
  stopping(): void {
    this.#state = 'stopping';
  }

  /** The reason why no requests should be sent; `undefined` when the server is ready. */
  get reason(): string | undefined {
    if (this.#state === 'ready') return undefined;
    return this.#state === 'starting' ? 'The server is starting' : 'The server is stopping';
  }
}

/**
 * Answers 200 while the server takes requests, and 503 with the reason while it does not.
 * @param problem resolves with the reason why the server does not work; `undefined` while it works
 */
export const readinessRoute = (
  readiness: Readiness,
  problem: () => Promise<string | undefined> = async () => undefined,
): Route =>
  route({ method: 'GET', path: '/health/ready', auth: 'none' }, async () => {
    // The state is read again after the check, which may take seconds.
    const found = readiness.reason ?? (await problem()) ?? readiness.reason;
    return found === undefined ? new Reply(200, 'Ready', headers) : new Reply(503, found, headers);
  });
