import type { RoomReader } from '../../room-engine/index.ts';
import type { DirectoryRules } from '../../rooms/index.ts';
import { throwDenial } from '../accounts/account-checks.ts';
import { firstDenial } from '../calls/call-all.ts';
import type { ModuleCalls } from '../calls/module-calls.ts';
import type { RegisteredCallbacks } from '../registered-callbacks.ts';
import { roomStateOf } from '../rooms/room-state.ts';

/**
 * Adds the checks of modules to the operator's rules for aliases and the room directory.
 * @returns `rules` itself where no module has such a check
 */
export function checkedDirectoryRules(
  rules: DirectoryRules,
  callbacks: RegisteredCallbacks,
  calls: ModuleCalls,
  engine: () => RoomReader,
): DirectoryRules {
  const aliasChecks = callbacks.with('spamChecker', 'mayCreateAlias');
  const publicationChecks = callbacks.with('spamChecker', 'mayPublishRoom');
  const visibilityChecks = callbacks.with('eventRules', 'mayChangeVisibility');
  if (aliasChecks.length + publicationChecks.length + visibilityChecks.length === 0) return rules;
  return {
    async mayCreateAlias(userId, alias, roomId) {
      if (!(await rules.mayCreateAlias(userId, alias, roomId))) return false;
      throwDenial(await firstDenial(calls, 'mayCreateAlias', aliasChecks, (check) => check(userId, alias)));
      return true;
    },
    async mayPublish(userId, roomId, aliases) {
      if (!(await rules.mayPublish(userId, roomId, aliases))) return false;
      const check = (callback: (typeof publicationChecks)[number]['callbacks']) => callback(userId, roomId);
      return (await firstDenial(calls, 'mayPublishRoom', publicationChecks, check)) === undefined;
    },
    async checkVisibility(roomId, isPublic) {
      const state = roomStateOf(engine, roomId, calls.context);
      throwDenial(
        await firstDenial(calls, 'mayChangeVisibility', visibilityChecks, (check) =>
          check(roomId, isPublic ? 'public' : 'private', state),
        ),
      );
    },
  };
}
