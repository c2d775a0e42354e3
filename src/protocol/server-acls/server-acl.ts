import { foldCase } from '../globs/fold-case.ts';
import { matchesGreedily } from '../globs/greedy-match.ts';
import { isJsonObject, type JsonValue } from '../json.ts';

/** Glob patterns, sorted by how they can be looked up: most lists of thousands cost two or three look-ups. */
interface PatternSet {
  readonly names: ReadonlySet<string>;
  /** What follows the star in patterns of the form `*.example.org`, with the dot. */
  readonly suffixes: ReadonlySet<string>;
  readonly others: readonly string[];
}

/** The compiled content of an `m.room.server_acl` event. Nothing that can be observed ever changes in it. */
export interface ServerAcl {
  readonly allowIpLiterals: boolean;
  readonly allow: PatternSet;
  readonly deny: PatternSet;
  /** What was decided before, because the same few servers are asked about for every event of a room. */
  readonly verdicts: Map<string, boolean>;
}

/** By the grammar of server names; longer patterns match none. */
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
 * Compiles the content of an `m.room.server_acl` event. Whatever is malformed counts as absent: lists that are not
 * arrays as empty, entries that are not strings not at all, `allow_ip_literals` as true.
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
 * Whether a server may participate in the room. `acl` is undefined when the state has no `m.room.server_acl`; the
 * port of the name, if any, is not considered.
 * Source: client-server API, "m.room.server_acl"; server-server API, "Server Access Control Lists (ACLs)".
 */
export function isServerAllowed(acl: ServerAcl | undefined, serverName: string): boolean {
  if (acl === undefined) return true;
  if (serverName.length > MAX_SERVER_NAME_LENGTH) return false;
  const known = acl.verdicts.get(serverName);
  if (known !== undefined) return known;
  const verdict = decide(acl, foldCase(serverName.replace(PORT, '')));
  if (acl.verdicts.size >= MAX_VERDICTS) acl.verdicts.clear();
  acl.verdicts.set(serverName, verdict);
  return verdict;
}

function decide(acl: ServerAcl, name: string): boolean {
  if (!acl.allowIpLiterals && isIpLiteral(name)) return false;
  if (matchesAny(acl.deny, name)) return false;
  return matchesAny(acl.allow, name);
}

const isIpLiteral = (name: string): boolean => name.startsWith('[') || IPV4.test(name);
