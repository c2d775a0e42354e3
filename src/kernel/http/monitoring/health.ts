import { Reply, type Route, route } from '../routing/route.ts';

/** Tells load balancers that the process answers. */
export const healthRoute: Route = route(
  { method: 'GET', path: '/health', auth: 'none' },
  () => new Reply(200, 'OK', { 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-store' }),
);
