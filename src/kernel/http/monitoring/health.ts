import { Reply, type Route, route } from '../routing/route.ts';

/** Answers 200 to load balancers while the process runs. */
export const healthRoute: Route = route(
  { method: 'GET', path: '/health', auth: 'none' },
  () => new Reply(200, 'OK', { 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-store' }),
);
