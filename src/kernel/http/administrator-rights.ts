import { AsyncLocalStorage } from 'node:async_hooks';

const tracked = new AsyncLocalStorage<{ isUsed: boolean }>();

/**
 * Marks the current request as permitted because its user is an administrator. The audit log then contains the request.
 * Called for requests outside of the admin API, and only where the user could not do the same without the right of an
 * administrator.
 */
export function useAdministratorRight(): void {
  const request = tracked.getStore();
  if (request) request.isUsed = true;
}

/**
 * Calls the handler of a request.
 * @returns its result, and a function that returns whether the handler has used a right of administrators
 */
export function trackAdministratorRights<T>(handle: () => T): { result: T; isUsed: () => boolean } {
  const request = { isUsed: false };
  return { result: tracked.run(request, handle), isUsed: () => request.isUsed };
}

/**
 * Wraps a check whether a user is an administrator and therefore has a permission. When the user is one, marks the
 * request with `useAdministratorRight`.
 */
export function administratorRight(
  isAdmin: (userId: string) => Promise<boolean>,
): (userId: string) => Promise<boolean> {
  return async (userId) => {
    const isAllowed = await isAdmin(userId);
    if (isAllowed) useAdministratorRight();
    return isAllowed;
  };
}
