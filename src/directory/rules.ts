import { compileGlob, type GlobMatcher } from '../protocol/index.ts';
import type { DirectoryRules } from '../rooms/index.ts';
import type { DirectoryConfig, DirectoryRule } from './config.ts';

export type DirectoryRuleOptions = Pick<
  DirectoryConfig,
  'alias_creation_rules' | 'room_list_publication_rules'
>;

interface CompiledRule {
  readonly matchesUser: GlobMatcher;
  readonly matchesAlias: GlobMatcher;
  readonly anyAlias: boolean;
  readonly matchesRoom: GlobMatcher;
  readonly anyRoom: boolean;
  readonly allows: boolean;
}

/**
 * Compiles the operator's rules. The first rule that matches decides, also for administrators; when none matches, the
 * action is denied. Without rules (null), all users may create all aliases, and only administrators may publish rooms.
 * A room that is being created has no id yet, and matches only the pattern `*`.
 */
export function directoryRules(
  options: DirectoryRuleOptions,
  isAdmin: (userId: string) => Promise<boolean>,
): DirectoryRules {
  const aliasRules = options.alias_creation_rules?.map(compile);
  const publicationRules = options.room_list_publication_rules?.map(compile);
  return {
    mayCreateAlias(userId, alias, roomId) {
      if (!aliasRules) return true;
      const rule = aliasRules.find(
        ({ matchesUser, matchesAlias, matchesRoom, anyRoom }) =>
          matchesUser(userId) &&
          matchesAlias(alias) &&
          (anyRoom || (roomId !== undefined && matchesRoom(roomId))),
      );
      return rule?.allows ?? false;
    },
    async mayPublish(userId, roomId, aliases) {
      if (!publicationRules) return isAdmin(userId);
      const rule = publicationRules.find(
        ({ matchesUser, matchesAlias, anyAlias, matchesRoom }) =>
          matchesUser(userId) && matchesRoom(roomId) && (anyAlias || aliases.some(matchesAlias)),
      );
      return rule?.allows ?? false;
    },
  };
}

function compile({ user_id, alias, room_id, action }: DirectoryRule): CompiledRule {
  return {
    matchesUser: compileGlob(user_id ?? '*'),
    matchesAlias: compileGlob(alias ?? '*'),
    anyAlias: matchesEverything(alias),
    matchesRoom: compileGlob(room_id ?? '*'),
    anyRoom: matchesEverything(room_id),
    allows: action === 'allow',
  };
}

const matchesEverything = (pattern: string | null): boolean => pattern === null || /^\*+$/.test(pattern);
