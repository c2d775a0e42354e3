import { badJson, invalidParam, isRoomAlias, type JsonObject, type JsonValue } from '../../protocol/index.ts';

/** Returns the aliases in the content of an `m.room.canonical_alias` event; malformed parts are ignored. */
export function aliasesIn({ alias, alt_aliases: altAliases }: JsonObject): string[] {
  return [alias, ...(Array.isArray(altAliases) ? altAliases : [])].filter(
    (candidate): candidate is string => typeof candidate === 'string' && candidate !== '',
  );
}

/**
 * Checks the content of a new `m.room.canonical_alias` event, and returns its aliases.
 * @throws MatrixError M_BAD_JSON for malformed content, M_INVALID_PARAM for a malformed alias
 */
export function checkedAliases(content: JsonObject): string[] {
  const { alias = null, alt_aliases: altAliases = [] } = content;
  if (alias !== null && typeof alias !== 'string') throw badJson('alias must be a string');
  if (!Array.isArray(altAliases)) throw badJson('alt_aliases must be an array');
  for (const altAlias of altAliases)
    if (typeof altAlias !== 'string') throw badJson('alt_aliases must contain only strings');
  const aliases = aliasesIn(content);
  for (const candidate of aliases)
    if (!isRoomAlias(candidate)) throw invalidParam(`${candidate} is not a room alias`);
  return aliases;
}

/**
 * Returns the content of an `m.room.canonical_alias` event without an alias; `undefined` when the content does not
 * contain the alias.
 */
export function withoutAlias(content: JsonObject, removed: string): JsonObject | undefined {
  if (!aliasesIn(content).includes(removed)) return undefined;
  const { alias, alt_aliases: altAliases, ...otherFields } = content;
  const remaining: JsonValue[] = Array.isArray(altAliases)
    ? altAliases.filter((altAlias) => altAlias !== removed)
    : [];
  return {
    ...otherFields,
    ...(typeof alias === 'string' && alias !== removed && { alias }),
    ...(remaining.length > 0 && { alt_aliases: remaining }),
  };
}
