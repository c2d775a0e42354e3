import { foldCase } from '../globs/fold-case.ts';
import { matchesGreedily } from '../globs/greedy-match.ts';
import { isJsonObject, type JsonValue } from '../json.ts';

/**
 * Glob patterns, grouped by how they can be looked up: to find a name in most lists, even of thousands of patterns,
 * takes a few look-ups.
 */
interface PatternSet {
  readonly names: ReadonlySet<string>;
  /** The part after the star, dot included, of patterns like `*.example.org`. */
  readonly suffixes: ReadonlySet<string>;
  /** All other patterns, which are compared with a name one by one. */
  readonly others: readonly string[];
}

/** The compiled content of an `m.room.server_acl` event. Immutable except for the cache of verdicts. */
export interface ServerAcl {
  readonly allowIpLiterals: boolean;
  readonly allow: PatternSet;
  readonly deny: PatternSet;
  /** Caches decisions, because the same few servers are checked for every event of a room. */
  readonly verdicts: Map<string, boolean>;
}

/** Maximum length of a server name by its grammar; longer patterns match none. */
const MAX_SERVER_NAME_LENGTH = 255;
const MAX_VERDICTS = 1000;
const IPV4 = /^\d{1,3}(?:\.\d{1,3}){3}$/;
const PORT = /:\d{1,5}$/;
const SUFFIX_PATTERN = /^\*(\.[^*?]+)$/;

function compilePatterns(list: JsonValue | undefined): PatternSet {
  const patterns = Array.isArray(list) ? list.filter((entry) => typeof entry === 'string') : [];
  const names = new Set<string>();
  const suffixes = new Set<string>();
  const others = new Set<string>();
  for (const entry of patterns) {
    const pattern = foldCase(entry).replace(/\*+/g, '*');
    const suffix = SUFFIX_PATTERN.exec(pattern)?.[1];
    if (!/[*?]/.test(pattern)) names.add(pattern);
    else if (suffix !== undefined) suffixes.add(suffix);
    else if (pattern.replaceAll('*', '').length <= MAX_SERVER_NAME_LENGTH) others.add(pattern);
  }
  return { names, suffixes, others: [...others] };
}

function matchesAny(patterns: PatternSet, name: string): boolean {
  if (patterns.names.has(name)) return true;
  if (patterns.suffixes.size > 0) {
    for (let dot = name.indexOf('.'); dot !== -1; dot = name.indexOf('.', dot + 1)) {
      if (patterns.suffixes.has(name.slice(dot))) return true;
    }
  }
  return patterns.others.some((pattern) => matchesGreedily(pattern, name));
}

/**
 * Compiles the content of an `m.room.server_acl` event. Malformed values count as absent: lists that are not
 * arrays are empty, entries that are not strings are dropped, and `allow_ip_literals` is true.
 * Source: client-server API, "m.room.server_acl".
 */
export function compileServerAcl(content: JsonValue): ServerAcl {
  const { allow, deny, allow_ip_literals } = isJsonObject(content) ? content : {};
  return {
    allowIpLiterals: allow_ip_literals !== false,
    allow: compilePatterns(allow),
    deny: compilePatterns(deny),
    verdicts: new Map(),
  };
}

/**
 * Whether a server may participate in the room. In the order of the specification:
 * 1. Without ACL (`undefined`): allowed.
 * 2. An IP literal while `allow_ip_literals` is false: denied.
 * 3. A match in `deny`: denied.
 * 4. A match in `allow`: allowed.
 * 5. Otherwise denied.
 * Ignores the port of the name. With an ACL, a name of more than 255 characters is denied before step 2.
 * Source: client-server API, "m.room.server_acl"; server-server API, "Server Access Control Lists (ACLs)".
 */
export function isServerAllowed(acl: ServerAcl | undefined, serverName: string): boolean {
  if (acl === undefined) return true;
  if (serverName.length > MAX_SERVER_NAME_LENGTH) return false;
  const known = acl.verdicts.get(serverName);
  if (known !== undefined) return known;
  const verdict = decide(acl, serverName.replace(PORT, ''));
  if (acl.verdicts.size >= MAX_VERDICTS) acl.verdicts.clear();
  acl.verdicts.set(serverName, verdict);
  return verdict;
}

/**
 * Like `isServerAllowed`, but compares the patterns with the name including its port, so that an ACL can deny one
 * server on a host and allow another.
 */
export function isServerWithPortAllowed(acl: ServerAcl, serverName: string): boolean {
  return serverName.length <= MAX_SERVER_NAME_LENGTH && decide(acl, serverName);
}

function decide(acl: ServerAcl, serverName: string): boolean {
  const name = foldCase(serverName);
  if (!acl.allowIpLiterals && isIpLiteral(name.replace(PORT, ''))) return false;
  if (matchesAny(acl.deny, name)) return false;
  return matchesAny(acl.allow, name);
}

const isIpLiteral = (name: string): boolean => name.startsWith('[') || IPV4.test(name);
