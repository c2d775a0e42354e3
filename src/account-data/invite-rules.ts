import {
  compileGlob,
  type GlobMatcher,
  type JsonObject,
  type JsonValue,
  MAX_GLOB_LENGTH,
  serverOfUser,
} from '../protocol/index.ts';

/** A decision about an invite: `block` refuses it, `ignore` accepts it without showing it to the user. */
export type InviteDecision = 'allow' | 'ignore' | 'block';

/** Returns the decision for an inviter; `undefined` when no rule matches. */
export type InviteRules = (inviter: string) => InviteDecision | undefined;

/** Maximum number of globs that are applied from one list. */
const maxGlobs = 500;

/**
 * Maximum number of characters of the globs of all lists. Matching blocks the event loop, and has up to one step for
 * each pair of a character of the glob and a character of the user id.
 */
const maxGlobLength = 32 * 1024;

/** The lists of invite permissions in the order in which they are checked; the first match decides. */
const lists = [
  ['allowed_users', 'allow', (userId: string) => userId],
  ['ignored_users', 'ignore', (userId: string) => userId],
  ['blocked_users', 'block', (userId: string) => userId],
  ['allowed_servers', 'allow', serverOfUser],
  ['ignored_servers', 'ignore', serverOfUser],
  ['blocked_servers', 'block', serverOfUser],
] as const;

/**
 * Parses invite permissions, whose lists hold globs of user ids and of server names. Invalid parts are ignored, so that a mistake of a
 * client neither allows nor blocks invites. Source: client-server API, "Invite permission" (`default_action`); MSC4155
 * (the lists, `enabled`).
 */
export function readInviteRules(content: JsonObject): InviteRules {
  if (content['enabled'] === false) return () => undefined;
  const globLength = { left: maxGlobLength };
  const rules = lists.map(([name, decision, subject]) => {
    const matches = matcherFor(content[name], globLength);
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

/** @param globLength how many characters of globs may still be used; reduced by the length of the globs in `list` */
function matcherFor(list: JsonValue | undefined, globLength: { left: number }): GlobMatcher {
  if (!Array.isArray(list)) return () => false;
  const entries = list.filter((entry) => typeof entry === 'string').filter((entry) => entry !== '');
  const isGlob = (entry: string) => /[*?]/.test(entry);
  const literals = new Set(entries.filter((entry) => !isGlob(entry)));
  const globs: GlobMatcher[] = [];
  // Longer globs match nothing.
  const wanted = entries.filter((entry) => isGlob(entry) && entry.length <= MAX_GLOB_LENGTH);
  for (const glob of wanted.slice(0, maxGlobs)) {
    globLength.left -= glob.length;
    if (globLength.left < 0) break;
    globs.push(compileGlob(glob));
  }
  return (text) => literals.has(text) || globs.some((matches) => matches(text));
}
