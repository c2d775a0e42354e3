import {
  compileGlob,
  type GlobMatcher,
  type JsonObject,
  type JsonValue,
  serverOfUser,
} from '../protocol/index.ts';

/**
 * What becomes of an invite: it is refused (`block`), or it is taken and its user is not told of it (`ignore`).
 */
export type InviteDecision = 'allow' | 'ignore' | 'block';

/** Says what becomes of invites by a user; `undefined`: it is not for these rules to say. */
export type InviteRules = (inviter: string) => InviteDecision | undefined;

/** Entries with wildcards of one list that count: matching them takes time, which others wait for. */
const maxGlobs = 500;

/** In the order in which they are asked: who is allowed is not asked any further, and users come before servers. */
const lists = [
  ['allowed_users', 'allow', (userId: string) => userId],
  ['ignored_users', 'ignore', (userId: string) => userId],
  ['blocked_users', 'block', (userId: string) => userId],
  ['allowed_servers', 'allow', serverOfUser],
  ['ignored_servers', 'ignore', serverOfUser],
  ['blocked_servers', 'block', serverOfUser],
] as const;

/**
 * Reads a permission config, in which globs name users and servers. Whatever is not as it should be counts as not
 * being there: a client's mistake must not open or close a door that was not meant.
 * Source: client-server API, "Invite permission" (`default_action`); MSC4155 (the lists, `enabled`).
 */
export function readInviteRules(content: JsonObject): InviteRules {
  if (content['enabled'] === false) return () => undefined;
  const rules = lists.map(([name, decision, subject]) => {
    const matches = matcherOf(content[name]);
    return (inviter: string) => (matches(subject(inviter) ?? '') ? decision : undefined);
  });
  const otherwise = content['default_action'] === 'block' ? 'block' : undefined;
  return (inviter) => {
    for (const rule of rules) {
      const decision = rule(inviter);
      if (decision) return decision;
    }
    return otherwise;
  };
}

function matcherOf(list: JsonValue | undefined): GlobMatcher {
  if (!Array.isArray(list)) return () => false;
  const entries = list.filter((entry) => typeof entry === 'string').filter((entry) => entry !== '');
  const isGlob = (entry: string) => /[*?]/.test(entry);
  const literals = new Set(entries.filter((entry) => !isGlob(entry)));
  const globs = entries.filter(isGlob).slice(0, maxGlobs).map(compileGlob);
  return (text) => literals.has(text) || globs.some((matches) => matches(text));
}
