import type { PresenceRouting, PresenceStatus } from '../../presence/index.ts';
import { isUserId } from '../../protocol/index.ts';
import { CallbackFailure, type ModuleCalls } from '../calls/module-calls.ts';
import type { RegisteredCallbacks } from '../registered-callbacks.ts';

/** Returns the routing of presence by modules; `undefined` when no module routes presence. */
export function modulePresenceRouting(
  callbacks: RegisteredCallbacks,
  calls: ModuleCalls,
): PresenceRouting | undefined {
  const routers = callbacks.with('presenceRouter', 'receiversOf');
  const interests = callbacks.with('presenceRouter', 'interestsOf');
  if (routers.length + interests.length === 0) return undefined;
  return {
    async receiversOf(changes) {
      const presenceChanges = [...changes].map(([userId, { presence, statusMsg }]) => {
        return { userId, presence, statusMessage: statusMsg };
      });
      const routed = new Map<string, Set<string>>();
      for (const { module, callbacks: find } of routers) {
        const answer: unknown = await calls
          .run(module, 'receiversOf', () => find(presenceChanges))
          .catch(ignoreLogged);
        if (answer instanceof Map) addRoutes(routed, answer, changes);
      }
      return new Map([...routed].map(([receiver, users]) => [receiver, [...users]]));
    },
    async interestsOf(userId) {
      const users = new Set<string>();
      for (const { module, callbacks: find } of interests) {
        const answer: unknown = await calls
          .run(module, 'interestsOf', () => find(userId))
          .catch(ignoreLogged);
        if (answer === 'all') return 'all';
        for (const user of Array.isArray(answer) ? answer : []) users.add(String(user));
      }
      return users;
    },
  };
}

/** Adds the routes that a module returns: for each receiver, the users whose changes are sent to the receiver. */
function addRoutes(
  routed: Map<string, Set<string>>,
  answer: ReadonlyMap<unknown, unknown>,
  changes: ReadonlyMap<string, PresenceStatus>,
): void {
  for (const [userId, receivers] of answer) {
    if (typeof userId !== 'string' || !changes.has(userId) || !Array.isArray(receivers)) continue;
    for (const receiver of receivers) {
      if (!isUserId(receiver)) continue;
      const users = routed.get(receiver);
      if (users) users.add(userId);
      else routed.set(receiver, new Set([userId]));
    }
  }
}

/** Ignores the failure of a callback, which `ModuleCalls` has logged. @throws every other error */
function ignoreLogged(error: unknown): undefined {
  if (!(error instanceof CallbackFailure)) throw error;
}
