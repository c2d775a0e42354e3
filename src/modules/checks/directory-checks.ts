import type { DirectoryRules } from '../../rooms/index.ts';
import { decide } from '../calls/decide.ts';
import type { ModuleCalls } from '../calls/module-calls.ts';
import type { RegisteredCallbacks } from '../registered-callbacks.ts';

/**
 * Adds the checks of modules to the operator's rules for aliases and the room directory.
 * @returns the rules themselves where no module has such a check
 */
export function checkedDirectoryRules(
  rules: DirectoryRules,
  callbacks: RegisteredCallbacks,
  calls: ModuleCalls,
): DirectoryRules {
  const aliasChecks = callbacks.checkersWith('mayCreateAlias');
  const publicationChecks = callbacks.checkersWith('mayPublishRoom');
  if (aliasChecks.length + publicationChecks.length === 0) return rules;
  return {
    async mayCreateAlias(userId, alias, roomId) {
      if (!(await rules.mayCreateAlias(userId, alias, roomId))) return false;
      for (const { module, callbacks: ask } of aliasChecks) {
        const error = await decide(calls, module, 'mayCreateAlias', () => ask(userId, alias));
        if (error !== undefined) throw error;
      }
      return true;
    },
    async mayPublish(userId, roomId, aliases) {
      if (!(await rules.mayPublish(userId, roomId, aliases))) return false;
      for (const { module, callbacks: ask } of publicationChecks) {
        if (await decide(calls, module, 'mayPublishRoom', () => ask(userId, roomId))) return false;
      }
      return true;
    },
  };
}
