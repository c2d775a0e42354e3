import { Reply, type Route, route } from '../routing/route.ts';

const headers = { 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-store' };

/**
 * Answers load balancers: 200 while the server works, otherwise 503 with the reason.
 * @param problem resolves with the reason why the server does not work; `undefined` while it works
 */
export const healthRouteWith = (problem: () => Promise<string | undefined>): Route =>
  route({ method: 'GET', path: '/health', auth: 'none' }, async () => {
    const found = await problem();
    return found === undefined ? new Reply(200, 'OK', headers) : new Reply(503, found, headers);
  });

/** Answers 200 while the process runs. */
export const healthRoute: Route = healthRouteWith(async () => undefined);
