import { compileGlob, type GlobMatcher } from '../protocol/index.ts';
import type { DirectoryRules } from '../rooms/index.ts';
import type { DirectoryConfig, DirectoryRule } from './config.ts';

export type DirectoryRuleOptions = Pick<
  DirectoryConfig,
  'alias_creation_rules' | 'room_list_publication_rules'
>;

interface CompiledRule {
  readonly user: GlobMatcher;
  readonly alias: GlobMatcher;
  readonly anyAlias: boolean;
  readonly room: GlobMatcher;
  readonly anyRoom: boolean;
  readonly allows: boolean;
}

/**
 * Compiles the operator's rules. The first rule that matches decides; without one, the answer is no. A room
 * that is being created has no id yet, and matches only the pattern `*`. Administrators may publish all
 * rooms.
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
        ({ user, alias: matches, room, anyRoom }) =>
          user(userId) && matches(alias) && (anyRoom || (roomId !== undefined && room(roomId))),
      );
      return rule?.allows ?? false;
    },
    async mayPublish(userId, roomId, aliases) {
      const rule = publicationRules?.find(
        ({ user, alias, anyAlias, room }) =>
          user(userId) && room(roomId) && (anyAlias || aliases.some(alias)),
      );
      return rule?.allows === true || isAdmin(userId);
    },
  };
}

function compile({ user_id, alias, room_id, action }: DirectoryRule): CompiledRule {
  return {
    user: compileGlob(user_id ?? '*'),
    alias: compileGlob(alias ?? '*'),
    anyAlias: isAnything(alias),
    room: compileGlob(room_id ?? '*'),
    anyRoom: isAnything(room_id),
    allows: action === 'allow',
  };
}

const isAnything = (pattern: string | null): boolean => pattern === null || /^\*+$/.test(pattern);
