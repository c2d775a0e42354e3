import type { ActionLimit } from '../rooms/index.ts';
import { DelayedEvents, type DelayedEventsDeps } from './delayed-events.ts';
import { delayedEventRoutes } from './routes.ts';

/** Opens delayed events. Must be called before jobs are started. */
export function openDelayedEvents(deps: DelayedEventsDeps & { readonly limit: ActionLimit }) {
  const delayedEvents = new DelayedEvents(deps);
  return { delayedEvents, routes: delayedEventRoutes(delayedEvents, deps.limit) };
}
