import type { Requester } from '../requester.ts';
import type { Route, RouteContract, RouteRequest } from './route.ts';

/** A request with the user who makes it. */
export type UserRequest = RouteRequest & { readonly requester: Requester };

/**
 * Returns the routes. The routes that `concerns` selects call `check` before their handlers.
 * @param check throws or rejects to refuse a request of a logged-in user; returns `undefined` where nothing has to be
 * awaited
 */
export function checkedRoutes(
  routes: readonly Route[],
  concerns: (contract: RouteContract) => boolean,
  check: (request: UserRequest, contract: RouteContract) => Promise<void> | undefined,
): Route[] {
  return routes.map((uncheckedRoute) => {
    const { contract, handler } = uncheckedRoute;
    if (!concerns(contract)) return uncheckedRoute;
    return {
      contract,
      handler(request) {
        const { requester } = request as { readonly requester: Requester | undefined };
        const checking = requester && check(request as unknown as UserRequest, contract);
        return checking === undefined ? handler(request) : checking.then(() => handler(request));
      },
    };
  });
}
