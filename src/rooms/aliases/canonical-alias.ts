import { badJson, invalidParam, isRoomAlias, type JsonObject, type JsonValue } from '../../protocol/index.ts';

/** Aliases in the content of an `m.room.canonical_alias` event; malformed parts are ignored. */
export function aliasesIn({ alias, alt_aliases: others }: JsonObject): string[] {
  return [alias, ...(Array.isArray(others) ? others : [])].filter(
    (one): one is string => typeof one === 'string' && one !== '',
  );
}

/**
 * Aliases in the content of a new `m.room.canonical_alias` event.
 * @throws MatrixError M_BAD_JSON for malformed content, M_INVALID_PARAM for a malformed alias
 */
export function checkedAliases(content: JsonObject): string[] {
  const { alias = null, alt_aliases: others = [] } = content;
  if (alias !== null && typeof alias !== 'string') throw badJson('alias must be a string');
  if (!Array.isArray(others)) throw badJson('alt_aliases must be an array');
  for (const other of others)
    if (typeof other !== 'string') throw badJson('alt_aliases must contain only strings');
  const aliases = aliasesIn(content);
  for (const one of aliases) if (!isRoomAlias(one)) throw invalidParam(`${one} is not a room alias`);
  return aliases;
}

/**
 * The content of an `m.room.canonical_alias` event without one alias; `undefined` when the content does not
 * contain it.
 */
export function withoutAlias(content: JsonObject, removed: string): JsonObject | undefined {
  if (!aliasesIn(content).includes(removed)) return undefined;
  const { alias, alt_aliases: others, ...rest } = content;
  const left: JsonValue[] = Array.isArray(others) ? others.filter((other) => other !== removed) : [];
  return {
    ...rest,
    ...(typeof alias === 'string' && alias !== removed && { alias }),
    ...(left.length > 0 && { alt_aliases: left }),
  };
}
