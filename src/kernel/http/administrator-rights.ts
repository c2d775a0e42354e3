import { AsyncLocalStorage } from 'node:async_hooks';

const tracked = new AsyncLocalStorage<{ isUsed: boolean }>();

/**
 * Marks the current request as one that is permitted because its user is an administrator, so that it is stored in the audit
 * log. Called where a right of administrators outside the admin API decides, not where the user could do the same without it.
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
 * Wraps a check whether a user is an administrator, on which a permission depends: marks the request with
 * `useAdministratorRight` when the user is one.
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
