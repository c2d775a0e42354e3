import {
  compileGlob,
  type GlobMatcher,
  type JsonObject,
  type JsonValue,
  serverOfUser,
} from '../protocol/index.ts';

/** A decision about an invite: `block` refuses it, `ignore` accepts it without showing it to the user. */
export type InviteDecision = 'allow' | 'ignore' | 'block';

/** Returns the decision for an inviter; `undefined` when no rule matches. */
export type InviteRules = (inviter: string) => InviteDecision | undefined;

/** Maximum number of globs of a list that are applied, because matching takes CPU time on the event loop. */
const maxGlobs = 500;

/** In the order in which they are checked; the first match decides. */
const lists = [
  ['allowed_users', 'allow', (userId: string) => userId],
  ['ignored_users', 'ignore', (userId: string) => userId],
  ['blocked_users', 'block', (userId: string) => userId],
  ['allowed_servers', 'allow', serverOfUser],
  ['ignored_servers', 'ignore', serverOfUser],
  ['blocked_servers', 'block', serverOfUser],
] as const;

/**
 * Parses invite permissions, in which globs name users and servers. Invalid parts are ignored, so that a
 * mistake of a client neither allows nor blocks invites.
 * Source: client-server API, "Invite permission" (`default_action`); MSC4155 (the lists, `enabled`).
 */
export function readInviteRules(content: JsonObject): InviteRules {
  if (content['enabled'] === false) return () => undefined;
  const rules = lists.map(([name, decision, subject]) => {
    const matches = matcherFor(content[name]);
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

function matcherFor(list: JsonValue | undefined): GlobMatcher {
  if (!Array.isArray(list)) return () => false;
  const entries = list.filter((entry) => typeof entry === 'string').filter((entry) => entry !== '');
  const isGlob = (entry: string) => /[*?]/.test(entry);
  const literals = new Set(entries.filter((entry) => !isGlob(entry)));
  const globs = entries.filter(isGlob).slice(0, maxGlobs).map(compileGlob);
  return (text) => literals.has(text) || globs.some((matches) => matches(text));
}
